package lua_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"goblin/meta/lua"
)

// runFailing runs a script and returns its error, or nil if it succeeds.
func runFailing(ctx context.Context, t *testing.T, script string, l lua.Limits) (lua.Result, *lua.Error) {
	t.Helper()
	res, err := runner.Run(ctx, script, newFakeGateway(t), l)
	var e *lua.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%T is not a *lua.Error", err)
	}
	return res, e
}

const endless = "while true do end"

// hostile are scripts with unlimited use of memory, in different ways. More are in
// limits_faults_test.go.
var hostile = []namedScript{
	{"a table that grows", `local t = {} for i = 1, 1e9 do t[i] = i end`},
	{"strings that double", `local s = "x" while true do s = s .. s end`},
	{"string.rep", `local s = ("x"):rep(1e9)`},
	{"suspended coroutines", `local t = {} while true do local c = coroutine.wrap(function() local s = ("x"):rep(1e5) coroutine.yield() return s end) c() t[#t + 1] = c end`},
	{"caught", `local t = {} while true do pcall(function() for i = 1, 1e9 do t[#t + 1] = i end end) end`},
}

type namedScript struct{ name, script string }

func TestMemoryLimit(t *testing.T) { memoryLimit(t, hostile) }

func memoryLimit(t *testing.T, scripts []namedScript) {
	for _, c := range scripts {
		t.Run("R1-17 "+c.name, func(t *testing.T) {
			before := trackGrowth(t)
			_, e := runFailing(t.Context(), t, c.script, lua.Limits{Memory: 4 << 20, Timeout: time.Minute, Calls: 1})
			if e == nil || e.Kind != lua.Memory || !strings.Contains(e.Error(), "the script needs more than 4 MiB of memory (lua.memory)") {
				t.Fatalf("%s: %v", c.script, e)
			}
			// Garbage counts too, so the limit is only a rough guard.
			if peak := before(); peak > 400<<20 {
				t.Errorf("the process grew by %d MiB", peak>>20)
			}
		})
	}
}

// trackGrowth returns a function that returns the growth of the process, in bytes.
func trackGrowth(t *testing.T) func() uint64 {
	t.Helper()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	return func() uint64 {
		var after runtime.MemStats
		runtime.ReadMemStats(&after)
		return after.Sys - min(before.Sys, after.Sys)
	}
}

func TestAnswersCountAsMemory(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{
		text(strings.Repeat("x", 4<<20)),
		structured(`[` + strings.Repeat(`"a long enough string",`, 1e5) + `1]`),
		structured(`{"a":[` + strings.Repeat(`{},`, 5e4) + `1]}`),
	} {
		h := newFakeGateway(t)
		h.tools["notes_slow"] = func(context.Context, json.RawMessage) (string, error) { return answer, nil }
		_, err := runner.Run(t.Context(), "\npcall(notes.slow)", h, lua.Limits{Memory: 2 << 20, Calls: 1, Timeout: time.Minute})
		var e *lua.Error
		if !errors.As(err, &e) || e.Kind != lua.Memory || e.Line != 2 && e.Line != 0 { // 0: not stoppable
			t.Errorf("%.60s…: %v", answer, err)
		}
	}
}

// Every kind of nesting that uses Go's stack, within the others.
func TestNestingIsBounded(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		`local t t = setmetatable({}, {__index = function(_, k)
			if k < 100 then return t[k + 1] end
			return select(2, pcall(function() return t[1] end))
		end}) return tostring(t[1])`,
		`local function f(n)
			if n < 60 then return (("x"):gsub("x", function() return f(n + 1) end)) end
			return tostring(coroutine.wrap(function() return f(1) end)())
		end return f(1)`,
		`local function f(n)
			if n < 60 then table.sort({1, 2}, function() f(n + 1) end) return end
			local ok, e = coroutine.resume(coroutine.create(f), 1) error(e, 0)
		end f(1)`,
	} {
		if _, e := runFailing(t.Context(), t, script, lua.Limits{Timeout: time.Minute, Memory: 8 << 20}); e == nil || e.Kind != lua.Memory {
			t.Errorf("%s\n%v", script, e)
		}
	}
}

func TestMemoryIsWhatTheScriptKeeps(t *testing.T) {
	t.Parallel()
	keepsLittle(t, []namedScript{
		{"garbage is free", `for i = 1, 4e4 do local t = {i, {}} local s = "x" .. i end return 1`},
		{"shared strings count once", `local s, t = ("x"):rep(1e5), {} for i = 1, 1e3 do t[i] = s end return 1`},
		{"parts of strings do not hold the whole", `local t = {} for i = 1, 12 do t[i] = (("x"):rep(1e6) .. i):sub(1, 100) end return 1`},
		{"coroutines that ended", `for i = 1, 1000 do coroutine.wrap(function() end)() end return 1`},
	})
}

