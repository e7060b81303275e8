package cli

import "github.com/spf13/cobra"

// Help returns the help command. With an unknown name, cobra's own prints the root's help
// and succeeds.
func (a *App) Help() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		GroupID: GroupOther,
		Short:   "Show the help of a command",
		Long:    "Show the help and the flags of a command.",
		Example: `  goblin help list
  goblin help tools off`,
		Annotations: NoConfigAnnotations(),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			const only = cobra.ShellCompDirectiveNoFileComp
			in, rest := findCommand(cmd.Root(), args)
			if len(rest) > 0 {
				return nil, only
			}
			return commandNames(in), only
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, rest := findCommand(cmd.Root(), args)
			if len(rest) > 0 {
				return NoCommand(in, rest[0])
			}
			in.InitDefaultHelpFlag() // cobra only adds it to commands that run
			return in.Help()
		},
	}
}

// NoCommand returns the error for an unknown subcommand.
func NoCommand(in *cobra.Command, name string) error {
	if isConfig(name) {
		return Usage(in.Root(), "no command %q; to use a config, add --config %s", name, name)
	}
	if in.HasParent() {
		return Usage(in, "%s has no command %q%s", CommandPath(in), name, Suggest(name, commandNames(in), ""))
	}
	return Usage(in, "no command %q%s", name, Suggest(name, commandNames(in), ""))
}

// findCommand follows command names. rest are the names after the last known command.
func findCommand(root *cobra.Command, names []string) (in *cobra.Command, rest []string) {
	in = root
next:
	for i, name := range names {
		for _, c := range in.Commands() {
			if c.Name() == name || c.HasAlias(name) {
				in = c
				continue next
			}
		}
		return in, names[i:]
	}
	return in, nil
}

func commandNames(in *cobra.Command) []string {
	var names []string
	for _, c := range in.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}
