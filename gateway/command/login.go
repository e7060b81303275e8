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
		GroupID: cli.GroupDiagnose,
		Short:   "Log in to a remote server",
		Long: `Log in to a remote server by OAuth. Opens the login page in $BROWSER or the
system's browser, prints its URL on stderr, and waits up to ten minutes.

Over SSH, use --device if the server supports it. Otherwise use --no-browser:
open the URL in any browser and paste the URL you end up at, even if the page
doesn't load. The login is stored in the system's keyring, or in a file that only
you can read, and refreshed automatically. A running daemon uses it at once.`,
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
	cmd.Flags().BoolVar(&device, "device", false, "print a code to enter on any device")
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "don't open a browser; read the final URL from stdin")
	return cmd
}

func (a *App) logout() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use:     "logout SERVER",
		GroupID: cli.GroupDiagnose,
		Short:   "Log out of a remote server",
		Long: `Log out of a remote server: revoke the tokens and delete them. A running
daemon stops using them at once.`,
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
				a.Warn("logged out of %q", o.Server)
			case errors.Is(err, oauth.ErrNotLoggedIn):
				a.Warn("not logged in to %q", o.Server)
			case errors.Is(err, oauth.ErrNotRevoked):
				a.Warn("%v", err)
			default:
				return fmt.Errorf("log out of %q: %w", o.Server, err)
			}
			return a.printResult(map[string]any{"serverId": o.Server}, "")
		},
	})
}

func (a *App) loginOptions(name string) (oauth.Options, string, error) {
	cfg, err := a.Load()
	if err != nil {
		return oauth.Options{}, "", err
	}
	if err := checkUsable(cfg, name); err != nil {
		return oauth.Options{}, "", err
	}
	s, _ := cfg.Server(name) // checkUsable found it
	if s.Type == config.Stdio {
		return oauth.Options{}, "", cli.Fail(cli.CodeUsage, "server %q is a local program and needs no login", name)
	}
	path, err := config.Canonical(cfg.Path)
	if err != nil {
		return oauth.Options{}, "", err
	}
	o, ok := oauth.ServerOptions(path, s, a.Version.Version, a.Secrets().Resolve)
	if !ok {
		return oauth.Options{}, "", cli.Fail(cli.CodeUsage, "server %q doesn't use OAuth: its config has an Authorization header, or oauth: off", name)
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
			a.Warn("log in to %q: open this page on any device and enter the code %s", o.Server, termtext.Line(code))
			fmt.Fprintln(a.Err, termtext.Line(page))
		}
	case noBrowser:
		lines := make(chan string)
		read := sync.OnceFunc(func() { go a.readPastedURLs(lines) }) // starts after the answer to ConfirmSecret
		u.ReadPasted = lines
		u.Show = func(page string) {
			a.showLoginPage(o.Server, page, noBrowser)
			read()
		}
	}
	l, notice, err := oauth.LogIn(ctx, folder, o, u)
	if err != nil {
		err = fmt.Errorf("log in to %q: %w", o.Server, err)
		if network, ok := errors.AsType[*net.OpError](err); ok && network.Op == "dial" && !network.Timeout() {
			return cli.Fail(cli.CodeConnect, "%w", err)
		}
		return err
	}
	who := ""
	if l.User != "" {
		who = " as " + termtext.Line(l.User)
	}
	a.Warn("logged in to %q%s", o.Server, who)
	if notice != "" {
		a.Warn("%s; logins are stored in files that only you can read, in %s", notice, folder)
	}
	return a.printResult(map[string]any{"serverId": o.Server, "user": l.User, "scopes": l.Scopes, "issuer": l.Issuer}, "")
}

func (a *App) confirmIssuer(ctx context.Context, q oauth.SecretQuestion) error {
	a.Say("goblin: the authorization server of %q is %s", q.Server, q.Issuer)
	if q.PreviousIssuer != "" {
		a.Say("goblin: previously it was %s", q.PreviousIssuer)
	}
	yes, err := a.Confirm(ctx, "Send it the client secret from the config?")
	if err == nil && !yes {
		err = q.Declined()
	}
	return err
}

func (a *App) showLoginPage(server, page string, noBrowser bool) {
	a.Warn("log in to %q in your browser:", server)
	fmt.Fprintln(a.Err, termtext.Line(page))
	if noBrowser {
		a.Warn("then paste the URL you end up at and press Enter")
		return
	}
	if err := browser.Open(a.Getenv, page); err != nil {
		a.Warn("cannot open a browser (%v); open the URL yourself, or use --no-browser if your browser is on another machine", err)
	}
}

// readPastedURLs closes lines at the end of stdin.
func (a *App) readPastedURLs(lines chan<- string) {
	defer close(lines)
	in := bufio.NewScanner(a.In)
	for in.Scan() {
		if in.Text() != "" {
			lines <- in.Text()
		}
	}
}
