// Package lua runs one script over all servers: what an agent would do in many
// calls, with the results in between kept out of its context.
//
// It owns the script's language (Lua 5.1 as gopher-lua has it, with libraries
// of its own where those of gopher-lua cannot be bounded), the tables of
// servers, tools, resources and prompts that a script sees, the conversion
// between JSON and Lua values, and the budgets. It knows the catalog
// ([goblin/registry]) and its [Host], but no transport, no screen and no config.
// README.md beside this file is the manual for those who write scripts; its
// examples are tests.
//
// # Goroutines
//
// [Run] may be called from any goroutine, many times at once; runs share
// nothing. A run uses the goroutine of its caller, and those of all{…}, which
// it waits for. Only one of them executes Lua at a time; a lock passes between
// them while requests are under way. The processor is offered to others every
// 1,024 instructions.
//
// # Budgets
//
// A script is as untrusted as whoever wrote it. Each limit ends it with an
// error of its own kind, which pcall cannot catch.
//
//   - Time, cancellation: noticed before the next instruction, in loops of the
//     libraries, and by requests, whose context ends.
//   - Instructions: each instruction of the virtual machine counts, and steps
//     of the libraries that are not constant: pattern matching, sorting, JSON.
//   - Memory: what the script can reach is at most Limits.Memory, by more than
//     an eighth of it never for long: what was allocated since the last
//     measurement may add that eighth, and what 1,024 instructions allocate.
//     Large allocations (strings, gaps in arrays, answers) are charged before
//     they are made. Measured is by walking from the roots, so neither garbage
//     nor the traffic of others counts; garbage lives until Go collects it. A
//     short string (32 bytes) counts at each place that holds it. The walk
//     itself needs up to a third of what it measures.
//   - Memory of all runs together: beyond 2 MiB a run takes what it needs from a
//     [Pool], and waits for others to end when there is not enough. Answers that
//     wait for the script, as those of all{…} do, are taken from there too, before
//     they are charged; what arrives beyond that fails the call.
//   - Depth: 256 calls within each other, and 100 pcalls and coroutines.
//   - Scripts are at most 64 KiB, 500 blocks and expressions deep, with 4,000
//     names, numbers and strings in a function; JSON is at most 500 deep.
package lua

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	glua "github.com/yuin/gopher-lua"

	"goblin/registry"
)

// MaxScript is the longest script in bytes.
const MaxScript = 64 << 10

const (
	maxFrames   = 256     // calls within each other
	maxRegistry = 1 << 16 // values on the stack of a thread
)

// Host is what a script reaches. Its methods are called from the goroutine of
// the script, Request from several at once.
type Host interface {
	// Snapshot is the catalog.
	Snapshot() *registry.Snapshot
	// Servers are the config names of the servers, in order.
	Servers() []string
	// Request makes one MCP request in the name of the client that runs the
	// script, with names and URIs as clients see them. It must return soon
	// after ctx ends. An error with the methods Code() int and
	// Data() json.RawMessage is one that was answered.
	Request(ctx context.Context, method string, params []byte) ([]byte, error)
	// Search returns a JSON array of cards, best first.
	Search(ctx context.Context, query string, o SearchOptions) ([]byte, error)
	// Progress is told of each call that ended: how many did so far, and what
	// the last one was. The script waits for it.
	Progress(done int, message string)
}

// SearchOptions narrow a search; zero values do not.
type SearchOptions struct {
	Kind   string // "tool", "prompt", "resource" or "template"
	Server string // config name
	Limit  int
}

// Limits bound a run. Zero values take the defaults, but for Calls.
type Limits struct {
	Timeout time.Duration // default 10 s
	Memory  int64         // bytes, default 64 MiB
	Output  int64         // bytes of result and print together, default 1 MiB
	// Instructions defaults to 50 million per second of Timeout: more than the
	// virtual machine does on common hardware, so that it is a bound for
	// machines that are faster, not a second clock.
	Instructions int64
	Calls        int // requests and searches; 0 allows none
	// Pool bounds what all runs that have it may hold together; nil bounds nothing.
	Pool *Pool
}

// WithDefaults puts the defaults in the place of zero values.
func (l Limits) WithDefaults() Limits {
	if l.Timeout <= 0 {
		l.Timeout = 10 * time.Second
	}
	if l.Memory <= 0 {
		l.Memory = 64 << 20
	}
	if l.Output <= 0 {
		l.Output = 1 << 20
	}
	if l.Instructions <= 0 {
		l.Instructions = int64(max(l.Timeout.Seconds(), 1) * 50e6)
	}
	return l
}

// Result is what a run gave. After an error it holds what there was until then.
type Result struct {
	// JSON is the value that was returned or given to result(…); nil when
	// there was none.
	JSON    []byte
	Printed string // with a final line break, if anything
	Calls   int    // requests and searches that were begun
	// Hint is set when there is neither JSON nor Printed: what to do about it.
	Hint string
}

