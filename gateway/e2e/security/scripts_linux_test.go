//go:build e2e

package security

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// workersOf returns the script processes of some parents: the running ones and the
// waiting one.
func workersOf(parents ...string) (pids []int) {
	e2e.EachProcess(func(of string, cmd []byte) {
		if !bytes.Contains(cmd, []byte("script-worker")) {
			return
		}
		stat, _ := os.ReadFile("/proc/" + of + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[0] != "Z" && slices.Contains(parents, fields[1]) {
			pid, _ := strconv.Atoi(of)
			pids = append(pids, pid)
		}
	})
	return pids
}

// scripts returns the script processes of a world.
func scripts(w *e2e.World) []int {
	w.T.Helper()
	var parents []string
	for _, p := range w.Processes("") {
		pid, _, _ := strings.Cut(p, " ")
		parents = append(parents, pid)
	}
	return workersOf(parents...)
}

// gone waits until the processes have exited. They must not serve another test.
func gone(t *testing.T, pids []int) {
	t.Helper()
	require.NotEmpty(t, pids)
	e2e.Eventually(t, fmt.Sprintf("the end of %v", pids), func() bool { return len(alive(pids)) == 0 })
}

// alive returns the processes that still run.
func alive(pids []int) (left []int) {
	for _, pid := range pids {
		if cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(cmd, []byte("script-worker")) {
			left = append(left, pid)
		}
	}
	return left
}

func beginLua(c *e2e.Client, script string) string {
	c.T.Helper()
	return c.Begin("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": script}})
}

// texts returns the size of all texts of a result, in bytes.
func texts(result json.RawMessage) (n int) {
	var r struct {
		Content []struct{ Text string }
	}
	_ = json.Unmarshal(result, &r)
	for _, c := range r.Content {
		n += len(c.Text)
	}
	return n
}

// endless are scripts that never finish.
var endless = map[string]string{
	"tail calls":             `local function f() return f() end return f()`,
	"tail calls in a circle": `local a, b function a(n) return b(n + 1) end function b(n) return a(n) end return a(0)`,
	"tail calls in pcall":    `while true do pcall(function() local function f() return f() end return f() end) end`,
	"tail calls of a method": `local t = {} function t:f() return self:f() end return t:f()`,
	"tail calls beside others": `return all{function() local function f() return f() end return f() end,
		function() local function f() return f() end return f() end}`,
	"tail calls in a coroutine": `return coroutine.wrap(function() local function f() return f() end return f() end)()`,
	"tail calls that fail":      `local function f(n) if n == 0 then error("x") end return f(n - 1) end while true do pcall(f, 1e6) end`,
	"a metamethod":              `local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true do pcall(function() return t[1] end) end`,
	"patterns":                  `return (("a"):rep(1e5)):find(("a*"):rep(30) .. "b")`,
	"gsub":                      `return (("x"):rep(1e6)):gsub(".", function() while true do end end)`,
	"caught errors":             `while true do pcall(error, {}) end`,
	"coroutines":                `while true do coroutine.wrap(function() coroutine.yield(1) end)() end`,
	"a bad comparison":          `local t = {} for i = 1, 2e4 do t[i] = i end while true do pcall(table.sort, t, function() return true end) end`,
	"unknown names":             `while true do pcall(function() return servers[("x"):rep(9999)] end) pcall(function() return b.nothing end) end`,
	"questions of the catalog":  `while true do tools.list{limit = 1000} resources.list{mime = "*a*a*a*a*"} end`,
}

func TestScriptsThatDoNotEndAreEnded(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Lua = e2e.Obj{"timeout": "100ms", "memory": "256MiB", "output": "2KiB"}
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	for _, name := range e2e.Variants(2, slices.Sorted(maps.Keys(endless))...) {
		script := endless[name]
		began := time.Now()
		id := beginLua(c, script)
		require.Contains(t, c.CallText("b_t", e2e.Obj{}), "b:t", "%s: other calls work meanwhile", name)
		end := c.End(id)
		require.Equal(t, "true", string(e2e.At(end.Result, "isError")), "%s: %s", name, end.Raw)
		text := e2e.Str(end.Result, "content", 0, "text")
		require.Contains(t, text, "longer than 100ms (lua.timeout)", name)
		require.Less(t, time.Since(began), 30*time.Second, name)
	}
	e2e.Eventually(t, "only the waiting process", func() bool { return len(scripts(w)) <= 1 })
	c.Prog.Bounded(150)
}

