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
		Use: "secret", GroupID: cli.GroupConfig, Short: "Store secrets for the config",
		Long: `Store secrets in the system's keyring, or without one in a file that only you
can read. When a server starts, ${keyring:NAME} in the config becomes the value.`,
		Example: "  goblin secret list",
	}, a.secretSet(), a.secretGet(), a.secretList(), a.secretRemove())
}

func (a *App) secretSet() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "set NAME", Short: "Store a secret",
		Long: `Store a secret, replacing the old value. On a terminal, asks for the value
without showing it. Otherwise reads it from stdin, minus one trailing newline.
The value is not an argument, because other users can see arguments. A server
gets the new value when it starts: goblin restart SERVER.`,
		Example: `  goblin secret set github
  goblin secret set github < token.txt`,
		Args: oneArg("a name for the secret"), ValidArgsFunction: a.completeSecrets,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !secrets.ValidName(args[0]) {
				return cli.Usage(cmd, `invalid secret name %q: use up to 128 letters, digits, "_", "-", ".", "/" and "@"`, args[0])
			}
			value, err := a.secretValue(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			place, err := a.Secrets().Set(args[0], value)
			if err != nil {
				return fmt.Errorf("store secret %q: %w", args[0], err)
			}
			a.Warn("stored secret %q in %s", args[0], place)
			a.reportSecretUsers(args[0])
			return a.printResult(map[string]any{"name": args[0], "place": place}, "")
		},
	})
}

func (a *App) secretValue(ctx context.Context, name string) (string, error) {
	if _, ok := a.In.(*os.File); ok && a.InTTY {
		return a.AskHidden(ctx, "Value of "+name+" (hidden):")
	}
	text, err := io.ReadAll(io.LimitReader(a.In, secrets.MaxValue+3)) // one byte over the limit, plus a line break
	if err != nil {
		return "", fmt.Errorf("read the secret from stdin: %w", err)
	}
	return secrets.TrimLineBreak(text), nil
}

func (a *App) reportSecretUsers(name string) {
	cfg, err := a.Load()
	if err != nil {
		return // a broken config is not this command's concern
	}
	var users []string
	for i := range cfg.Servers {
		if slices.Contains(cfg.Servers[i].References(), "${keyring:"+name+"}") {
			users = append(users, cfg.Servers[i].Name)
		}
	}
	if len(users) > 0 {
		a.Warn("to apply it to running servers: %s", a.CommandLine("restart", users[0])+alsoServers(users[1:]))
	}
}

func alsoServers(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (also " + strings.Join(names, ", ") + ")"
}

func (a *App) secretGet() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "get NAME", Short: "Print a secret",
		Long:        `Print a secret and a newline.`,
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

func (a *App) secretError(name string, err error) error {
	if !errors.Is(err, secrets.ErrNotFound) {
		return fmt.Errorf("secret %q: %w", name, err)
	}
	names, _ := a.Secrets().List() // reading it just succeeded
	return cli.Fail(cli.CodeNotFound, "no secret %q%s", name, cli.Suggest(name, names, "; store one with \"goblin secret set\""))
}

func (a *App) secretList() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "list", Short: "List the stored secrets",
		Long:        `List the names of stored secrets and where each is stored, without values.`,
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
				a.Warn("no secrets; store one with \"goblin secret set NAME\"")
			}
			return a.printResult(map[string]any{"secrets": list}, text.String())
		},
	})
}

func (a *App) secretRemove() *cobra.Command {
	return a.withJSON("print JSON", &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove"}, Short: "Delete a secret",
		Long:        `Delete a secret. A server that refers to it can't start until it is set again.`,
		Example:     `  goblin secret rm github`,
		Annotations: cli.NoConfigAnnotations(),
		Args:        oneArg("the name of a secret"), ValidArgsFunction: a.completeSecrets,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.Secrets().Remove(args[0]); err != nil {
				return a.secretError(args[0], err)
			}
			a.Warn("deleted secret %q", args[0])
			return a.printResult(map[string]any{"name": args[0]}, "")
		},
	})
}

func (a *App) completeSecrets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, _ := a.Secrets().List() // completion can't report errors
	return names, cobra.ShellCompDirectiveNoFileComp
}
