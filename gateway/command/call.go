package command

import (
	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

func (a *App) call() *cobra.Command {
	var arguments string
	r := request{kind: toolKind, method: "tools/call", key: "name"}
	cmd := a.requestCommand(&r, &cobra.Command{
		Use:     "call TOOL",
		GroupID: cli.GroupAsk,
		Short:   "Call a tool",
		Long: `Call a tool and print its result.

TOOL is the listed name (SERVER_TOOL), SERVER/TOOL, or the server's own name if
no other server has it. Arguments are sent as typed, including number formats.

If the tool fails, its message goes to stderr and the exit code is 1.` + askedWhere,
		Example: `  goblin call clock_time_in --args '{"zone": "Europe/Berlin"}'
  goblin call notes_add_note --args '{"title": "Milk", "text": "two litres"}'
  goblin call notes_add_note --args @note.json
  jq -n '{title: "x"}' | goblin call notes_add_note --args - --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && args[0] != "" {
				return cli.Usage(cmd, "use --args for arguments: %s", termtext.Command(cmd.CommandPath(), args[:1], "--args", `{"name": "value"}`))
			}
			return oneArg("the name of a tool")(cmd, args)
		},
		ValidArgsFunction: a.complete(toolKind.list),
		RunE: func(cmd *cobra.Command, args []string) error {
			given, err := a.readObject("--args", arguments)
			if err != nil {
				return err
			}
			if given == nil {
				given = []byte(`{}`)
			}
			r.rest = rawjson.SetMember([]byte(`{}`), "arguments", given)
			return a.printRequest(cmd, &r, func(result []byte) error { return a.printCall(args[0], result) })
		},
	})
	cmd.Flags().StringVar(&arguments, "args", "", "arguments: `JSON` object, @FILE, or - for stdin")
	return cmd
}