// greedy are scripts that exceed their memory limit.
var greedy = map[string]string{
	"a text of 1 GB":           `return #("x"):rep(1e9)`,
	"a text beyond all":        `return #("xxxxxxxx"):rep(2^61)`,
	"texts that double":        `local s = "x" while true do s = s .. s end`,
	"many arguments to ..":     `local s = ("x"):rep(1e6) while true do s = s .. s .. s .. s .. s .. s end`,
	"tables":                   `local t = {} while true do t = {t, {}, {}} end`,
	"numbers":                  `local t = {} for i = 1, 1e9 do t[i] = i end`,
	"gaps":                     `local t = {} t[6e7] = 1 return #t`,
	"names":                    `for i = 1, 1e9 do _G["n" .. i] = i end`,
	"table.concat":             `local t = {} for i = 1, 1e4 do t[i] = ("x"):rep(1e4) end local u = {} for i = 1, 1e3 do u[i] = table.concat(t) end return #u`,
	"gsub":                     `return #(("x"):rep(1e6)):gsub("x", ("y"):rep(1000))`,
	"format":                   `local s = ("x"):rep(1e7) local t = {} for i = 1, 1e3 do t[i] = string.format("%s%s%s%s", s, s, s, s) end`,
	"coroutines":               `local t = {} while true do local c = coroutine.wrap(function() coroutine.yield() end) c() t[#t + 1] = c end`,
	"closures":                 `local f while true do local g = f f = function() return g end end`,
	"JSON":                     `local t = {} for i = 1, 1e9 do t[i] = json.decode('{"a":[1,2,3,{"b":"c"}]}') end`,
	"encoded":                  `local t = {} for i = 1, 1e3 do t[i] = ("x"):rep(1e4) end local u = {} while true do u[#u + 1] = json.encode(t) end`,
	"caught":                   `local t = {} while true do pcall(function() while true do t[#t + 1] = {} end end) end`,
	"values on the stack":      `local function f(...) return f(("x"):rep(1e6), ...) end return f()`,
	"in all":                   `return all{function() local t = {} while true do t = {t} end end, function() local t = {} while true do t = {t} end end}`,
	"an error that is a gulp":  `local t = {} while true do t[#t + 1] = select(2, pcall(error, ("x"):rep(1e5) .. #t)) end`,
	"what metamethods give":    `local t = setmetatable({}, {__index = function(t, k) local v = {} rawset(t, k, v) return v end}) for i = 1, 1e9 do t["k" .. i].x = i end`,
	"a result that is too big": `local t = {} for i = 1, 1e9 do t[i] = {i} result({}) end`,
}

func TestScriptsCannotNeedMoreMemoryThanTheyMay(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Lua = e2e.Obj{"timeout": "30s", "memory": "4MiB"}
	c := w.Standalone()
	for _, name := range e2e.Variants(2, slices.Sorted(maps.Keys(greedy))...) {
		script := greedy[name]
		result := c.Lua(script)
		require.Equal(t, "true", string(e2e.At(result, "isError")), "%s: %.300s", name, result)
		require.Contains(t, e2e.Str(result, "content", 0, "text"), "4 MiB of memory (lua.memory)", name)
	}
	e2e.Eventually(t, "only the waiting process", func() bool { return len(scripts(w)) <= 1 })
	c.Prog.Bounded(100)
}

func TestTheProcessOfAScriptHasNothing(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Env = append(w.Env, "SECRET_OF_GOBLIN=hidden")
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow")}, "on": e2e.Obj{"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))}})
	// Editors leave files open for all processes that they start.
	w.Write()
	c := w.PipeTo("/bin/sh", "-c", `exec 9<"$0"; exec "$@"`, w.Config, e2e.Goblin, "stdio", "--standalone")
	c.Init()
	id := beginLua(c, "b.slow{}")
	w.Backends[0].WaitEvent("wait", "never")
	pids := scripts(w)
	require.Len(t, pids, 1)
	dir := fmt.Sprintf("/proc/%d/", pids[0])
	environ, err := os.ReadFile(dir + "environ")
	require.NoError(t, err)
	require.Empty(t, string(environ))
	cwd, err := os.Readlink(dir + "cwd")
	require.NoError(t, err)
	require.Equal(t, "/", cwd)
	files, err := os.ReadDir(dir + "fd")
	require.NoError(t, err)
	for _, f := range files {
		to, err := os.Readlink(dir + "fd/" + f.Name())
		require.NoError(t, err)
		// Go's runtime uses the anonymous ones to wait.
		require.Regexp(t, `^(pipe:\[\d+\]|anon_inode:\[event(poll|fd)\])$`, to, f.Name())
	}
	group, err := syscall.Getpgid(pids[0])
	require.NoError(t, err)
	require.Equal(t, pids[0], group, "a terminal's signals are not for it")
	limits, err := os.ReadFile(dir + "limits")
	require.NoError(t, err)
	for _, limit := range []string{`Max cpu time +22 `, `Max file size +0 `, `Max core file size +0 `, `Max open files +16 `} {
		require.Regexp(t, regexp.MustCompile(limit), string(limits))
	}
	c.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	gone(t, pids)
}

// calling is a server whose calls show that a script has begun.
func calling(w *e2e.World) *e2e.Backend {
	return w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("hang")}, "on": e2e.Obj{"tools/call hang": e2e.Actions(e2e.Do("hang"))}})
}
