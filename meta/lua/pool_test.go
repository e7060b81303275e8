package lua_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"goblin/meta/lua"
)

// large is a script that holds so many MiB when it calls notes.slow.
func large(mib int) string {
	return fmt.Sprintf(`local t = {} for i = 1, %d do t[i] = ("x"):rep(2^20) .. i end notes.slow() return #t`, mib)
}

// pooled runs scripts that share memory.
type pooled struct {
	t      *testing.T
	limits lua.Limits
	called chan struct{} // one for each call of notes.slow
	goOn   chan struct{}
	all    sync.WaitGroup
}

func newPooled(t *testing.T, pool int64) *pooled {
	return &pooled{
		t: t, limits: lua.Limits{Pool: lua.NewPool(pool), Calls: 10, Timeout: 2 * time.Minute},
		called: make(chan struct{}, 100), goOn: make(chan struct{}),
	}
}

func (p *pooled) run(ctx context.Context, script string) (outcome <-chan error) {
	h := newHost(p.t)
	h.tools["notes_slow"] = func(context.Context, json.RawMessage) (string, error) {
		p.called <- struct{}{}
		<-p.goOn
		return text("x"), nil
	}
	out := make(chan error, 1)
	p.all.Go(func() {
		_, err := lua.Run(ctx, script, h, p.limits)
		out <- err
	})
	return out
}

func (p *pooled) free() {
	p.t.Helper()
	script := strings.Replace(large(60), "notes.slow()", "", 1)
	if _, err := lua.Run(p.t.Context(), script, newHost(p.t), lua.Limits{Pool: p.limits.Pool, Calls: 10, Timeout: time.Minute}); err != nil {
		p.t.Errorf("the memory of runs that ended is not free: %v", err)
	}
}

func kindOf(err error) lua.Kind {
	var e *lua.Error
	errors.As(err, &e)
	if e == nil {
		return ""
	}
	return e.Kind
}

func TestScriptsShareTheirMemory(t *testing.T) {
	p := newPooled(t, 64<<20)
	first := p.run(t.Context(), large(40))
	<-p.called
	second := p.run(t.Context(), large(40))
	select {
	case err := <-second:
		t.Fatalf("it did not wait: %v", err)
	case <-p.called:
		t.Fatal("both have their memory")
	case <-time.After(300 * time.Millisecond):
	}
	// Small ones need not wait.
	for range 20 {
		if _, err := lua.Run(t.Context(), `local t = {} for i = 1, 1e4 do t[i] = i end return #t`, newHost(t), p.limits); err != nil {
			t.Fatal(err)
		}
	}
	close(p.goOn)
	for _, outcome := range []<-chan error{first, second} {
		if err := <-outcome; err != nil {
			t.Error(err)
		}
	}
	p.all.Wait()
	p.free()
}

func TestScriptThatWaitsForMemoryEndsWithItsTime(t *testing.T) {
	p := newPooled(t, 64<<20)
	first := p.run(t.Context(), large(50))
	<-p.called
	p.limits.Timeout = 300 * time.Millisecond
	if kind := kindOf(<-p.run(t.Context(), large(50))); kind != lua.Timeout {
		t.Errorf("ended as %q", kind)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.limits.Timeout = time.Minute
	third := p.run(ctx, large(50))
	time.AfterFunc(100*time.Millisecond, cancel)
	if kind := kindOf(<-third); kind != lua.Cancelled {
		t.Errorf("ended as %q", kind)
	}
	close(p.goOn)
	if err := <-first; err != nil {
		t.Error(err)
	}
	p.all.Wait()
	p.free()
}

func TestScriptsDoNotWaitForEachOther(t *testing.T) {
	p := newPooled(t, 64<<20)
	grow := `local t = {} local function grow(n) for i = 1, n do t[#t + 1] = ("x"):rep(2^20) .. #t end end grow(10) notes.slow() grow(45) return #t`
	outcomes := []<-chan error{p.run(t.Context(), grow), p.run(t.Context(), grow), p.run(t.Context(), grow)}
	for range outcomes {
		<-p.called
	}
	close(p.goOn)
	failed := 0
	for _, outcome := range outcomes {
		err := <-outcome
		if err != nil {
			failed++
			if kindOf(err) != lua.Memory || !strings.Contains(err.Error(), "too many scripts need much memory at once (64 MiB for all, four times lua.memory)") {
				t.Error(err)
			}
		}
	}
	if failed == len(outcomes) {
		t.Error("none had its turn")
	}
	p.all.Wait()
	p.free()
}

func TestAnswersOnTheirWayToAScriptCountForAll(t *testing.T) {
	p := newPooled(t, 64<<20)
	h := newHost(t)
	answer := text(strings.Repeat("x", 20<<20))
	var gate sync.WaitGroup
	gate.Add(8)
	h.tools["notes_slow"] = func(context.Context, json.RawMessage) (string, error) {
		gate.Done()
		gate.Wait()
		return answer, nil
	}
	p.limits.Memory = 1 << 30
	_, err := lua.Run(t.Context(), `return #all{notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow(), notes.slow()}`, h, p.limits)
	if err == nil || !strings.Contains(err.Error(), "too many scripts need much memory at once") {
		t.Errorf("160 MiB of answers in 64 MiB: %v", err)
	}
	p.free()
}

func TestAnAnswerThatThereIsNoRoomForFailsItsCall(t *testing.T) {
	p := newPooled(t, 64<<20)
	holds := p.run(t.Context(), large(30))
	<-p.called
	h := newHost(t)
	h.tools["notes_slow"] = func(context.Context, json.RawMessage) (string, error) {
		return text(strings.Repeat("x", 40<<20)), nil
	}
	_, err := lua.Run(t.Context(), "return #notes.slow()", h, p.limits)
	if err == nil || !strings.Contains(err.Error(), "no room for the answer: too many scripts need much memory at once") {
		t.Errorf("an answer of 40 MiB beside a script with 30, in 64: %v", err)
	}
	close(p.goOn)
	if err := <-holds; err != nil {
		t.Error(err)
	}
	p.all.Wait()
	p.free()
}
