package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
)

func (a *App) version() *cobra.Command {
	return a.withJSON("print a JSON object", &cobra.Command{
		Use:         "version",
		GroupID:     cli.GroupOther,
		Short:       "Print the version",
		Long:        "Print Goblin's version, its source revision, and the Go version.",
		Annotations: cli.NoConfigAnnotations(),
		Example:     "  goblin version\n  goblin version --json | jq -r .version",
		Args:        cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := a.Version
			revision := ""
			if v.Revision != "" {
				revision = ", revision " + v.Revision[:min(12, len(v.Revision))]
				if v.Modified {
					revision += " (modified)"
				}
			}
			build := ""
			if v.Build != "" {
				build = ", build " + v.Build
			}
			return a.printResult(v, fmt.Sprintf("goblin %s (%s, %s/%s%s%s)", v.Version, v.Go, v.OS, v.Arch, revision, build))
		},
	})
}
