package lua

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	glua "github.com/yuin/gopher-lua"
)

const (
	checkEvery = 1024     // instructions between two looks at the memory
	maxThreads = 100      // pcalls and coroutines within each other
	perThread  = 32 << 10 // bytes of a thread's stacks
)

var errTimeout = errors.New("the script's time is up")

// closed is what a context that has ended gives.
var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// budget is the context of the virtual machine, which asks it before each
// instruction whether it has ended: that is where instructions are counted. It
// is no context for anything else. Only the holder of the run's lock uses it,
// but for stopped.
type budget struct {
	ctx     context.Context
	limits  Limits
	stopped atomic.Bool // ctx has ended
	err     *Error      // of the limit that was passed; never reset

	instructions int64
	next         int64 // when to look at the memory
	calls        int
	output       int64

	headroom int64 // bytes that may be allocated before measuring again
	charged  int64 // bytes since the last measurement
	allocs   uint64
	sample   [1]metrics.Sample
	held     int64        // bytes of library functions under way
	taken    int64        // bytes of the pool
	share    share        // the same, with answers on their way; the pool's
	measure  func() int64 // what the script reaches, in bytes
}

// Done is called before each instruction. The nil channel of a run that goes
// on is never ready, as the machine wants it.
func (b *budget) Done() <-chan struct{} {
	b.instructions++
	if b.instructions >= b.next || b.stopped.Load() {
		return b.check()
	}
	return nil
}

func (b *budget) Err() error {
	if b.err != nil {
		return errors.New(b.err.Message)
	}
	return context.Cause(b.ctx)
}

func (b *budget) Deadline() (time.Time, bool) { return b.ctx.Deadline() }
func (b *budget) Value(any) any               { return nil }

func (b *budget) check() <-chan struct{} {
	if b.err != nil {
		return closed
	}
	switch {
	case b.stopped.Load():
		b.ended()
	case b.instructions > b.limits.Instructions:
		b.err = &Error{Kind: Instructions, Message: fmt.Sprintf(
			"the script ran more than %d instructions; lua.timeout raises the limit with the time", b.limits.Instructions)}
	default:
		b.next = b.instructions + checkEvery
		// What was allocated by the process bounds what was by the script.
		if now := b.allocated(); int64(now-b.allocs) > b.headroom || b.charged > b.headroom {
			b.weigh(0)
		}
		runtime.Gosched()
	}
	if b.err != nil {
		b.next = 0
		return closed
	}
	return nil
}

// ended sets the error of a context that ended.
func (b *budget) ended() {
	if b.err != nil {
		return
	}
	if cause := context.Cause(b.ctx); errors.Is(cause, errTimeout) {
		b.err = &Error{Kind: Timeout, Message: fmt.Sprintf("the script ran longer than %v (lua.timeout)", b.limits.Timeout)}
	} else {
		b.err = &Error{Kind: Cancelled, Message: "cancelled", Cause: cause}
	}
	b.next = 0
}

// allocated is what the process has allocated so far, in bytes.
func (b *budget) allocated() uint64 {
	b.sample[0].Name = "/gc/heap/allocs:bytes"
	metrics.Read(b.sample[:])
	return b.sample[0].Value.Uint64()
}

// weigh measures, with n bytes that are about to be allocated.
func (b *budget) weigh(n int64) {
	live := b.measure() + b.held
	if live+n > b.limits.Memory {
		b.err = &Error{Kind: Memory, Message: fmt.Sprintf("the script needs more than %s of memory (lua.memory)", bytesText(b.limits.Memory))}
		b.next = 0
		return
	}
	if b.have(live + n); b.err != nil {
		return
	}
	b.headroom = max(b.room()-live, b.room()/8)
	b.charged = 0
	b.allocs = b.allocated()
}

// grow charges n bytes before they are allocated; it raises an error if they
// are too many.
func (b *budget) grow(L *glua.LState, n int64) {
	if b.charged+n > b.headroom || n > b.limits.Memory {
		b.weigh(n)
	}
	b.charged += n
	if b.err != nil {
		b.raise(L)
	}
}

// step counts n instructions of a library and raises an error if the run is over.
func (b *budget) step(L *glua.LState, n int) {
	b.instructions += int64(n)
	if (b.instructions >= b.next || b.stopped.Load()) && b.check() != nil {
		b.raise(L)
	}
}

// raise raises the error of the limit that was passed.
func (b *budget) raise(L *glua.LState) { L.RaiseError("%s", b.err.Message) }

// spend takes n bytes of the output; it raises an error if there are too few.
func (b *budget) spend(L *glua.LState, n int) {
	if !b.write(n) {
		b.raise(L)
	}
}

// write takes n bytes of the output, and reports whether there were so many.
func (b *budget) write(n int) bool {
	if b.err != nil {
		return false
	}
	b.output += int64(n)
	if b.output > b.limits.Output {
		b.err = &Error{Kind: Output, Message: fmt.Sprintf("the script's result and prints are longer than %s (lua.output)", bytesText(b.limits.Output))}
		b.next = 0
		return false
	}
	return true
}

// call takes one of the calls.
func (b *budget) call(L *glua.LState) {
	b.step(L, 1)
	if b.calls >= b.limits.Calls {
		b.err = &Error{Kind: Calls, Message: fmt.Sprintf("the script makes more than %d calls (lua.calls)", b.limits.Calls)}
		b.next = 0
		b.raise(L)
	}
	b.calls++
}

func bytesText(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d %s", n>>u.shift, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// saturated is a*b, at most the largest int64.
func saturated(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64 / 2
	}
	return a * b
}
