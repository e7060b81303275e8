//go:build faults

package lua_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"goblin/meta/lua"
)

// The scripts in limits_test.go cover the visible behavior. These further ones run
// rarely.

func TestMemoryLimitInFurtherWays(t *testing.T) {
	t.Parallel()
	memoryLimit(t, []namedScript{
		{"a gap in an array", `local t = {} t[6e7] = 1`},
		{"gsub", `return #(("x"):rep(1e6)):gsub("x", ("y"):rep(1000))`},
		{"json.encode", `local t = {} local s = ("x"):rep(1e6) for i = 1, 1000 do t[i] = s end return #json.encode(t)`},
		{"arguments", `local function f(...) return f(("x"):rep(1e6), ...) end f()`},
		{"in a coroutine", `coroutine.wrap(function() local t = {} for i = 1, 1e9 do t[i] = i end end)()`},
		{"a table that grows by names", `local t = {} for i = 1, 1e9 do t["k" .. i] = true end`},
		{"tables in tables", `local t = {} while true do t = {t} end`},
		{"tables with fields", `local t = {} while true do t = {a = t, b = {}, c = {x = 1}} end`},
		{"one huge concatenation", `local s = ("x"):rep(1e6) s = s` + strings.Repeat(" .. s", 50) + ` s = s` + strings.Repeat(" .. s", 50)},
		{"string.rep beyond all numbers", `local s = ("xxxxxxxx"):rep(2^62)`},
		{"many strings", `local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(100) .. i end`},
		{"closures", `local f = function() end while true do local g = f f = function() return g end end`},
		{"a gap in a constructor", `local t = {[6e7] = 1}`},
		{"gaps in many arrays", `local t = {} while true do local u = {} t[#t + 1] = u u[1e6] = 1 u[1e6] = nil end`},
		{"rawset and insert with gaps", `local t = {} pcall(rawset, t, 6e7, 1) table.insert(t, 6e7, 1)`},
		{"removed keys", `local t = {} for i = 1, 1e9 do local k = "k" .. i t[k] = 1 t[k] = nil end`},
		{"table.concat", `local t = {} for i = 1, 1000 do t[i] = ("x"):rep(1e5) end return #table.concat(t)`},
		{"gsub of captures", `return #(("x"):rep(1e6)):gsub("(x+)", ("%1"):rep(1000))`},
		{"format", `local s = ("x"):rep(1e7) return #string.format(("%s"):rep(20), s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s)`},
		{"json.decode", `local s = "[" .. ("[],"):rep(5e6) .. "1]" return #json.decode(s)`},
		{"coroutines", `local t = {} while true do t[#t + 1] = coroutine.create(function() end) end`},
		{"values that only the stack holds", `local function f(n) return {("x"):rep(1e6) .. n, f(n + 1)} end f(1)`},
		{"globals", `for i = 1, 1e9 do _G["g" .. i] = i end`},
		{"tables that get fields later", `local t = {} while true do local u = {} u.a = t t = u end`},
		{"metatables", `local t = {} while true do t = setmetatable({}, t) end`},
		{"upper", `local s = ("x"):rep(2e7) return #s:upper() + #s:lower():reverse()`},
		{"all", `local fs = {} for i = 1, 100 do fs[i] = function() return ("x"):rep(1e6) .. i end end return #all(fs)`},
		{"a finished error handler", `xpcall(function() local t = {} for i = 1, 1e9 do t[i] = i end end, function() while true do end end)`},
	})
}

func TestMemoryIsWhatTheScriptKeepsInFurtherWays(t *testing.T) {
	t.Parallel()
	keepsLittle(t, []namedScript{
		{"large garbage is free", `for i = 1, 12 do local s = ("x"):rep(1e6) .. i end return 1`},
		{"a buffer that is reused", `local t = {} for n = 1, 20 do for i = 1, 5e3 do t[i] = i .. "x" end end return 1`},
		{"nor do captures", `local t = {} for i = 1, 12 do t[i] = (i .. ("x"):rep(1e6)):match("^(%d+)") end return 1`},
		{"half of it is held", `local t = {} for i = 1, 5e4 do t[i] = i end for i = 1, 5e4 do local s = {} end return 1`},
		{"pcalls", `for i = 1, 1e4 do pcall(error, i) end return 1`},
	})
}

