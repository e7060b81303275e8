//go:build man

package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"goblin/gateway/cli"
)

// What writes the manual is not part of the released program, which would only start
// later for it.
func init() { tagCommands = append(tagCommands, (*App).man) }

func (a *App) man() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the manual pages of all commands", Hidden: true,
		Long:        "Write a manual page for each command into an existing folder.",
		Example:     "  goblin man dist/man",
		Annotations: cli.NoConfigAnnotations(),
		Args:        oneArg("a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cmd.Root().DisableAutoGenTag = true
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Section: "1", Source: "Goblin", Manual: "Goblin"}, args[0])
		},
	}
}
