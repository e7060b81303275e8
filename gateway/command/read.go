package command

import (
	"github.com/spf13/cobra"

	"goblin/gateway/cli"
)

func (a *App) read() *cobra.Command {
	r := request{kind: resourceKind, method: "resources/read", key: "uri", rest: []byte(`{}`)}
	return a.requestCommand(&r, &cobra.Command{
		Use:     "read URI",
		GroupID: cli.GroupAsk,
		Short:   "Read a resource",
		Long: `Read a resource and print its contents.

URI is the listed one (mcp://SERVER/ORIGINAL), an expansion of a listed template,
the resource's flat id, or the server's own URI if no other server has it.

Binary contents are decoded. A terminal shows only their size, and control
characters in text are escaped.` + askedWhere,
		Example: `  goblin read mcp://notes/note:///welcome
  goblin read library://bookplates/01.svg > bookplate.svg
  goblin read clock://now --json | jq -r '.contents[0].text'`,
		Args:              oneArg("the URI of a resource"),
		ValidArgsFunction: a.complete(resourceKind.list),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.printRequest(cmd, &r, a.printRead)
		},
	})
}
