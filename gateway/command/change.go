package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/configedit"
)

func (a *App) remove() *cobra.Command {
	return a.changeCommand("remove", "Remove servers from the config",
		`Remove servers from the config. The rest of the file stays unchanged, including
comments. A running daemon stops the servers after their current calls.`,
		"Removed %q from %s.", (*configedit.File).Remove)
}

func (a *App) enable() *cobra.Command {
	return a.changeCommand("enable", "Enable servers in the config",
		"Enable servers by removing \"disabled: true\". A running daemon serves\nthem at once.",
		"Enabled %q in %s.", func(f *configedit.File, name string) error { return f.SetDisabled(name, false) })
}

func (a *App) disable() *cobra.Command {
	return a.changeCommand("disable", "Disable servers in the config",
		`Disable servers by adding "disabled: true" to their entries. A running daemon
stops the servers after their current calls.`,
		"Disabled %q in %s.", func(f *configedit.File, name string) error { return f.SetDisabled(name, true) })
}

// changeCommand returns a command that changes either all named servers or none.
func (a *App) changeCommand(word, short, long, result string, do func(f *configedit.File, name string) error) *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use: word + " SERVER...", GroupID: cli.GroupConfig, Short: short, Long: long,
		Example:           "  goblin " + word + " files",
		ValidArgsFunction: a.complete("servers"),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage(cmd, "%s needs the name of a server", word)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := a.changeServers(cmd.Context(), args, do)
			for n := 0; errors.Is(err, configedit.ErrChanged) && n < maxTries; n++ {
				f, err = a.changeServers(cmd.Context(), args, do)
			}
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, name := range args {
				fmt.Fprintf(&text, result+"\n", name, f.Path())
			}
			return a.printResult(map[string]any{"config": f.Path(), "servers": args}, text.String())
		},
	})
}

func (a *App) changeServers(ctx context.Context, names []string, do func(f *configedit.File, name string) error) (*configedit.File, error) {
	f, err := a.editableConfig(configedit.Open)
	if err != nil {
		return nil, err
	}
	if f.IsNew() {
		return nil, cli.Fail(cli.CodeNotFound, "no config at %s; create one with \"goblin init\" or \"goblin add\"", f.Path())
	}
	all, _ := f.Servers() // the file was just parsed
	for _, name := range names {
		err := do(f, name)
		if errors.Is(err, configedit.ErrNone) { // the name may be a converted one
			called := func(written string) bool { return config.MakeName(written, func(string) bool { return false }) == name }
			if at := slices.IndexFunc(all, called); at >= 0 {
				err = do(f, all[at])
			}
		}
		if errors.Is(err, configedit.ErrNone) {
			return nil, cli.Fail(cli.CodeNotFound, "no server %q in %s%s", name, f.Path(), cli.Suggest(name, all, "; it has no servers"))
		} else if err != nil {
			return nil, err
		}
	}
	return f, a.save(ctx, f)
}
