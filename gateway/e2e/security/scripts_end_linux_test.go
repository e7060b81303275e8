//go:build e2e

package security

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestAProcessOfAScriptThatDiesCostsThatScriptOnly(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Lua = e2e.Obj{"timeout": "10m"}
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("slow")}, "on": e2e.Obj{"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}})
	c := w.Standalone()
	other := beginLua(c, `b.slow{} return "went on"`)
	b.WaitEvent("wait", "go")
	slow := scripts(w)[0] // no other has been needed so far
	waiting := func() (pids []int) {
		e2e.Eventually(t, "one that waits for the next script, which gets it", func() bool {
			pids = slices.DeleteFunc(scripts(w), func(pid int) bool { return pid == slow })
			return len(pids) == 1
		})
		return pids
	}
	require.Equal(t, "1", c.LuaText("return 1"))
	for n, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM, syscall.SIGABRT} {
		runs := waiting()
		id := beginLua(c, `b.t{} while true do end`)
		b.WaitReceived("tools/call", 2+2*n)
		require.NoError(t, syscall.Kill(runs[0], sig))
		end := c.End(id)
		require.Equal(t, "true", string(e2e.At(end.Result, "isError")), "%v: %s", sig, end.Raw)
		require.Contains(t, e2e.Str(end.Result, "content", 0, "text"), "the script's process exited unexpectedly", sig)

		next := waiting()
		require.NoError(t, syscall.Kill(next[0], sig))
		gone(t, next)
		require.Equal(t, "b:t:{}", c.LuaText(`return b.t{}`), sig)
	}
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "went on", e2e.Str(c.End(other).Result, "content", 0, "text"))
}

func TestScriptsEndWithTheirCallers(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Lua = e2e.Obj{"timeout": "10m", "memory": "256MiB"}
		b := calling(w)
		calls := 0
		ends := func(c *e2e.Client, script string, how func(id string)) {
			id := beginLua(c, script)
			calls++
			b.WaitReceived("tools/call", calls)
			there := scripts(w) // this one, and the waiting ones
			how(id)
			e2e.Eventually(t, "the end of the script's process", func() bool { return len(alive(there)) < len(there) })
		}
		keeper := connect(e2e.Obj{})
		for _, script := range []string{"while true do end", endless["tail calls"], "while true do pcall(function() while true do end end) end"} {
			ends(keeper, "b.t{} "+script, func(id string) { keeper.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)}) })
		}
		if keeper.Web == nil { // otherwise no server is notified
			leaves := connect(e2e.Obj{})
			ends(leaves, "b.hang{}", func(string) { leaves.Close() })
			dies := w.BridgeToRunning()
			ends(dies, "b.hang{}", func(string) { dies.Prog.Signal(syscall.SIGKILL) })
		}
		keeper.Ok("ping", nil)
	})
}

func TestNoScriptOutlivesItsGateway(t *testing.T) {
	t.Parallel()
	for sig, all := range map[syscall.Signal][]string{
		syscall.SIGTERM: {"b.hang{}"}, // the gateway waits for it first, a while
		syscall.SIGINT:  {endless["tail calls"]},
		syscall.SIGKILL: {endless["tail calls"], "while true do end", "b.hang{}"},
	} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := e2e.WithMeta(t)
			w.Lua = e2e.Obj{"timeout": "10m"}
			b := calling(w)
			s := w.Serve()
			c := s.Client(true)
			for n, script := range all {
				beginLua(c, "b.t{} "+script)
				b.WaitReceived("tools/call", n+1)
			}
			pids := scripts(w)
			require.GreaterOrEqual(t, len(pids), len(all))
			s.Signal(sig)
			s.Ends(e2e.Patience)
			gone(t, pids)
		})
	}
}

