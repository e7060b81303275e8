package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/daemon"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// complete uses only a running daemon, because completion must be fast.
func (a *App) complete(list string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const only = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 {
			return nil, only
		}
		cfg, err := a.Load()
		if err != nil {
			return nil, only
		}
		if list == "servers" {
			return serverNames(cfg), only
		}
		place, err := a.FindDaemon(cfg.Path)
		if err != nil {
			return nil, only
		}
		items, err := daemon.Remote{Place: place}.List(cmd.Context(), daemon.ListQuery{Kind: list, Profile: a.profile})
		if err != nil {
			return nil, only
		}
		return slices.DeleteFunc(listedNames(items), func(name string) bool { return !typeable(name) }), only
	}
}

// completeFiles completes as many files.
func completeFiles(n int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) < n {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteFileAndFilter completes a file, then the fields of a filter.
func CompleteFileAndFilter(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return completeFilter(cmd, args, typed)
}

// completeFilter completes the names of fields.
func completeFilter(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	const only = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	var all []string
	for _, f := range recording.FilterFields() {
		if f.Path == "" && strings.HasPrefix(f.Label(), typed) {
			all = append(all, cobra.CompletionWithDesc(f.Label(), f.Help))
		} else if f.Path != "" && strings.HasPrefix(f.Name+".", typed) {
			all = append(all, cobra.CompletionWithDesc(f.Name+".", f.Help))
		}
	}
	return all, only
}

// typeable reports whether a shell can insert and show a name without side effects.
func typeable(name string) bool {
	return termtext.Line(name) == name && !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "=") && !strings.ContainsAny(name, " \u00a0\u3000`$;|<>&\"'\\(){}[]*?!#~^")
}
