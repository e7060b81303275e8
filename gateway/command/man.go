//go:build man

package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"goblin/gateway/cli"
)

// The generator of manual pages is not part of releases, because it would slow down their
// start.
func init() { tagCommands = append(tagCommands, (*App).man) }

func (a *App) man() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write manual pages for all commands", Hidden: true,
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