func TestScriptsOfTheShellEndWithTheirCommand(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Lua = e2e.Obj{"timeout": "10m"}
	b := calling(w)
	file := filepath.Join(w.Dir, "script.lua")
	require.NoError(t, os.WriteFile(file, []byte("b.t{} "+endless["tail calls"]), 0o600))
	for n, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		p := w.Start(nil, "lua", file)
		b.WaitReceived("tools/call", n+1)
		pids := workersOf(strconv.Itoa(p.Cmd.Process.Pid))
		p.Signal(sig)
		p.Ends(e2e.Patience)
		gone(t, pids)
	}
	e2e.Eventually(t, "the servers' end", func() bool { return len(w.Processes("testserver")) == 0 })
}

// A running version continues to work after its file was replaced.
func TestScriptsRunWhenTheProgramIsReplaced(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Write()
	old := filepath.Join(w.Dir, "old-goblin")
	require.NoError(t, exec.Command("cp", e2e.Goblin, old).Run()) // a file that we write is busy in children that we start meanwhile
	c := w.PipeTo(old, "stdio", "--standalone")
	c.Init()
	require.NoError(t, os.Remove(old))
	require.NoError(t, os.WriteFile(old, []byte("#!/bin/sh\nexit 1\n"), 0o700))
	require.Equal(t, "1", c.LuaText("return 1"))
	require.Equal(t, "2", c.LuaText("return 2"))
}

func TestTailCallsEndWithTheirTimeOverEveryFront(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Lua = e2e.Obj{"timeout": "1s"}
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
		c := connect(e2e.Obj{})
		id := beginLua(c, endless["tail calls"])
		require.Contains(t, c.CallText("b_t", e2e.Obj{}), "b:t")
		require.Contains(t, e2e.Str(c.End(id).Result, "content", 0, "text"), "timeout")
		require.Equal(t, "2", c.LuaText("return 1 + 1"))
	})
}

func TestErrorsOfScriptsAreBounded(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		const most = 4 << 10
		w.Lua = e2e.Obj{"timeout": "30s", "output": "4KiB"}
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "calls": e2e.Obj{
			"t": e2e.Obj{"isError": true, "content": []e2e.Obj{{"type": "text", "text": strings.Repeat("long ", 100000)}}},
		}})
		c := connect(e2e.Obj{})
		failing := []string{
			`error(string.rep("x", 5e6))`, `error(("x"):rep(5e5), 0)`, `error({message = ("x"):rep(5e5)})`,
			`error({message = "m", server = ("x"):rep(5e5), tool = ("x"):rep(5e5)})`,
			`error(setmetatable({}, {__tostring = function() return ("x"):rep(5e5) end}))`,
			`local ok, e = pcall(error, ("x"):rep(5e5)) error(e, 0)`, `assert(nil, ("x"):rep(5e5))`, `assert(false, {message = ("x"):rep(5e5)})`,
			`coroutine.wrap(function() error(("x"):rep(5e5)) end)()`, `all{function() error(("x"):rep(5e5)) end}`,
			`xpcall(error, function() return 1 end) error(("\0\1\27"):rep(2e5))`, `return nothing[("x"):rep(5e5)].y`, `b[("x"):rep(4000)]()`,
			`b.t{}`, `print(("x"):rep(4000)) b.t{}`, `print(("x"):rep(4090)) error(("x"):rep(5e5))`, `for i = 1, 1e9 do print(i) end`,
			`while true do print("") end`, `print(("x"):rep(1e6))`, `return ("x"):rep(1e6)`, `result(("x"):rep(4000)) error(("x"):rep(5e5))`,
			`local x = ` + strings.Repeat("y", 60000) + ` z`, `local ` + strings.Repeat("y", 60000) + ` = = 1`,
		}
		if c.Web != nil { // each client gets errors in another way
			failing = failing[:3]
		}
		failing = e2e.Variants(3, failing...)
		for _, script := range failing {
			result := c.Lua(script)
			require.Equal(t, "true", string(e2e.At(result, "isError")), "%.100s: %.300s", script, result)
			require.LessOrEqual(t, texts(result), most+400, "%.100s", script)
		}
		require.Equal(t, "5000", c.LuaText(`local ok, e = pcall(error, ("x"):rep(5000), 0) return #e`), "the script's own affair")
	})
}
