package command

import (
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

func (a *App) prompt() *cobra.Command {
	var arguments []string
	r := request{kind: promptKind, method: "prompts/get", key: "name"}
	cmd := a.requestCommand(&r, &cobra.Command{
		Use:     "prompt NAME",
		GroupID: cli.GroupAsk,
		Short:   "Get a prompt",
		Long: `Get a prompt and print its messages, each below its role.

NAME is the listed name (SERVER/PROMPT), SERVER_PROMPT, or the server's own name
if no other server has it.` + askedWhere,
		Example: `  goblin prompt notes/summarize_notes
  goblin prompt library/recommend_book --arg mood=gloomy
  goblin prompt library/recommend_book --arg mood=gloomy --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && strings.Contains(args[1], "=") {
				return cli.Usage(cmd, "use --arg for arguments: %s", termtext.Command(cmd.CommandPath(), args[:1], "--arg", "NAME=VALUE"))
			}
			return oneArg("the name of a prompt")(cmd, args)
		},
		ValidArgsFunction: a.complete(promptKind.list),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := []byte(`{}`)
			for _, arg := range arguments {
				name, value, ok := strings.Cut(arg, "=")
				if !ok || name == "" {
					return cli.Usage(cmd, "--arg %q must be NAME=VALUE", arg)
				}
				if rawjson.Get(given, name) != nil {
					return cli.Usage(cmd, "--arg %s is given twice", name)
				}
				given = rawjson.SetMember(given, name, rawjson.AppendString(nil, value))
			}
			r.rest = rawjson.SetMember([]byte(`{}`), "arguments", given)
			return a.printRequest(cmd, &r, a.printPrompt)
		},
	})
	cmd.Flags().StringArrayVar(&arguments, "arg", nil, "argument, `NAME=VALUE`; may be repeated")
	return cmd
}
