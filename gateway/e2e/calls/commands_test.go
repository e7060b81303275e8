//go:build e2e

package calls

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestCommandLua(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t) // without meta tools
	w.Lua = e2e.Obj{"timeout": "3s"}
	b := w.Backend("calculator", e2e.Merge(calculator(), []e2e.Obj{{"on": e2e.Obj{"tools/call list": e2e.Actions(e2e.Do("hang"))}}}))
	file := filepath.Join(w.Dir, "script.lua")
	write := func(script string) string {
		require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
		return file
	}
	run := func() {
		require.JSONEq(t, `{"sum":30}`, w.Succeeds("lua", write(`return calculator.add{a=1}`)))
		out := w.Run("lua", write("local x = 1\nerror('on purpose')"))
		require.Equal(t, e2e.ExitFailure, out.Code)
		require.Contains(t, out.Stderr, file+":2: on purpose")
		require.Equal(t, e2e.ExitTimeout, w.Run("lua", write("calculator.list{}")).Code)
	}
	run()
	require.Equal(t, e2e.ExitUsage, w.Run("lua").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("lua", filepath.Join(w.Dir, "none.lua")).Code)
	b.WaitLive(0)

	daemon := w.Join()
	daemon.Names("tools") // the lists are cached
	b.WaitLive(1)
	starts := b.Starts()
	run()
	require.Equal(t, "plain\n", w.Succeeds("lua", write(`return "plain"`)))
	require.Equal(t, "\"plain\"\n", w.Succeeds("lua", write(`return "plain"`), "--json"))
	out := w.Run("lua", write("print('seen')\nreturn 7"))
	require.Equal(t, "7\n", out.Stdout)
	require.Contains(t, out.Stderr, "seen")
	require.JSONEq(t, `[1,2]`, w.RunInput("return {1, 2}", "lua", "-").Stdout)
	require.Equal(t, starts, b.Starts(), "the command asks the daemon")
}

func TestCommandSearch(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t) // without meta tools
	b, other := w.Backend("shop", e2e.Shop()), w.Backend("s3", e2e.S3())
	text := w.Succeeds("search", "app", "log")
	require.Contains(t, strings.Split(text, "\n")[1], e2e.In("shop", e2e.AppLog))
	require.NotContains(t, w.Succeeds("search", "config", "--kind", "resources"), "tool ")
	require.NotContains(t, w.Succeeds("search", "app", "--mime", "text/*"), e2e.AppJSON)
	var found struct {
		Total int
		Hits  []e2e.Obj
	}
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("search", "app", "--json", "--limit", "1")), &found))
	require.Len(t, found.Hits, 1)
	require.Greater(t, found.Total, 1)
	starts := b.Starts()
	require.Contains(t, w.Succeeds("search", "config", "--server", "s3"), "s3://bucket/config/app.json")
	require.Equal(t, starts, b.Starts())
	other.WaitLive(0)
	out := w.Run("search", "zzzzzzzz")
	require.Equal(t, e2e.ExitNotFound, out.Code)
	require.Contains(t, out.Stderr, `nothing found for "zzzzzzzz"`)
	require.Equal(t, e2e.ExitNotFound, w.Run("search", "app", "--server", "nobody").Code)
	for _, wrong := range [][]string{{"search"}, {"search", " "}, {"search", "x", "--kind", "things"}, {"search", "x", "--limit", "0"}} {
		require.Equal(t, e2e.ExitUsage, w.Run(wrong...).Code, "%v", wrong)
	}

	daemon := w.Join()
	daemon.Names("tools")
	b.WaitLive(1) // lists come from the cache before
	starts = b.Starts()
	require.Contains(t, w.Succeeds("search", "app", "log"), e2e.In("shop", e2e.AppLog))
	require.Equal(t, starts, b.Starts(), "the command asks the daemon")
}

func TestCommandsWaitForTools(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{taskTool("t", "required")}, "tasks": e2e.Obj{"t": e2e.Obj{"required": true, "poll": 20}}, "on": e2e.Obj{
		"task t": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 100}), e2e.Do("text", e2e.Obj{"text": "done"})),
	}})
	require.Equal(t, "done\n", w.Succeeds("call", "b_t"))
}