// Kind says why a script failed.
type Kind string

// The kinds of [Error].
const (
	Syntax       Kind = "syntax"
	Runtime      Kind = "runtime"
	Timeout      Kind = "timeout"
	Memory       Kind = "memory"
	Instructions Kind = "instructions"
	Calls        Kind = "calls"
	Output       Kind = "output"
	Cancelled    Kind = "cancelled"
)

// Error is a script that failed. Of the limits, Message names the config key.
type Error struct {
	Kind    Kind
	Line    int // 0 when unknown
	Message string
	Cause   error // the context's, for Cancelled; else nil
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", chunkName, e.Line, e.Message)
	}
	return chunkName + ": " + e.Message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// run is one run of a script. All fields are guarded by lock while all{…} is
// under way; requests are made without it.
type run struct {
	host  Host
	main  *glua.LState
	prog  *program
	slots chan struct{} // one for each request under way in all{…}

	lock sync.Mutex
	*budget
	done      int                      // requests that ended
	threads   map[*glua.LState]nesting // those that run now, and how deep they are nested
	free      []*glua.LState           // threads of pcalls that ended
	catalog   *catalog
	arrayMeta *glua.LTable
	exactMeta *glua.LTable
	errorMeta *glua.LTable
	null      *glua.LUserData
	missed    string // the last name that was looked up in vain
	printed   []byte
	result    []byte
}

// Run runs a script to its end. The error, if any, is an *[Error].
func Run(ctx context.Context, script string, h Host, l Limits) (Result, error) {
	l = l.WithDefaults()
	if err := context.Cause(ctx); err != nil {
		return Result{}, &Error{Kind: Cancelled, Message: "cancelled", Cause: err}
	}
	prog, err := compile(script)
	if err != nil {
		return Result{}, err
	}
	ctx, release := limited(ctx, l.Timeout)
	defer release()
	r := &run{host: h, prog: prog, slots: make(chan struct{}, maxParallel), threads: map[*glua.LState]nesting{}}
	r.budget = &budget{ctx: ctx, limits: l, measure: r.reachable}
	r.headroom = r.room()
	defer r.leave()
	r.allocs = r.allocated()
	stop := context.AfterFunc(ctx, func() { r.stopped.Store(true) })
	defer stop()

	r.main = glua.NewState(glua.Options{
		SkipOpenLibs: true, CallStackSize: maxFrames,
		RegistrySize: 256, RegistryGrowStep: 1024, RegistryMaxSize: maxRegistry,
	})
	defer r.main.Close()
	r.lock.Lock()
	defer r.lock.Unlock()
	r.threads[r.main] = nesting{}
	err = r.execute()
	res := Result{JSON: r.result, Printed: string(r.printed), Calls: r.calls}
	if err != nil {
		return res, err
	}
	if res.JSON == nil && res.Printed == "" {
		res.Hint = "The script gave nothing: end it with `return value`, or call `result(value)`." + prog.shadowHint()
	}
	return res, nil
}

// execute opens the libraries and runs the script's main function.
func (r *run) execute() (err error) {
	L := r.main
	defer func() {
		if p := recover(); p != nil { // outside of the protected call: opening the libraries
			err = r.failure(fmt.Errorf("%v", p))
		}
	}()
	r.open(L)
	L.SetContext(r.budget)
	L.Push(L.NewFunctionFromProto(r.prog.proto))
	for _, fn := range r.guards(L) {
		L.Push(fn)
	}
	if err := L.PCall(len(guardNames), glua.MultRet, nil); err != nil {
		return r.failure(err)
	}
	if r.err != nil { // it ended before its next instruction
		return r.err
	}
	var out glua.LValue
	switch n := L.GetTop(); n {
	case 0:
		return nil
	case 1:
		out = L.Get(1)
		if out == glua.LNil {
			return nil
		}
	default:
		t := L.CreateTable(n, 0)
		for i := 1; i <= n; i++ {
			t.RawSetInt(i, r.orNull(L.Get(i)))
		}
		t.Metatable = r.arrayMeta
		out = t
	}
	text, encErr := r.encodeOutput(out)
	if encErr != nil {
		if r.err != nil {
			return r.err
		}
		return &Error{Kind: Runtime, Message: "the returned value " + encErr.Error()}
	}
	r.result = text
	return nil
}

// failure makes the error of a run of what ended it.
func (r *run) failure(err error) *Error {
	var api *glua.ApiError
	text := err.Error()
	if errors.As(err, &api) {
		text = r.errorText(api.Object)
	}
	line, message := splitLine(text)
	if r.err != nil {
		if r.err.Line == 0 {
			r.err.Line = line
		}
		return r.err
	}
	return &Error{Kind: Runtime, Line: line, Message: message + r.hint(message)}
}

// answered is an error that was an answer.
type answered interface {
	Code() int
	Data() json.RawMessage
}
