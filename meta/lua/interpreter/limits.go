package interpreter

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"

	"goblin/meta/lua/wire"
)

// look is how often the memory is looked at.
const look = 3 * time.Millisecond

// stopper is the context of the virtual machine, which asks it before each
// instruction whether it has ended. It is no context for anything else.
type stopper struct {
	context.Context
	err   atomic.Pointer[wire.Error] // what ended the script; never reset
	ended chan struct{}              // closed after err was set
	busy  atomic.Bool                // err or wait is set

	waiting sync.Mutex                    // of those who make the script wait
	waits   int                           // how many do
	wait    atomic.Pointer[chan struct{}] // closed when none does any more
}

func newStopper() *stopper {
	return &stopper{Context: context.Background(), ended: make(chan struct{})}
}

// stop ends the script; the first reason counts.
func (s *stopper) stop(e *wire.Error) {
	if s.err.CompareAndSwap(nil, e) {
		s.busy.Store(true)
		close(s.ended)
	}
}

// Done is called before each instruction. The nil channel of a script that goes
// on is never ready, as the machine wants it.
func (s *stopper) Done() <-chan struct{} {
	if !s.busy.Load() {
		return nil
	}
	if ch := s.wait.Load(); ch != nil {
		select {
		case <-*ch:
		case <-s.ended:
		}
	}
	if s.err.Load() == nil {
		return nil
	}
	return s.ended
}

func (s *stopper) Err() error {
	if e := s.err.Load(); e != nil {
		return fmt.Errorf("%s", e.Message)
	}
	return nil
}

// check raises an error if the script is over.
func (s *stopper) check(L *glua.LState) {
	if s.Done() != nil {
		s.raise(L)
	}
}

func (s *stopper) raise(L *glua.LState) { L.RaiseError("%s", s.err.Load().Message) }

// fail ends the script with an error of its own.
func (s *stopper) fail(L *glua.LState, e *wire.Error) {
	s.stop(e)
	s.raise(L)
}

// memory is what the process holds, in bytes.
type memory struct {
	live    int64 // what the last collection left
	objects int64 // with garbage
}

// sampler measures.
type sampler [3]metrics.Sample

func newSampler() *sampler {
	return &sampler{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
}

func (s *sampler) read() memory {
	metrics.Read(s[:])
	stacks := int64(s[2].Value.Uint64())
	return memory{int64(s[0].Value.Uint64()) + stacks, int64(s[1].Value.Uint64()) + stacks}
}

// watch looks at the memory until the script ends.
func (r *run) watch() {
	s := newSampler()
	base, limit, small := s.read().objects, r.start.Memory, r.start.Small
	var counted int64 // live, when it was last counted to the byte
	asked := false
	for ticker := time.NewTicker(look); ; {
		select {
		case <-r.ended:
			return
		case <-ticker.C:
		}
		m := s.read()
		if m.live-base > limit && m.live != counted || m.objects-base > limit+limit/4+1<<20 {
			if m = r.count(s); m.live-base > limit {
				r.stop(wire.Large(limit))
				return
			}
			counted = m.live
		}
		if !asked && (m.live-base > small || m.objects-base > 2*small) {
			asked = true
			allowed := r.pause()
			go func() {
				if _, ok := r.link.ask(wire.ToGoblin{Ask: wire.AskMemory}, nil, r.ended); ok {
					allowed()
				}
			}()
		}
	}
}

// count measures to the byte. What a script makes while the collector works counts
// as live, so it has to pause; the first collection is the time that takes.
func (r *run) count(s *sampler) memory {
	defer r.pause()()
	runtime.GC()
	runtime.GC()
	return s.read()
}

// pause makes the script wait before its next instruction, until all who asked for
// that let it go on or it is stopped.
func (s *stopper) pause() (goOn func()) {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	if s.waits++; s.waits == 1 {
		ch := make(chan struct{})
		s.wait.Store(&ch)
		s.busy.Store(true)
	}
	return func() {
		s.waiting.Lock()
		defer s.waiting.Unlock()
		if s.waits--; s.waits > 0 {
			return
		}
		ch := s.wait.Swap(nil)
		s.busy.Store(false)
		if s.err.Load() != nil { // stop may have been just before
			s.busy.Store(true)
		}
		close(*ch)
	}
}

// write takes n bytes of the output; it ends the script if there are too few.
func (r *run) write(n int) bool {
	if r.err.Load() != nil {
		return false
	}
	if r.written += int64(n); r.written > r.start.Output {
		r.stop(&wire.Error{Kind: wire.Output, Message: fmt.Sprintf("the script's result and prints are longer than %s (lua.output)", wire.Size(r.start.Output))})
		return false
	}
	return true
}

// call takes one of the calls.
func (r *run) call(L *glua.LState) {
	r.check(L)
	if r.calls >= r.start.Calls {
		r.fail(L, &wire.Error{Kind: wire.Calls, Message: fmt.Sprintf("the script makes more than %d calls (lua.calls)", r.start.Calls)})
	}
	r.calls++
}

// room ends the script that makes a text of n bytes which it has no memory for.
func (r *run) room(L *glua.LState, n int64) {
	if n > r.start.Memory {
		r.fail(L, wire.Large(r.start.Memory))
	}
}
