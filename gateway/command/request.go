package command

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/daemon"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

const howAsked = `

The running daemon of the config is asked, if there is one. Otherwise only the
servers that can answer are started, in this process, and ended afterwards.`

// asking are the flags that read, call and prompt share.
type asking struct {
	server, meta string
	json         bool
}

func (f *asking) add(cmd *cobra.Command) {
	cli.Name(cmd.Flags(), &f.server, "server", "ask this `SERVER`; you may use the name that it uses itself")
	cli.Name(cmd.Flags(), &f.meta, "meta", "_meta of the request: a `JSON` object, @FILE, or - for stdin")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the result as it arrived; on a terminal, control characters are escaped")
}

func (a *App) read() *cobra.Command {
	var f asking
	cmd := &cobra.Command{
		Use:     "read URI",
		GroupID: cli.GroupAsk,
		Short:   "Read a resource",
		Long: `Read a resource and print its contents.

The URI is the listed one (mcp://SERVER/ORIGINAL), an expansion of a listed
template, the resource's flat id, or the server's own URI if only one server
has it.

Text is printed as it is. Binary contents are decoded into a file or a pipe; a
terminal shows only their size. On a terminal control characters are made
visible.` + howAsked,
		Example: `  goblin read mcp://notes/note:///welcome
  goblin read library://bookplates/01.svg > bookplate.svg
  goblin read clock://now --json | jq -r '.contents[0].text'`,
		Args:              oneArg("the URI of a resource"),
		ValidArgsFunction: a.complete(resourceKind.list),
		RunE: func(cmd *cobra.Command, args []string) error {
			result, err := a.do(cmd, &f, &request{
				kind: resourceKind, method: "resources/read", key: "uri", name: args[0], rest: []byte(`{}`),
			})
			switch {
			case err != nil:
				return err
			case f.json:
				return a.raw(result)
			}
			return a.printRead(result)
		},
	}
	f.add(cmd)
	a.withProfile(cmd)
	return cmd
}

func (a *App) call() *cobra.Command {
	var (
		f         asking
		arguments string
	)
	cmd := &cobra.Command{
		Use:     "call TOOL",
		GroupID: cli.GroupAsk,
		Short:   "Call a tool",
		Long: `Call a tool and print what it answers.

The tool's name is the listed one (SERVER_TOOL), SERVER/TOOL, or its own if only
one server has it. Arguments are a JSON object; numbers, unknown members and the
order of members reach the server as you typed them.

If the tool says that it failed, its text goes to stderr and the exit code
is 1. Progress is shown on a terminal.` + howAsked,
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
			given, err := a.object("--args", arguments)
			if err != nil {
				return err
			}
			if given == nil {
				given = []byte(`{}`)
			}
			result, err := a.do(cmd, &f, &request{
				kind: toolKind, method: "tools/call", key: "name", name: args[0],
				rest: rawjson.SetMember([]byte(`{}`), "arguments", given),
			})
			if err != nil {
				return err
			}
			if !f.json {
				return a.printCall(args[0], result)
			}
			if err := a.raw(result); err != nil {
				return err
			}
			if string(rawjson.Get(result, "isError")) == "true" {
				return errTold(cli.CodeFailure)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&arguments, "args", "", "arguments: a `JSON` object, @FILE, or - for stdin")
	f.add(cmd)
	a.withProfile(cmd)
	return cmd
}

func (a *App) prompt() *cobra.Command {
	var (
		f         asking
		arguments []string
	)
	cmd := &cobra.Command{
		Use:     "prompt NAME",
		GroupID: cli.GroupAsk,
		Short:   "Get a prompt",
		Long: `Get a prompt and print its messages, each under the name of its role.

The name is the listed one (SERVER/PROMPT), SERVER_PROMPT, or the prompt's own if
only one server has it.` + howAsked,
		Example: `  goblin prompt notes/summarize_notes
  goblin prompt library/recommend_book --arg mood=gloomy
  goblin prompt library/recommend_book --arg mood=gloomy --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 && strings.Contains(args[1], "=") {
				return cli.Usage(cmd, "arguments go into --arg, as in: %s", termtext.Command(cmd.CommandPath(), args[:1], "--arg", "NAME=VALUE"))
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
			result, err := a.do(cmd, &f, &request{
				kind: promptKind, method: "prompts/get", key: "name", name: args[0],
				rest: rawjson.SetMember([]byte(`{}`), "arguments", given),
			})
			switch {
			case err != nil:
				return err
			case f.json:
				return a.raw(result)
			}
			return a.printPrompt(result)
		},
	}
	cmd.Flags().StringArrayVar(&arguments, "arg", nil, "an argument, as `NAME=VALUE`; once for each argument")
	f.add(cmd)
	a.withProfile(cmd)
	return cmd
}

func (a *App) do(cmd *cobra.Command, f *asking, r *request) (json.RawMessage, error) {
	meta, err := a.object("--meta", f.meta)
	if err != nil {
		return nil, err
	}
	r.server, r.meta = f.server, meta
	return a.ask(cmd.Context(), r)
}

// complete offers the names that the running daemon lists. It starts nothing:
// somebody waits for the Tab key.
func (a *App) complete(list string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		const only = cobra.ShellCompDirectiveNoFileComp
		if len(args) > 0 {
			return nil, only
		}
		cfg, err := a.Load()
		if err != nil {
			return nil, only
		}
		if list == "servers" {
			return serverNames(cfg), only
		}
		place, err := a.Place(cfg.Path)
		if err != nil {
			return nil, only
		}
		items, err := daemon.Remote{Place: place}.List(cmd.Context(), daemon.ListQuery{Kind: list, Profile: a.profile})
		if err != nil {
			return nil, only
		}
		return slices.DeleteFunc(names(items), func(name string) bool { return !typeable(name) }), only
	}
}

// typeable reports whether a shell that puts a name into a command line, and
// shows it, does nothing else because of it.
func typeable(name string) bool {
	return termtext.Line(name) == name && !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "=") && !strings.ContainsAny(name, " \u00a0\u3000`$;|<>&\"'\\(){}[]*?!#~^")
}
