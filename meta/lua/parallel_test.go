package lua_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"goblin/meta/lua"
)

func TestAll(t *testing.T) {
	t.Parallel()
	check(t, []spec{
		{"calls, in order", `return all{calculator.add{a=1,b=1}, calculator.add{a=2,b=2}, 5}`, `[{"sum":2},{"sum":4},5]`},
		{"awaited calls", `return all{calculator.add{a=1,b=1}:await().sum, calculator.add{a=2,b=2}:await().sum}`, `[2,4]`},
		{"functions", `return all{function() return 1 end, function() end}`, `[1,null]`},
		{"a list of functions", `local fs = {} for i = 1, 20 do fs[i] = function() return calculator.add{a=i,b=0}.sum end end return all(fs)`, `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]`},
		{"functions that calls give", `local function later(n) return function() return n end end return all{later(1), later(2)}`, `[1,2]`},
		{"within each other", `return all{all{calculator.add{a=1,b=1}, 2}, 3}`, `[[{"sum":2},2],3]`},
		{"nothing", `return all{}`, `[]`},
		{"with arguments of a function", `local function f(...) return all{notes.echo{n = (...)}.n} end return f(4)`, `[4]`},
		{"a function of the script's own", `local function all(t) return #t .. t[1].sum end return all{calculator.add{a=1,b=1}, 2}`, `"22"`},
		{"pcall within", `return all{pcall(calculator.div, {a=1,b=0}), calculator.add{a=1,b=1}.sum}`, `[false,2]`},
		{"coroutines within", `return all{coroutine.wrap(function() coroutine.yield(calculator.add{a=1,b=1}.sum) end)(), 1}`, `[2,1]`},
		{"errors raise after all ended", `local n = 0 local ok, e = pcall(all, {
			function() calculator.div{a=1,b=0} end, function() calculator.add{a=1,b=1} n = n + 1 end, function() error("later") end })
			return {ok, e.message, n}`, `[false,"division by zero",1]`},
	})
	t.Run("without end within each other", func(t *testing.T) {
		_, e := runFailing(t.Context(), t, `local function f() return all{f()} end f()`, lua.Limits{Memory: 8 << 20, Timeout: time.Minute})
		if e == nil || e.Kind != lua.Memory {
			t.Fatal(e)
		}
	})
}

// Each call waits for eight, so the script finishes only if eight run at once.
func TestAllRunsEightCallsAtOnce(t *testing.T) {
	t.Parallel()
	h := newFakeGateway(t)
	var mu sync.Mutex
	arrived, open := 0, make(chan struct{})
	h.tools["notes_slow"] = func(ctx context.Context, _ json.RawMessage) (string, error) {
		mu.Lock()
		if arrived++; arrived == 8 {
			close(open)
		}
		mu.Unlock()
		select {
		case <-open:
			return text("done"), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	r := newRunner()
	defer r.Close()
	res, err := r.Run(t.Context(), `local fs = {} for i = 1, 24 do fs[i] = notes.slow end return #all(fs)`, h, lua.Limits{Calls: 100, Timeout: 30 * time.Second})
	if err != nil || string(res.JSON) != "24" {
		t.Fatalf("%s, %v", res.JSON, err)
	}
	if h.most.Load() != 8 {
		t.Fatalf("%d at once", h.most.Load())
	}
}

func TestABusyScriptDelaysNoOther(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			_, err := runner.Run(ctx, endless, newFakeGateway(t), lua.Limits{Timeout: time.Minute})
			var e *lua.Error
			if !errors.As(err, &e) || e.Kind != lua.Cancelled {
				t.Error(err)
			}
		})
	}
	if _, err := run(t, newFakeGateway(t), `return calculator.add{a=1,b=1}`); err != nil {
		t.Error(err)
	}
	cancel()
	wg.Wait()
}

func FuzzScript(f *testing.F) {
	for _, s := range []string{
		`local s = ("x"):rep(1e9)`,
		`return all{calculator.add{a=1,b=2}, function() return json.decode("[1]") end}`,
		`local t = {} t[1], t.x = 1, 2 return t, ("a"):gsub("%w", "%0"), string.format("%5.1f", 1)`,
		`for k, v in pairs(servers) do print(k, v) end goto x ::x::`,
		`local c = coroutine.wrap(function(...) pcall(coroutine.yield, ...) end) c(1) c() return c()`,
		`return xpcall(error, tostring, {}), #resources.list{mime="*/*"}, search("x")`,
	} {
		f.Add(s)
	}
	h := newFakeGateway(f)
	f.Fuzz(func(t *testing.T, script string) {
		res, err := runner.Run(t.Context(), script, h, lua.Limits{
			Timeout: 2 * time.Second, Memory: 8 << 20, Output: 4 << 10, Calls: 20,
		})
		if res.JSON != nil && !json.Valid(res.JSON) {
			t.Fatalf("not JSON: %q", res.JSON)
		}
		var e *lua.Error
		if err != nil && (!errors.As(err, &e) || e.Kind == "" || e.Message == "") {
			t.Fatalf("%#v", err)
		}
		if len(res.Printed)+len(res.JSON) > 4<<10 {
			t.Fatalf("%d bytes of output", len(res.Printed)+len(res.JSON))
		}
	})
}
