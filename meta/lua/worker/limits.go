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

const memoryInterval = 3 * time.Millisecond

// stopper is the context of the virtual machine, which checks it before each instruction.
// The cause is an *[Error].
type stopper struct {
	context.Context
	cancel context.CancelCauseFunc
	ended  <-chan struct{}
	busy   atomic.Bool // stopped or paused
	pause  sync.Mutex  // locked while paused
}

func newStopper() *stopper {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &stopper{Context: ctx, cancel: cancel, ended: ctx.Done()}
}

// stop stops the script. Only the first error counts.
func (s *stopper) stop(e *Error) {
	s.cancel(e)
	s.busy.Store(true)
}

func (s *stopper) whilePaused(do func()) {
	s.pause.Lock()
	defer s.pause.Unlock()
	s.busy.Store(true)
	do()
	s.busy.Store(false)
	if s.isOver() { // stop may have run before the last store
		s.busy.Store(true)
	}
}

// Done is called before each instruction; a nil channel is the cheapest result.
func (s *stopper) Done() <-chan struct{} {
	if !s.busy.Load() {
		return nil
	}
	s.pause.Lock()
	defer s.pause.Unlock()
	return s.ended
}

func (s *stopper) failure() *Error {
	var e *Error
	errors.As(context.Cause(s), &e)
	return e
}

func (s *stopper) isOver() bool { return s.Err() != nil }

func (s *stopper) raise(L *glua.LState) { L.RaiseError("%s", s.failure().Message) }

// memory returns the bytes of Go's heap and stacks, including garbage.
func memory() (n int64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		n += int64(s.Value.Uint64())
	}
	return n
}

type memoryGrowth struct {
	baseline int64      // bytes in use before the script started
	askLock  sync.Mutex // locked while asking Goblin
	allowed  atomic.Bool

	collectLock    sync.Mutex
	nextCollection atomic.Int64 // bytes in use for the next one
}

func (g *memoryGrowth) memoryInUse() int64 { return memory() - g.baseline }

// requestMemory waits until Goblin allows more than FreeMemory, if the script uses more,
// or until the script is done.
func (r *run) requestMemory() {
	if r.allowed.Load() || r.memoryInUse() <= 2*r.start.FreeMemory {
		return
	}
	r.askLock.Lock()
	defer r.askLock.Unlock()
	if !r.allowed.Load() {
		_, ok := r.conn.ask(ScriptMessage{Ask: AskMemory}, nil, r.ended)
		r.allowed.Store(ok)
	}
}

func (r *run) watchMemory() {
	for ticker := time.NewTicker(memoryInterval); !r.isOver(); <-ticker.C {
		switch inUse := r.memoryInUse(); {
		case r.needsCollection(inUse):
			r.whilePaused(r.enforceMemory)
		case inUse > 2*r.start.FreeMemory && !r.allowed.Load():
			r.whilePaused(r.requestMemory)
		}
	}
}

// needsCollection reports whether only a collection can tell the script's memory.
func (r *run) needsCollection(inUse int64) bool {
	return inUse > max(r.start.Memory, r.nextCollection.Load())
}

// enforceMemory stops the script if it uses too much memory after a collection. The
// script calls it after large operations, which may outrun watchMemory.
func (r *run) enforceMemory() {
	r.collectLock.Lock()
	defer r.collectLock.Unlock()
	if !r.needsCollection(r.memoryInUse()) {
		return
	}
	// Objects allocated during a collection count as live. The first collection takes as
	// long as a pause needs to start.
	runtime.GC()
	runtime.GC()
	inUse, limit := r.memoryInUse(), r.start.Memory
	if inUse > limit {
		r.stop(MemoryError(limit))
	}
	r.nextCollection.Store(inUse + limit/4)
}

func (r *run) checkRoom(L *glua.LState, n int64) {
	if n > r.start.Memory {
		r.stop(MemoryError(r.start.Memory))
		r.raise(L)
	}
}
