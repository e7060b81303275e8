package lua

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"goblin/meta/lua/worker"
)

const (
	// maxLargeScripts is the maximum number of scripts that may use all of their memory
	// at a time. Requests and answers in flight may use as much again.
	maxLargeScripts = 4
	// exitGrace is the time for a process to report its outcome after an exceeded limit.
	exitGrace = 500 * time.Millisecond
)

// Runner runs scripts in their own processes until [Runner.Close]. It is safe for
// concurrent use.
type Runner struct {
	command       []string
	largeSlots    chan struct{}
	inFlightBytes atomic.Int64 // of requests and answers
	ctx           context.Context
	close         context.CancelFunc

	mu     sync.Mutex
	closed bool
	tasks  sync.WaitGroup // runs, their requests and starts; none begins after closed
	idle   *process       // waits for a script unless it exited; may be nil
}

// NewRunner returns a Runner that starts processes with command, which must run
// goblin/meta/lua/worker.
func NewRunner(command ...string) *Runner {
	r := &Runner{command: command, largeSlots: make(chan struct{}, maxLargeScripts)}
	r.ctx, r.close = context.WithCancel(context.Background())
	return r
}

// Close stops all processes and waits for their requests.
func (r *Runner) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.close()
	r.tasks.Wait()
	if p := r.takeIdle(); p != nil {
		p.shutdown()
	}
}

// addTask adds a task that Close waits for. It returns false if the runner is closed.
func (r *Runner) addTask() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.tasks.Add(1)
	}
	return !r.closed
}

// Prepare starts an idle process for the next script, in the background.
func (r *Runner) Prepare() {
	if !r.addTask() {
		return
	}
	go func() {
		defer r.tasks.Done()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.idle != nil && r.idle.alive() {
			return
		}
		if r.idle != nil {
			r.idle.shutdown()
		}
		r.idle, _ = startProcess(r.command) // the next script reports the error
	}()
}

func (r *Runner) takeIdle() *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.idle
	r.idle = nil
	return p
}

// Run runs a script and returns after its process exited. A returned error is an
// *[Error].
func (r *Runner) Run(ctx context.Context, script string, h Backend, l Limits) (Result, error) {
	l = l.withDefaults()
	if err := context.Cause(ctx); err != nil {
		return Result{}, cancelledError(err)
	}
	if len(script) > MaxScript {
		return Result{}, &Error{Kind: Syntax, Message: fmt.Sprintf("the script has %d bytes; the limit is %s", len(script), worker.FormatSize(MaxScript))}
	}
	if !r.addTask() {
		return Result{}, cancelledError(context.Canceled)
	}
	defer r.tasks.Done()
	ctx, release := withTimeout(ctx, l.Timeout, &Error{Kind: Timeout, Message: fmt.Sprintf("the script ran longer than %v (lua.timeout)", l.Timeout)})
	defer release()
	s := &session{runner: r, host: h, limits: l}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	defer context.AfterFunc(r.ctx, func() { s.cancel(context.Canceled) })()
	defer func() {
		s.cancel(context.Canceled) // release waiters for memory
		s.cancelRequests()
	}()
	var failed *Error
	if p := r.takeIdle(); p != nil {
		failed = s.run(script, p)
	}
	if !s.begun && (failed == nil || s.ctx.Err() == nil) { // no idle process, or it exited
		p, err := startProcess(r.command)
		if err != nil {
			return Result{}, &Error{Kind: Crash, Message: fmt.Sprintf("cannot start the script's process: %v", err)}
		}
		failed = s.run(script, p)
	}
	s.result.Calls, s.result.Printed = s.calls, string(s.printed)
	if failed != nil {
		return s.result, failed
	}
	return s.result, nil
}

func cancelledError(cause error) *Error {
	return &Error{Kind: Cancelled, Message: "cancelled", Cause: cause}
}

func (s *session) run(script string, p *process) *Error {
	s.in = p.in
	over := make(chan struct{})
	unhook := context.AfterFunc(s.ctx, func() {
		defer close(over)
		s.stop(p)
	})
	err := s.send(worker.Start{
		Servers: s.host.Servers(), Output: s.limits.Output, Memory: s.limits.Memory, FreeMemory: s.limits.freeMemory(),
		CPU: 2*int64(math.Ceil(s.limits.Timeout.Seconds())) + 2,
	}, []byte(script))
	var failed *Error
	if err == nil {
		failed, err = s.listen(p.out)
	}
	p.shutdown()
	if !unhook() {
		<-over
	}
	switch limit, cause := s.limitError(); {
	case limit == nil && cause != nil:
		return cancelledError(cause)
	case failed != nil: // it has the line
		return failed
	case limit != nil:
		return limit
	case err != nil:
		return p.crash(s.limits, err)
	}
	return nil
}

// limitError returns why the script must stop, and the limit if it exceeded one.
func (s *session) limitError() (limit *Error, cause error) {
	cause = context.Cause(s.ctx)
	errors.As(cause, &limit)
	return limit, cause
}

// After an exceeded limit, stop gives the process time to report its line.
func (s *session) stop(p *process) {
	if limit, _ := s.limitError(); limit != nil {
		sent := make(chan struct{})
		go func() { // blocks until the kill if the process does not read
			defer close(sent)
			_ = s.send(worker.GoblinMessage{Stop: limit}, nil)
		}()
		defer func() { <-sent }()
		wait := time.NewTimer(exitGrace)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-p.exited:
		}
	}
	p.kill()
}
