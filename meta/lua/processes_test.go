package lua_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"goblin/meta/lua"
	"goblin/meta/lua/worker"
)

func kindOf(err error) lua.Kind {
	var e *lua.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Kind
}

// largeScript returns a script that uses the given MiB and then calls notes.slow.
func largeScript(mib int) string {
	return fmt.Sprintf(`local t = {} for i = 1, %d do t[i] = ("x"):rep(2^20) .. i end notes.slow() return #t`, mib)
}

// sharedRunner runs scripts that share memory.
type sharedRunner struct {
	t      *testing.T
	runner *lua.Runner
	limits lua.Limits
	called chan struct{} // one for each call of notes.slow
	goOn   chan struct{}
	all    sync.WaitGroup
}

func newSharedRunner(t *testing.T) *sharedRunner {
	r := lua.NewRunner(program, worker.Command)
	t.Cleanup(r.Close)
	return &sharedRunner{
		t: t, runner: r, limits: lua.Limits{Calls: 10, Timeout: 2 * time.Minute, Memory: 16 << 20},
		called: make(chan struct{}, 100), goOn: make(chan struct{}),
	}
}

func (c *sharedRunner) run(ctx context.Context, script string) (outcome <-chan error) {
	h := newFakeGateway(c.t)
	h.tools["notes_slow"] = func(ctx context.Context, _ json.RawMessage) (string, error) {
		c.called <- struct{}{}
		select {
		case <-c.goOn:
		case <-ctx.Done():
		}
		return text("x"), nil
	}
	out, limits := make(chan error, 1), c.limits
	c.all.Go(func() {
		_, err := c.runner.Run(ctx, script, h, limits)
		out <- err
	})
	return out
}

// Four scripts hold much memory while others start and finish.
func TestScriptsShareTheirMemory(t *testing.T) {
	t.Parallel()
	c := newSharedRunner(t)
	var holders []<-chan error
	for range 4 {
		holders = append(holders, c.run(t.Context(), largeScript(5)))
		<-c.called
	}
	waits := c.run(t.Context(), largeScript(5))
	t.Run("one that waits ends with its time", func(t *testing.T) {
		limits := c.limits
		c.limits.Timeout = 200 * time.Millisecond
		if kind := kindOf(<-c.run(t.Context(), largeScript(5))); kind != lua.Timeout {
			t.Errorf("ended as %q", kind)
		}
		c.limits = limits
	})
	t.Run("or if it is cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last := c.run(ctx, largeScript(5))
		time.AfterFunc(100*time.Millisecond, cancel)
		if kind := kindOf(<-last); kind != lua.Cancelled {
			t.Errorf("ended as %q", kind)
		}
	})
	t.Run("small ones need not wait", func(t *testing.T) {
		if _, err := c.runner.Run(t.Context(), `local t = {} for i = 1, 1e4 do t[i] = i end return #t`, newFakeGateway(t), c.limits); err != nil {
			t.Error(err)
		}
	})
	t.Run("one that ends waits for no memory", func(t *testing.T) {
		h, answered := newFakeGateway(t), make(chan struct{})
		h.tools["notes_slow"] = func(context.Context, json.RawMessage) (string, error) {
			defer close(answered)
			return text(strings.Repeat("x", 5<<20)), nil // must wait
		}
		h.tools["calculator_add"] = func(context.Context, json.RawMessage) (string, error) {
			<-answered
			return text("x"), nil
		}
		limits := c.limits
		limits.Calls, limits.Timeout = 2, time.Hour
		_, err := c.runner.Run(t.Context(), `all{notes.slow(), function() calculator.add{} calculator.add{} end}`, h, limits)
		if kindOf(err) != lua.Calls {
			t.Error(err)
		}
	})
	select {
	case err := <-waits:
		t.Errorf("the fifth did not wait: %v", err)
	case <-c.called:
		t.Error("five hold much memory")
	default:
	}
	close(c.goOn)
	for _, outcome := range append(holders, waits) {
		if err := <-outcome; err != nil {
			t.Error(err)
		}
	}
}

func TestNamesThatNoServerHasAreRefusedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		`return calculator[("x"):rep(5000)]{}`, `return cold[("x_"):rep(5000)]{}`, `return resources.read(("x"):rep(70000))`,
		`return prompts.get(("x"):rep(5000))`, `return search(("x"):rep(5000))`, `return tools.list{server = ("x"):rep(5000)}`,
		`return resources.list{mime = ("*a"):rep(5000)}`,
	} {
		h := newFakeGateway(t)
		if _, err := run(t, h, script); err == nil || !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("%s: %v", script, err)
		}
		if len(h.requests) > 0 {
			t.Errorf("%s: %.100s", script, h.requests)
		}
	}
}

