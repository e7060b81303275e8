package worker

import (
	"context"
	"errors"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"
)

// look is how often the memory is looked at.
const look = 3 * time.Millisecond

// stopper is the context of the virtual machine, which asks it before each
// instruction whether it has ended: a *wire.Error is the cause.
type stopper struct {
	context.Context
	cancel context.CancelCauseFunc
	ended  <-chan struct{}
	busy   atomic.Bool // ended or paused
	pause  sync.Mutex  // locked while paused
}

func newStopper() *stopper {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &stopper{Context: ctx, cancel: cancel, ended: ctx.Done()}
}

// stop ends the script; the first reason counts.
func (s *stopper) stop(e *Error) {
	s.cancel(e)
	s.busy.Store(true)
}

// paused makes the script wait before its next instruction while it does something.
func (s *stopper) paused(do func()) {
	s.pause.Lock()
	defer s.pause.Unlock()
	s.busy.Store(true)
	do()
	s.busy.Store(false)
	if s.over() { // stop may have been just before
		s.busy.Store(true)
	}
}

// Done is called before each instruction, for which a nil channel costs least.
func (s *stopper) Done() <-chan struct{} {
	if !s.busy.Load() {
		return nil
	}
	s.pause.Lock()
	defer s.pause.Unlock()
	return s.ended
}

// failure returns the error that ended the script, nil if it goes on.
func (s *stopper) failure() *Error {
	var e *Error
	errors.As(context.Cause(s), &e)
	return e
}

// over reports whether a limit has ended the script.
func (s *stopper) over() bool { return s.Err() != nil }

// raise raises what ended the script.
func (s *stopper) raise(L *glua.LState) { L.RaiseError("%s", s.failure().Message) }

// memory returns the bytes of Go's heap and stacks, garbage included.
func memory() (n int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		n += int64(s.Value.Uint64())
	}
	return n
}

// growth is how far a script may grow.
type growth struct {
	base    int64      // what was held before it began
	asking  sync.Mutex // held while Goblin is asked
	allowed atomic.Bool

	weighing sync.Mutex
	next     atomic.Int64 // beyond the limit, the garbage is collected when more is held
}

// held returns the bytes that the script holds, garbage included.
func (g *growth) held() int64 { return memory() - g.base }

// grow waits until Goblin allows more than the small part, if the script holds more. It
// returns as well when the script is over.
func (r *run) grow() {
	if r.allowed.Load() || r.held() <= 2*r.start.FreeMemory {
		return
	}
	r.asking.Lock()
	defer r.asking.Unlock()
	if !r.allowed.Load() {
		_, ok := r.link.ask(ScriptMessage{Ask: AskMemory}, nil, r.ended)
		r.allowed.Store(ok)
	}
}

// watch looks at the memory until the script ends.
func (r *run) watch() {
	for ticker := time.NewTicker(look); !r.over(); <-ticker.C {
		switch held := r.held(); {
		case r.full(held):
			r.paused(r.weigh)
		case held > 2*r.start.FreeMemory && !r.allowed.Load():
			r.paused(r.grow)
		}
	}
}

// full reports whether so much is held that garbage has to be told from the rest.
func (r *run) full(held int64) bool { return held > max(r.start.Memory, r.next.Load()) }

// weigh ends the script if it holds more than it may, garbage not counted. The script
// itself calls it with what may have made it large: watch may have had no time to.
func (r *run) weigh() {
	r.weighing.Lock()
	defer r.weighing.Unlock()
	if !r.full(r.held()) {
		return
	}
	// What is made while the collector works counts as held; the first collection is
	// the time that a pause takes to begin.
	runtime.GC()
	runtime.GC()
	held, limit := r.held(), r.start.Memory
	if held > limit {
		r.stop(MemoryError(limit))
	}
	r.next.Store(held + limit/4)
}

// room ends the script that makes a text of n bytes which it has no memory for.
func (r *run) room(L *glua.LState, n int64) {
	if n > r.start.Memory {
		r.stop(MemoryError(r.start.Memory))
		r.raise(L)
	}
}
