package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/spf13/cobra"

	"goblin/gateway/browser"
	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/oauth"
	"goblin/registry/termtext"
)

func (a *App) login() *cobra.Command {
	var noBrowser, device bool
	cmd := a.withJSON("print JSON", &cobra.Command{
		Use:     "login SERVER",
		GroupID: cli.GroupDaemon,
		Short:   "Log in at a remote server",
		Long: `Log in at a remote server by OAuth. The page to log in at is opened by the program
in $BROWSER, or else by the system's, and its URL is printed on stderr. Goblin
waits up to ten minutes for the browser to come back to it.

Over SSH without a display, only $BROWSER is started. Use --no-browser there: open
the URL where your browser is, and paste the URL that it ends at, even if that
page cannot be shown. Where the server offers it, --device is easier: any browser,
on any device, shows its page and takes the code that Goblin prints.

If the config has oauth.client_secret but no oauth.issuer, Goblin names the
authorization server and asks before the secret goes there.

The login is kept in the system's keyring, or else in a file that only you can
read, and refreshed by itself. A running daemon takes it up at once.`,
		Example: `  goblin login linear
  goblin login linear --no-browser
  goblin login linear --device`,
		Args:              oneArg("a server"),
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, folder, err := a.loginOptions(args[0])
			if err != nil {
				return err
			}
			return a.runLogin(cmd.Context(), folder, o, noBrowser, device)
		},
	})
	cmd.Flags().BoolVar(&device, "device", false, "print a code to enter at a page that any device can open")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "open no browser, and take the URL that it ends at from stdin")
	return cmd
}

func (a *App) logout() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use:     "logout SERVER",
		GroupID: cli.GroupDaemon,
		Short:   "Log out from a remote server",
		Long: `Log out from a remote server: its authorization server is told to take the
tokens back, and they are forgotten. A running daemon notices.`,
		Example:           `  goblin logout linear`,
		Args:              oneArg("a server"),
		ValidArgsFunction: a.complete("servers"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, folder, err := a.loginOptions(args[0])
			if err != nil {
				return err
			}
			switch err = oauth.Logout(cmd.Context(), folder, o); {
			case err == nil:
				a.Warn("logged out from %q", o.Server)
			case errors.Is(err, oauth.ErrNotLoggedIn):
				a.Warn("nobody was logged in at %q", o.Server)
			case errors.Is(err, oauth.ErrNotRevoked):
				a.Warn("%v", err)
			default:
				return fmt.Errorf("log out from %q: %w", o.Server, err)
			}
			return a.printResult(map[string]any{"serverId": o.Server}, "")
		},
	})
}

// loginOptions returns the options of a login at a server, and the folder of its tokens.
func (a *App) loginOptions(name string) (oauth.Options, string, error) {
	cfg, err := a.Load()
	if err != nil {
		return oauth.Options{}, "", err
	}
	if err := checkUsable(cfg, name); err != nil {
		return oauth.Options{}, "", err
	}
	s, _ := cfg.Server(name) // usable knows it
	if s.Type == config.Stdio {
		return oauth.Options{}, "", cli.Fail(cli.CodeUsage, "server %q is a local program, which needs no login", name)
	}
	path, err := config.Canonical(cfg.Path)
	if err != nil {
		return oauth.Options{}, "", err
	}
	o, ok := oauth.ServerOptions(path, s, a.Version.Version, a.Secrets().Resolve)
	if !ok {
		return oauth.Options{}, "", cli.Fail(cli.CodeUsage, "server %q has no login: its config has an Authorization header, or oauth: off", name)
	}
	folder, err := oauth.Folder(a.Getenv)
	return o, folder, err
}

func (a *App) runLogin(ctx context.Context, folder string, o oauth.Options, noBrowser, device bool) error {
	u := oauth.UserPrompts{Show: func(page string) { a.showLoginPage(o.Server, page, noBrowser) }}
	if a.InTTY {
		u.ConfirmSecret = a.confirmIssuer
	}
	switch {
	case device:
		u.Device = func(page, code string) {
			a.Warn("log in at %q: open this page anywhere, and enter the code %s there", o.Server, termtext.Line(code))
			fmt.Fprintln(a.Err, termtext.Line(page))
		}
	case noBrowser:
		lines := make(chan string)
		read := sync.OnceFunc(func() { go a.readPastedURLs(lines) }) // the answer of agree comes first
		u.ReadPasted = lines
		u.Show = func(page string) {
			a.showLoginPage(o.Server, page, noBrowser)
			read()
		}
	}
	l, notice, err := oauth.LogIn(ctx, folder, o, u)
	if err != nil {
		err = fmt.Errorf("log in at %q: %w", o.Server, err)
		if network, ok := errors.AsType[*net.OpError](err); ok && network.Op == "dial" && !network.Timeout() {
			return cli.Fail(cli.CodeConnect, "%w", err)
		}
		return err
	}
	who := ""
	if l.User != "" {
		who = " as " + termtext.Line(l.User)
	}
	a.Warn("logged in at %q%s", o.Server, who)
	if notice != "" {
		a.Warn("%s, so logins are kept in files that only you can read, in %s", notice, folder)
	}
	return a.printResult(map[string]any{"serverId": o.Server, "user": l.User, "scopes": l.Scopes, "issuer": l.Issuer}, "")
}

// confirmIssuer asks whether the client secret may go to the authorization server of a login.
func (a *App) confirmIssuer(ctx context.Context, q oauth.SecretQuestion) error {
	a.Say("goblin: the authorization server of %q is %s", q.Server, q.Issuer)
	if q.PreviousIssuer != "" {
		a.Say("goblin: until now it was %s", q.PreviousIssuer)
	}
	yes, err := a.Confirm(ctx, "Send it the client secret of the config?")
	if err == nil && !yes {
		err = q.Declined()
	}
	return err
}

// showLoginPage prints the URL of a login, and opens it unless noBrowser is set.
func (a *App) showLoginPage(server, page string, noBrowser bool) {
	a.Warn("log in at %q with your browser:", server)
	fmt.Fprintln(a.Err, termtext.Line(page))
	if noBrowser {
		a.Warn("then paste the URL that your browser ends at, and press Enter")
		return
	}
	if err := browser.Open(a.Getenv, page); err != nil {
		a.Warn("no browser is opened (%v): open the URL yourself; if your browser is on another machine, use --no-browser", err)
	}
}

// readPastedURLs sends the lines that the user types. It returns at the end of stdin.
func (a *App) readPastedURLs(lines chan<- string) {
	defer close(lines)
	in := bufio.NewScanner(a.In)
	for in.Scan() {
		if in.Text() != "" {
			lines <- in.Text()
		}
	}
}