// keepsLittle runs scripts that allocate more than they keep. More are in
// limits_faults_test.go.
func keepsLittle(t *testing.T, scripts []namedScript) {
	t.Helper()
	for _, c := range scripts {
		t.Run(c.name, func(t *testing.T) {
			before := trackGrowth(t)
			res, e := runFailing(t.Context(), t, c.script, lua.Limits{Memory: 4 << 20, Timeout: time.Minute})
			if e != nil || string(res.JSON) != "1" {
				t.Fatalf("%s: %v", c.script, e)
			}
			if peak := before(); peak > 400<<20 {
				t.Errorf("the process grew by %d MiB", peak>>20)
			}
		})
	}
}

// slow are scripts that never finish. More are in limits_faults_test.go.
var slow = []namedScript{
	{"a loop", endless},
	{"a catastrophic pattern", `return ("a"):rep(1e4):find(` + fmt.Sprintf("%q", strings.Repeat("%w*", 20)+"!") + `)`},
	{"a call that does not end", `return notes.slow{}`},
}

func TestTimeLimit(t *testing.T) { timeLimit(t, slow) }

func timeLimit(t *testing.T, scripts []namedScript) {
	for _, c := range scripts {
		t.Run("R1-17 "+c.name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			_, e := runFailing(t.Context(), t, c.script, lua.Limits{Timeout: 150 * time.Millisecond, Calls: 10})
			// On a slow machine the process may be killed. The line is unknown then.
			if e == nil || e.Kind != lua.Timeout || e.Message != "the script ran longer than 150ms (lua.timeout)" || e.Line > 1 {
				t.Fatalf("%+v", e)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestCallLimit(t *testing.T) {
	t.Parallel()
	h := newFakeGateway(t)
	res, err := runner.Run(t.Context(), "for i = 1, 10 do\n pcall(calculator.add, {a=i, b=1})\nend return 1", h, lua.Limits{Calls: 3})
	var e *lua.Error
	if !errors.As(err, &e) || e.Kind != lua.Calls || e.Error() != "script:2: the script makes more than 3 calls (lua.calls)" {
		t.Fatal(err)
	}
	if res.Calls != 3 || len(h.requests) != 3 {
		t.Fatalf("%d calls, %d requests", res.Calls, len(h.requests))
	}
	if _, e := runFailing(t.Context(), t, "search('x')", lua.Limits{}); e == nil || e.Kind != lua.Calls {
		t.Fatalf("no calls are allowed: %v", e)
	}
}

func TestOutputLimit(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		`while true do print("x") end`,
		`return ("x"):rep(1001)`,
		`result(("x"):rep(1001))`,
		`print(("x"):rep(600)) return ("x"):rep(600)`,
		`local t = {} for i = 1, 1000 do t[i] = 1 end return t`,
		`return ("\n"):rep(600)`, // twice as long when escaped
		`pcall(print, ("x"):rep(2000)) return 1`,
	} {
		res, e := runFailing(t.Context(), t, script, lua.Limits{Output: 1000})
		if e == nil || e.Kind != lua.Output || e.Message != "the script's result and prints exceed 1000 bytes (lua.output)" {
			t.Errorf("%s: %v", script, e)
		}
		if len(res.Printed)+len(res.JSON) > 1000 {
			t.Errorf("%s: %d bytes", script, len(res.Printed)+len(res.JSON))
		}
	}
	if _, e := runFailing(t.Context(), t, `for i = 1, 100 do result(("x"):rep(900)) end`, lua.Limits{Output: 1000}); e != nil {
		t.Errorf("replaced results do not count: %v", e)
	}
}

func TestScriptLimit(t *testing.T) {
	t.Parallel()
	_, e := runFailing(t.Context(), t, strings.Repeat(" ", lua.MaxScript+1), lua.Limits{})
	if e == nil || e.Kind != lua.Syntax || !strings.Contains(e.Message, "the limit is 64 KiB") {
		t.Error(e)
	}
	hugeScripts(t, "return "+strings.Repeat("{", 30000)+strings.Repeat("}", 30000))
}

// hugeScripts runs scripts that the compiler accepts or refuses.
func hugeScripts(t *testing.T, scripts ...string) {
	t.Helper()
	for _, script := range scripts {
		if _, e := runFailing(t.Context(), t, script, lua.Limits{}); e != nil && e.Kind != lua.Syntax && e.Kind != lua.Memory {
			t.Errorf("%.40s…: %v", script, e)
		}
	}
}

func TestCancelling(t *testing.T) {
	for _, c := range []struct{ name, script string }{
		{"R1-17 a loop", "notes.echo{} " + endless},
		{"R1-17 a call", "notes.slow{}"},
		{"R1-17 parallel calls", "all{notes.slow{}, notes.slow{}, function() notes.echo{} while true do end end}"},
		{"R1-17 a call in pcall", "while true do pcall(notes.slow) end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			h := newFakeGateway(t)
			for _, tool := range []string{"notes_slow", "notes_echo"} {
				answer := h.tools[tool]
				h.tools[tool] = func(ctx context.Context, args json.RawMessage) (string, error) {
					cancel()
					return answer(ctx, args)
				}
			}
			_, err := runner.Run(ctx, c.script, h, lua.Limits{Timeout: time.Minute, Calls: 10})
			if kindOf(err) != lua.Cancelled || !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, e := runFailing(ctx, t, "return 1", lua.Limits{}); e == nil || e.Kind != lua.Cancelled {
		t.Fatal(e)
	}
}