// A request that continues after its script delays no other script.
func TestRequestsThatDoNotEndAreAbandoned(t *testing.T) {
	t.Parallel()
	r := newRunner()
	h, goOn := newFakeGateway(t), make(chan struct{})
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	h.tools["notes_slow"] = func(context.Context, json.RawMessage) (string, error) {
		cancel()
		<-goOn
		defer close(ended)
		return text("too late"), nil
	}
	res, err := r.Run(ctx, "print('before')\nnotes.slow()", h, lua.Limits{Calls: 1})
	if kindOf(err) != lua.Cancelled || res.Printed != "before\n" || res.Calls != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	if len(h.progress) > 0 {
		t.Errorf("progress was reported: %s", h.progress)
	}
	close(goOn)
	r.Close()
	select {
	case <-ended:
	default:
		t.Error("Close did not wait")
	}
	if _, err := r.Run(t.Context(), "return 1", h, lua.Limits{}); kindOf(err) != lua.Cancelled {
		t.Errorf("after Close: %v", err)
	}
}

func TestProcessesThatAreNoScripts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		command []string
		want    string
	}{
		{"no program", []string{filepath.Join(t.TempDir(), "none")}, "cannot start the script's process: "},
		{"one that ends", []string{"/bin/sh", "-c", "echo gone wrong >&2; echo more >&2; exit 7"}, "the script's process exited unexpectedly (exit status 7: gone wrong)"},
		{"one that says nothing", []string{"/bin/sh", "-c", "exit 0"}, "the script's process exited unexpectedly ("},
		{"one that says anything", []string{"/bin/sh", "-c", "cat /proc/self/maps; exec sleep 60"}, "the script's process exited unexpectedly ("},
		{"one that is killed", []string{"/bin/sh", "-c", "kill -9 $$"}, "the script's process exited unexpectedly (signal: killed)"},
		{"one that breaks off", []string{"/bin/sh", "-c", `printf '\000\000\000\020'`}, "the script's process exited unexpectedly ("},
		{"one that says nothing and stays", []string{"/bin/sh", "-c", "exec sleep 60"}, "the script ran longer than 300ms (lua.timeout)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat("/bin/sh"); err != nil {
				t.Skip(err)
			}
			r := lua.NewRunner(c.command...)
			defer r.Close()
			_, err := r.Run(t.Context(), "return 1", newFakeGateway(t), lua.Limits{Timeout: 300 * time.Millisecond})
			var e *lua.Error
			if !errors.As(err, &e) || !strings.HasPrefix(e.Message, c.want) {
				// A slow machine may not reach this point.
				if e == nil || e.Kind != lua.Timeout {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestAProcessWaitsForTheNextScript(t *testing.T) {
	t.Parallel()
	r := newRunner()
	for range 3 {
		r.Prepare()
		r.Prepare()
		if _, err := r.Run(t.Context(), "return 1", newFakeGateway(t), lua.Limits{Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	r.Prepare()
	r.Close() // TestMain checks for remaining goroutines
	r.Prepare()
}

func TestErrorTextsAreOutput(t *testing.T) {
	t.Parallel()
	longErrors(t, []string{
		`error(("x"):rep(3e5))`, `error({message = ("x"):rep(3e5)})`, `coroutine.wrap(function() error(("x"):rep(3e5)) end)()`,
		`return _G[("x"):rep(1e6)].y`, `error(setmetatable({}, {__tostring = function() return ("x"):rep(3e5) end}))`,
		`print(("x"):rep(1500)) error(("x"):rep(3e5))`,
		`return notes.raw{result = '{"isError":true,"content":[{"type":"text","text":"' .. ("x"):rep(1e6) .. '"}]}'}`,
		`local ` + strings.Repeat("x", 60000) + ` = = 1`,
	})
}

// longErrors runs scripts whose errors exceed the limit. More are in
// limits_faults_test.go.
func longErrors(t *testing.T, scripts []string) {
	t.Helper()
	const most = 2000
	for _, script := range scripts {
		res, err := runner.Run(t.Context(), script, newFakeGateway(t), lua.Limits{Output: most, Calls: 5, Timeout: time.Minute})
		if err == nil {
			t.Errorf("%.60s: no error", script)
			continue
		}
		if n := len(err.Error()) + len(res.Printed) + len(res.JSON); n > most+300 {
			t.Errorf("%.60s: %d bytes: %.80s", script, n, err)
		}
	}
}
