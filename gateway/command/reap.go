package command

import (
	"github.com/spf13/cobra"

	"goblin/gateway/childproc"
	"goblin/gateway/cli"
)

const reapName = "end-children"

// reap returns the hidden command that ends the servers of another command.
func (a *App) reap() *cobra.Command {
	return &cobra.Command{
		Use:    reapName + " FOLDER",
		Hidden: true,
		Short:  "End the servers that a command has left",
		Long: `Wait until standard input ends, which it does with the command that has left
servers behind, and end those that have not ended by themselves two seconds later.
Commands start this one themselves; there is no need to type it.`,
		Example:     "  goblin " + reapName + " /run/user/1000/goblin",
		Annotations: cli.NoConfigAnnotations(),
		Args:        oneArg("the folder in which they are recorded"),
		Run:         func(_ *cobra.Command, args []string) { childproc.Reap(args[0], a.In) },
	}
}
