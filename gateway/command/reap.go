package command

import (
	"github.com/spf13/cobra"

	"goblin/gateway/childproc"
	"goblin/gateway/cli"
)

const reapName = "end-children"

// reap returns the hidden command that stops the servers left by another command.
func (a *App) reap() *cobra.Command {
	return &cobra.Command{
		Use:    reapName + " FOLDER",
		Hidden: true,
		Short:  "Stop the servers left by a command",
		Long: `Wait until stdin is closed, and stop the servers that are still running two
seconds later. Commands start this one automatically when they exit.`,
		Example:     "  goblin " + reapName + " /run/user/1000/goblin",
		Annotations: cli.NoConfigAnnotations(),
		Args:        oneArg("the folder of the process records"),
		Run:         func(_ *cobra.Command, args []string) { childproc.Reap(args[0], a.In) },
	}
}
