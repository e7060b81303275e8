package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/secrets"
)

func (a *App) secret() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use: "secret", GroupID: cli.GroupConfig, Short: "Keep secrets that the config refers to",
		Long: `Keep secrets by name, in the system's keyring, or in a file that only you can read
where there is none. ${keyring:NAME} in the config stands for the value, which Goblin
reads when it starts the server.`,
		Example: "  goblin secret list",
	}, a.secretSet(), a.secretGet(), a.secretList(), a.secretRemove())
}

func (a *App) secretSet() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "set NAME", Short: "Keep a secret",
		Long: `Keep a secret under a name, in the place of the one that it may have had. The value is
asked for, and not shown; without a terminal it is all of standard input, but for one line
break at its end. It is no argument, for other users of the machine can read those.

Servers get it when they start next: goblin restart SERVER starts one anew.`,
		Example: `  goblin secret set github
  goblin secret set github < token.txt`,
		Args: oneArg("a name for the secret"), ValidArgsFunction: a.completeSecrets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !secrets.ValidName(args[0]) {
				return cli.Usage(cmd, `%q cannot name a secret: a name has up to 128 letters, digits, "_", "-", ".", "/" and "@"`, args[0])
			}
			value, err := a.secretValue(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			place, err := a.Secrets().Set(args[0], value)
			if err != nil {
				return fmt.Errorf("keep %q: %w", args[0], err)
			}
			a.Warn("%q is kept in %s", args[0], place)
			a.reportSecretUsers(args[0])
			return a.printResult(map[string]any{"name": args[0], "place": place}, "")
		},
	})
}

// secretValue reads the value from the terminal, or else from stdin.
func (a *App) secretValue(ctx context.Context, name string) (string, error) {
	if _, ok := a.In.(*os.File); ok && a.InTTY {
		return a.AskHidden(ctx, "The secret "+name+" (it is not shown):")
	}
	text, err := io.ReadAll(io.LimitReader(a.In, secrets.MaxValue+3)) // with a line break, and one byte more
	if err != nil {
		return "", fmt.Errorf("read the secret from stdin: %w", err)
	}
	return secrets.TrimLineBreak(text), nil
}

// reportSecretUsers names the servers that use a secret.
func (a *App) reportSecretUsers(name string) {
	cfg, err := a.Load()
	if err != nil {
		return // it has nothing to do with the secret
	}
	var users []string
	for i := range cfg.Servers {
		if slices.Contains(cfg.Servers[i].References(), "${keyring:"+name+"}") {
			users = append(users, cfg.Servers[i].Name)
		}
	}
	if len(users) > 0 {
		a.Warn("servers that run get it by: %s", a.CommandLine("restart", users[0])+alsoServers(users[1:]))
	}
}

// alsoServers returns the further servers of a message in parentheses.
func alsoServers(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (likewise " + strings.Join(names, ", ") + ")"
}

func (a *App) secretGet() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "get NAME", Short: "Print a secret",
		Long:        `Print a secret, with a line break at its end.`,
		Example:     `  goblin secret get github`,
		Annotations: cli.NoConfigAnnotations(),
		Args:        oneArg("the name of a secret"), ValidArgsFunction: a.completeSecrets,
		RunE: func(_ *cobra.Command, args []string) error {
			value, err := a.Secrets().Get(args[0])
			if err != nil {
				return a.secretError(args[0], err)
			}
			return a.printResult(map[string]any{"name": args[0], "value": value}, value)
		},
	})
}

// secretError returns the error for a secret that cannot be read.
func (a *App) secretError(name string, err error) error {
	if !errors.Is(err, secrets.ErrNotFound) {
		return fmt.Errorf("secret %q: %w", name, err)
	}
	names, _ := a.Secrets().List() // it could be read just now
	return cli.Fail(cli.CodeNotFound, "there is no secret %q%s", name, cli.Suggest(name, names, "; goblin secret set keeps one"))
}

func (a *App) secretList() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "list", Short: "Name the secrets and where they are",
		Long:        `Name the secrets that were set, and where each is. Their values are not shown.`,
		Example:     "  goblin secret list",
		Annotations: cli.NoConfigAnnotations(),
		Args:        cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			store := a.Secrets()
			names, err := store.List()
			if err != nil {
				return err
			}
			type secret struct {
				Name  string `json:"name"`
				Place string `json:"place"`
			}
			list := make([]secret, len(names))
			var text strings.Builder
			for i, name := range names {
				list[i] = secret{name, store.Location(name)}
				fmt.Fprintf(&text, "%s\t%s\n", name, list[i].Place)
			}
			if len(names) == 0 && !a.asJSON {
				a.Warn("there are no secrets; goblin secret set NAME keeps one")
			}
			return a.printResult(map[string]any{"secrets": list}, text.String())
		},
	})
}

func (a *App) secretRemove() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove"}, Short: "Forget a secret",
		Long:        `Forget a secret. A server that refers to it no longer starts until it is set again.`,
		Example:     `  goblin secret rm github`,
		Annotations: cli.NoConfigAnnotations(),
		Args:        oneArg("the name of a secret"), ValidArgsFunction: a.completeSecrets,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.Secrets().Remove(args[0]); err != nil {
				return a.secretError(args[0], err)
			}
			a.Warn("%q is forgotten", args[0])
			return a.printResult(map[string]any{"name": args[0]}, "")
		},
	})
}

func (a *App) completeSecrets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := a.Secrets().List() // there is nobody to tell
	return names, cobra.ShellCompDirectiveNoFileComp
}
