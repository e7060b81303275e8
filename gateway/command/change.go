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
	return a.changeCommand("remove", "Take servers out of the config",
		`Take servers out of the config. Everything else in the file stays as it is; comments
outside of the entries stay, too. A running daemon stops them once their calls are over.`,
		"Took %q out of %s.", (*configedit.File).Remove)
}

func (a *App) enable() *cobra.Command {
	return a.changeCommand("enable", "Turn servers on in the config",
		"Turn servers on in the config: \"disabled: true\" goes. A running daemon serves them at once.",
		"Turned %q on in %s.", func(f *configedit.File, name string) error { return f.SetDisabled(name, false) })
}

func (a *App) disable() *cobra.Command {
	return a.changeCommand("disable", "Turn servers off in the config",
		`Turn servers off in the config: they get "disabled: true" and keep their entries. A
running daemon stops them once their calls are over.`,
		"Turned %q off in %s.", func(f *configedit.File, name string) error { return f.SetDisabled(name, true) })
}

// changeCommand returns a command that changes all named servers of the config, or none.
func (a *App) changeCommand(word, short, long, told string, do func(f *configedit.File, name string) error) *cobra.Command {
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
				fmt.Fprintf(&text, told+"\n", name, f.Path())
			}
			return a.printResult(map[string]any{"config": f.Path(), "servers": args}, text.String())
		},
	})
}

// changeServers changes all named servers of the config, or none, and saves it.
func (a *App) changeServers(ctx context.Context, names []string, do func(f *configedit.File, name string) error) (*configedit.File, error) {
	f, err := a.editableConfig(configedit.Open)
	if err != nil {
		return nil, err
	}
	if f.IsNew() {
		return nil, cli.Fail(cli.CodeNotFound, "there is no config at %s; goblin add makes one", f.Path())
	}
	all, _ := f.Servers() // it could be read just now
	for _, name := range names {
		err := do(f, name)
		if errors.Is(err, configedit.ErrNone) { // or by the name that lists show
			called := func(written string) bool { return config.MakeName(written, func(string) bool { return false }) == name }
			if at := slices.IndexFunc(all, called); at >= 0 {
				err = do(f, all[at])
			}
		}
		if errors.Is(err, configedit.ErrNone) {
			return nil, cli.Fail(cli.CodeNotFound, "%s has no server %q%s", f.Path(), name, cli.Suggest(name, all, "; it names none"))
		} else if err != nil {
			return nil, err
		}
	}
	return f, a.save(ctx, f)
}
