package cli

import "github.com/spf13/cobra"

// Help is the help command, for SetHelpCommand of the root. Cobra's own answers
// a wrong name with the help of the root and success.
func (a *App) Help() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command",
		Long:  "Show what a command does and which flags it takes.",
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
			in.InitDefaultHelpFlag() // as if it had been run
			return in.Help()
		},
	}
}

// NoCommand is the error for a name that no command in a command has.
func NoCommand(in *cobra.Command, name string) error {
	if isConfig(name) {
		return Usage(in.Root(), "there is no command %q; a config is named by --config %s", name, name)
	}
	if in.HasParent() {
		return Usage(in, "%s has no command %q%s", CommandPath(in), name, Suggest(name, commandNames(in), ""))
	}
	return Usage(in, "there is no command %q%s", name, Suggest(name, commandNames(in), ""))
}

// findCommand follows names of commands from root, and gives back what names none.
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