func TestTimeLimitInFurtherWays(t *testing.T) {
	t.Parallel()
	timeLimit(t, []namedScript{
		{"a loop in pcall", "while true do pcall(function() while true do end end) end"},
		{"a loop in all", "all{function() while true do end end, function() while true do end end}"},
		{"calls that do not end", `return all{notes.slow{}, notes.slow{}, notes.slow{}}`},
		{"a loop in a coroutine", "coroutine.wrap(function() while true do end end)()"},
		{"a loop in a metamethod", "local t = setmetatable({}, {__index = function() while true do end end}) return t.x"},
		{"a loop in an error handler", "xpcall(error, function() while true do end end)"},
		{"a pattern of many empty matches", `return ("a"):rep(3e4):find(".-.-.-.-.-b")`},
		{"a pattern of captures", `return ("a"):rep(1e4):find("(.-)(.-)(.-)%1%2%3b")`},
		{"a set", `return ("a"):rep(1e5):find("[" .. ("b"):rep(1e5) .. "]*c")`},
		{"sorting", `local t = {} for i = 1, 1e4 do t[i] = i end while true do table.sort(t, function(a, b) return a > b end) end`},
		{"removing in front", `local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, table.remove(t, 1)) end`},
		{"unpacking", `local t = {} for i = 1, 5e4 do t[i] = i end while true do pcall(unpack, t) pcall(unpack, t, 1, 1e15) end`},
	})
}

func TestScriptLimitInFurtherWays(t *testing.T) {
	t.Parallel()
	hugeScripts(t, "return "+strings.Repeat("not ", 15000)+"1", "return 1"+strings.Repeat("+1", 30000),
		strings.Repeat("do ", 5000)+strings.Repeat("end ", 5000))
}

func TestErrorTextsAreOutputInFurtherWays(t *testing.T) {
	t.Parallel()
	longErrors(t, []string{
		`error(("x"):rep(3e5), 0)`, `error({message = "m", server = ("s"):rep(3e5)})`,
		`local ok, e = pcall(error, ("x"):rep(3e5)) error(e)`,
		`all{function() error(("x"):rep(3e5)) end}`, `assert(false, ("x"):rep(3e5))`, `local t = {} t[("x"):rep(3e5)]()`,
		`return nothing[("x"):rep(3e5)].y`, `return servers[("x"):rep(1e6)]`, `return calculator.div{a = 1, b = 0, c = 1}`,
		`xpcall(error, function() error(("x"):rep(3e5)) end) error(("\0"):rep(3e5))`,
		`result(("x"):rep(1500)) error(("x"):rep(3e5))`, `print(("x"):rep(1998)) error(("x"):rep(3e5))`,
		`return "` + strings.Repeat("x", 60000), `goto ` + strings.Repeat("x", 60000),
	})
}

func TestAnswersOnTheirWayToScriptsAreBounded(t *testing.T) {
	t.Parallel()
	c := newSharedRunner(t)
	c.limits.Memory = 8 << 20
	h := newFakeGateway(t)
	answer := text(strings.Repeat("x", 7<<20))
	var gate sync.WaitGroup
	gate.Add(8)
	h.tools["notes_slow"] = func(context.Context, json.RawMessage) (string, error) {
		gate.Done()
		gate.Wait()
		return answer, nil
	}
	_, err := c.runner.Run(t.Context(), `return #all{notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow()}`, h, c.limits)
	if kind := kindOf(err); kind != lua.Memory && !strings.Contains(fmt.Sprint(err), "too many scripts need much memory at once") {
		t.Errorf("56 MiB of answers: %v", err)
	}
	if _, err := c.runner.Run(t.Context(), strings.Replace(largeScript(5), "notes.slow()", "", 1), newFakeGateway(t), c.limits); err != nil {
		t.Errorf("the memory of finished runs is not free: %v", err)
	}
}
