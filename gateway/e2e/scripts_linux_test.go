package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// workersOf are the processes of scripts that a process has started: those that run
// one, and the one that waits.
func workersOf(of int) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		cmd, _ := os.ReadFile(dir + "/cmdline")
		if !bytes.Contains(cmd, []byte("script-worker")) {
			continue
		}
		stat, _ := os.ReadFile(dir + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(of) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			pids = append(pids, pid)
		}
	}
	return pids
}

// scripts are the processes of scripts that are there, those that wait included.
func (w *world) scripts() (pids []int) {
	w.t.Helper()
	for _, p := range w.processes("") {
		of, _, _ := strings.Cut(p, " ")
		n, err := strconv.Atoi(of)
		require.NoError(w.t, err)
		pids = append(pids, workersOf(n)...)
	}
	return pids
}

// busy waits for so many scripts that have begun, and gives their processes.
func (w *world) busy(n int) (pids []int) {
	w.t.Helper()
	eventually(w.t, "scripts that run", func() bool {
		pids = slices.DeleteFunc(w.scripts(), func(pid int) bool { return ticks(pid) < 20 })
		return len(pids) >= n
	})
	return pids
}

// ticks is the processor's time that a process has used, in 1/100 s.
func ticks(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// gone waits for the end of processes that belonged to nobody else.
func gone(t *testing.T, pids []int) {
	t.Helper()
	require.NotEmpty(t, pids)
	eventually(t, fmt.Sprintf("the end of %v", pids), func() bool {
		return !slices.ContainsFunc(pids, func(pid int) bool {
			cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			return bytes.Contains(cmd, []byte("script-worker"))
		})
	})
}

func (c *client) beginLua(script string) string {
	c.t.Helper()
	return c.begin("tools/call", obj{"name": "execute_lua", "arguments": obj{"script": script}})
}

// texts are the bytes of all texts of a result.
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

// endless are scripts that do not come to an end by themselves.
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
	"names that there are not":  `while true do pcall(function() return servers[("x"):rep(9999)] end) pcall(function() return b.nothing end) end`,
	"questions of the catalog":  `while true do tools.list{limit = 1000} resources.list{mime = "*a*a*a*a*"} end`,
}

func TestScriptsThatDoNotEndAreEnded(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	w.lua = obj{"timeout": "1s", "memory": "32MiB", "output": "2KiB"}
	w.backend("b", obj{"tools": []obj{tool("t")}})
	c := w.standalone()
	for name, script := range endless {
		began := time.Now()
		id := c.beginLua(script)
		require.Contains(t, c.callText("b_t", obj{}), "b:t", "%s: others go on meanwhile", name)
		end := c.end(id)
		require.Equal(t, "true", string(at(end.Result, "isError")), "%s: %s", name, end.raw)
		text := str(end.Result, "content", 0, "text")
		require.Contains(t, text, "longer than 1s (lua.timeout)", name)
		require.Less(t, time.Since(began), 30*time.Second, name)
	}
	eventually(t, "nothing but the process that waits", func() bool { return len(w.scripts()) <= 1 })
	c.prog.bounded(150)
}

func TestTailCallsEndWithTheirTimeOverEveryFront(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		w.lua = obj{"timeout": "1s"}
		w.backend("b", obj{"tools": []obj{tool("t")}})
		c := connect(obj{})
		id := c.beginLua(endless["tail calls"])
		require.Contains(t, c.callText("b_t", obj{}), "b:t")
		require.Contains(t, str(c.end(id).Result, "content", 0, "text"), "timeout")
		require.Equal(t, "2", c.luaText("return 1 + 1"))
	})
}

func TestScriptsCannotNeedMoreMemoryThanTheyMay(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	w.lua = obj{"timeout": "30s", "memory": "16MiB"}
	c := w.standalone()
	for name, script := range map[string]string{
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
	} {
		result := c.lua(script)
		require.Equal(t, "true", string(at(result, "isError")), "%s: %.300s", name, result)
		require.Contains(t, str(result, "content", 0, "text"), "16 MiB of memory (lua.memory)", name)
	}
	eventually(t, "nothing but the process that waits", func() bool { return len(w.scripts()) <= 1 })
	c.prog.bounded(100)
}

func TestErrorsOfScriptsAreBounded(t *testing.T) {
	overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
		const most = 4 << 10
		w.lua = obj{"timeout": "30s", "output": "4KiB"}
		w.backend("b", obj{"tools": []obj{tool("t")}, "calls": obj{
			"t": obj{"isError": true, "content": []obj{{"type": "text", "text": strings.Repeat("long ", 100000)}}},
		}})
		c := connect(obj{})
		for _, script := range []string{
			`error(string.rep("x", 50e6))`, `error(("x"):rep(5e6), 0)`, `error({message = ("x"):rep(5e6)})`,
			`error({message = "m", server = ("x"):rep(5e6), tool = ("x"):rep(5e6)})`,
			`error(setmetatable({}, {__tostring = function() return ("x"):rep(5e6) end}))`,
			`local ok, e = pcall(error, ("x"):rep(5e6)) error(e, 0)`, `assert(nil, ("x"):rep(5e6))`, `assert(false, {message = ("x"):rep(5e6)})`,
			`coroutine.wrap(function() error(("x"):rep(5e6)) end)()`, `all{function() error(("x"):rep(5e6)) end}`,
			`xpcall(error, function() return 1 end) error(("\0\1\27"):rep(2e6))`, `return nothing[("x"):rep(5e6)].y`, `b[("x"):rep(4000)]()`,
			`b.t{}`, `print(("x"):rep(4000)) b.t{}`, `print(("x"):rep(4090)) error(("x"):rep(5e6))`, `for i = 1, 1e9 do print(i) end`,
			`while true do print("") end`, `print(("x"):rep(1e7))`, `return ("x"):rep(1e7)`, `result(("x"):rep(4000)) error(("x"):rep(5e6))`,
			`local x = ` + strings.Repeat("y", 60000) + ` z`, `local ` + strings.Repeat("y", 60000) + ` = = 1`,
		} {
			result := c.lua(script)
			require.Equal(t, "true", string(at(result, "isError")), "%.100s: %.300s", script, result)
			require.LessOrEqual(t, texts(result), most+400, "%.100s", script)
		}
		require.Equal(t, "5000", c.luaText(`local ok, e = pcall(error, ("x"):rep(5000), 0) return #e`), "the script's own affair")
	})
}

