package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry/termtext"
)

// maxSource is in bytes.
const maxSource = 64 << 10

func (a *App) lua() *cobra.Command {
	cmd := a.withJSON("print the value as JSON, even a string", &cobra.Command{
		Use:     "lua FILE|-",
		GroupID: cli.GroupAsk,
		Short:   "Run a Lua script over all servers",
		Long: `Run a Lua script that can call the tools of all servers, and print its result: a
string as text, any other value as JSON. print() writes to stderr. The key
"lua" in the config sets the limits, also of the tool execute_lua. If the script
fails, the exit code is 1; after a timeout it is 6.

    local now = clock.time_in{zone = "Europe/Berlin"}
    notes.add_note{title = "Now", text = now.time}
    return now

Uses the running daemon; otherwise starts all servers temporarily.`,
		Example: `  goblin lua report.lua
  echo 'return tools.list{server = "clock"}' | goblin lua -
  echo 'return search("moon")' | goblin lua - --json | jq -r '.[].name'`,
		Args: oneArg("a file with a Lua script, or - for stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := a.readScript(args[0])
			if err != nil {
				return err
			}
			cfg, err := a.Load()
			if err != nil {
				return err
			}
			return a.runScript(cmd.Context(), cfg, args[0], source)
		},
	})
	a.withProfile(cmd)
	return cmd
}

func (a *App) readScript(file string) (string, error) {
	in := a.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", cli.Fail(cli.CodeUsage, "cannot read the script %s; use a file name, or - for stdin", reason(err))
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxSource+1))
	switch {
	case err != nil:
		return "", cli.Fail(cli.CodeUsage, "cannot read the script %s", reason(err))
	case len(raw) > maxSource:
		return "", cli.Fail(cli.CodeUsage, "the script is longer than %d bytes", maxSource)
	}
	return string(raw), nil
}

func (a *App) runScript(ctx context.Context, cfg *config.Config, file, source string) error {
	var answer daemon.ScriptAnswer
	err := a.withGateway(ctx, cfg, nil, func(g Gateway) (err error) {
		answer, err = g.Script(ctx, daemon.ScriptQuery{Source: source})
		return err
	})
	if err != nil {
		return err
	}
	if answer.Printed != "" {
		printed := answer.Printed
		if a.ErrTTY {
			printed = termtext.Text(printed)
		}
		if !strings.HasSuffix(printed, "\n") {
			printed += "\n"
		}
		fmt.Fprint(a.Err, a.Mask().String(printed))
	}
	if answer.Error != "" {
		code := cli.CodeFailure
		if answer.Timeout {
			code = cli.CodeTimeout
		}
		return cli.Fail(code, "%s", scriptError(file, answer.Error))
	}
	var text string
	switch {
	case answer.Value == nil && !a.asJSON:
		if answer.Hint != "" {
			a.Warn("%s", answer.Hint)
		}
		return nil
	case answer.Value == nil:
		return a.printJSON(nil)
	case a.asJSON:
		return a.printRaw(answer.Value)
	case json.Unmarshal(answer.Value, &text) == nil:
		return a.printText(text)
	}
	return a.printJSON(answer.Value)
}

func scriptError(file, text string) string {
	if file == "-" {
		file = "stdin"
	}
	if rest, ok := strings.CutPrefix(text, "script:"); ok {
		return file + ":" + rest
	}
	return file + ": " + text
}
