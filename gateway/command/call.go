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
		Long: `Call a tool and print what it answers.

The tool's name is the listed one (SERVER_TOOL), SERVER/TOOL, or its own if only
one server has it. Arguments are a JSON object; numbers, unknown members and the
order of members reach the server as you typed them.

If the tool says that it failed, its text goes to stderr and the exit code
is 1. Progress is shown on a terminal.` + askedWhere,
		Example: `  goblin call clock_time_in --args '{"zone": "Europe/Berlin"}'
  goblin call notes_add_note --args '{"title": "Milk", "text": "two litres"}'
  goblin call notes_add_note --args @note.json
  jq -n '{title: "x"}' | goblin call notes_add_note --args - --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && args[0] != "" {
				return cli.Usage(cmd, "arguments go into --args, as in: %s", termtext.Command(cmd.CommandPath(), args[:1], "--args", `{"name": "value"}`))
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
	cmd.Flags().StringVar(&arguments, "args", "", "arguments: a `JSON` object, @FILE, or - for stdin")
	return cmd
}