func TestTheProcessOfAScriptHasNothing(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	w.env = append(w.env, "SECRET_OF_GOBLIN=hidden")
	w.backend("b", obj{"tools": []obj{tool("slow")}, "on": obj{"tools/call slow": actions(do("wait", obj{"name": "never"}))}})
	// Editors leave files open for all that they start.
	w.write()
	c := w.pipeTo("/bin/sh", "-c", `exec 9<"$0"; exec "$@"`, w.config, goblin, "stdio", "--standalone")
	c.init()
	id := c.beginLua("b.slow{}")
	w.backends[0].waitEvent("wait", "never")
	pids := w.scripts()
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
		// What is anonymous is how Go's runtime waits.
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
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
	gone(t, pids)
}

func TestAProcessOfAScriptThatDiesCostsThatScriptOnly(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM, syscall.SIGABRT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := withMeta(t)
			b := w.backend("b", obj{"tools": []obj{tool("t"), tool("slow")}, "on": obj{"tools/call slow": actions(do("wait", obj{"name": "go"}))}})
			c := w.standalone()
			other := c.beginLua(`b.slow{} return "went on"`)
			b.waitEvent("wait", "go")
			id := c.beginLua(`while true do end`)
			pids := w.busy(1)
			require.Len(t, pids, 1)
			require.NoError(t, syscall.Kill(pids[0], sig))
			end := c.end(id)
			require.Equal(t, "true", string(at(end.Result, "isError")), "%s", end.raw)
			require.Contains(t, str(end.Result, "content", 0, "text"), "the script's process ended unexpectedly")
			b.do(do("release", obj{"name": "go"}))
			require.Equal(t, "went on", str(c.end(other).Result, "content", 0, "text"))

			eventually(t, "one that waits for the next script", func() bool { return len(w.scripts()) == 1 })
			waits := w.scripts()
			require.NoError(t, syscall.Kill(waits[0], sig))
			gone(t, waits)
			require.Equal(t, "b:t:{}", c.luaText(`return b.t{}`))
		})
	}
}

func TestScriptsEndWithTheirCallers(t *testing.T) {
	for name, script := range map[string]string{"a loop": "while true do end", "tail calls": endless["tail calls"], "caught": "while true do pcall(function() while true do end end) end"} {
		t.Run(name, func(t *testing.T) {
			overEveryFront(t, func(t *testing.T, w *world, connect func(obj) *client) {
				w.lua = obj{"timeout": "10m", "memory": "256MiB"}
				keeper, c := connect(obj{}), connect(obj{})
				id := c.beginLua(script)
				pids := w.busy(1)
				c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
				gone(t, pids)

				c.beginLua(script)
				pids = w.busy(1)
				if c.close != nil && c.web == nil {
					c.close() // the session's end
					gone(t, pids)
				}
				keeper.ok("ping", nil)
			})
		})
	}
}

func TestNoScriptOutlivesItsGateway(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := withMeta(t)
			w.lua = obj{"timeout": "10m"}
			s := w.serve()
			c := s.client(true)
			c.luaText("return 1")
			eventually(t, "one that waits for the next script", func() bool { return len(w.scripts()) == 1 })
			c.beginLua(endless["tail calls"])
			c.beginLua("while true do end")
			w.busy(2)
			pids := w.scripts()
			s.signal(sig)
			s.ends(patience)
			gone(t, pids)
		})
	}
}

func TestScriptsOfTheShellEndWithTheirCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.lua = obj{"timeout": "10m"}
	w.backend("b", obj{"tools": []obj{tool("t")}})
	file := filepath.Join(w.dir, "script.lua")
	require.NoError(t, os.WriteFile(file, []byte(endless["tail calls"]), 0o600))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		p := w.start(nil, "lua", file)
		var pids []int
		eventually(t, "a script that runs", func() bool {
			pids = workersOf(p.cmd.Process.Pid)
			return len(pids) == 1 && ticks(pids[0]) > 20
		})
		p.signal(sig)
		p.ends(patience)
		gone(t, pids)
	}
	eventually(t, "the servers' end", func() bool { return len(w.processes("fakeserver")) == 0 })
}

// The version that runs goes on when another has taken its place.
func TestScriptsRunWhenTheProgramIsReplaced(t *testing.T) {
	t.Parallel()
	w := withMeta(t)
	w.write()
	old := filepath.Join(w.dir, "old-goblin")
	program, err := os.ReadFile(goblin)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(old, program, 0o700))
	c := w.pipeTo(old, "stdio", "--standalone")
	c.init()
	require.NoError(t, os.Remove(old))
	require.NoError(t, os.WriteFile(old, []byte("#!/bin/sh\nexit 1\n"), 0o700))
	require.Equal(t, "1", c.luaText("return 1"))
	require.Equal(t, "2", c.luaText("return 2"))
}
