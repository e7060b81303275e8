// Package lua runs scripts that call tools of all servers.
//
// Each script runs in a process of its own, which goblin/meta/lua/worker is
// the inside of; this package starts it, answers it and ends it, and runs nothing
// of the script here. It knows the catalog ([goblin/registry]) and its [Backend], but
// no transport, no screen and no config. README.md beside this file is the manual
// for those who write scripts; its examples are tests.
//
// # Processes
//
// A process is this program started again by [Runner]'s command. It has an empty
// environment, three pipes, the root folder as its own and a group of its own; it
// ends with its script, with the caller of [Runner.Run], with the Runner and, as
// its stdin is closed then, with this program. On Linux the kernel sees to that,
// too. One process waits for the next script, for five minutes.
//
// # Bounds
//
// What a process says is not trusted. Frames are bounded before they are held. Calls,
// output and time are counted here; a process that goes on for half a second after it
// was told that it is enough is killed. What a process asks about the
// catalog is answered in the goroutine that reads it, one after another; its
// requests have one each, 16 at most. Run does not wait for requests that go on
// after their context has ended: [Runner.Close] does.
//
// A process has Limits.Memory for its script, an eighth of which it gets at
// once (at least 2 MiB); more, or a large answer, it gets when fewer than four
// others have more. Requests and answers on their way hold four times
// Limits.Memory together; what is beyond fails its call.
package lua

import (
	"context"
	"time"

	"goblin/meta/lua/worker"
	"goblin/registry"
)

// MaxScript is the longest script in bytes.
const MaxScript = 64 << 10

// Backend carries out a script's requests. Request and Search are called from several
// goroutines at once, the others from one at a time.
type Backend interface {
	// Snapshot is the catalog.
	Snapshot() *registry.Snapshot
	// Servers are the config names of the servers, in order.
	Servers() []string
	// Request makes one MCP request in the name of the client that runs the
	// script, with names and URIs as clients see them. It should return soon
	// after ctx ends. An error with the methods ErrorCode() int and
	// ErrorData() json.RawMessage is one that was answered.
	Request(ctx context.Context, method string, params []byte) ([]byte, error)
	// Search returns a JSON array of cards, best first.
	Search(ctx context.Context, query string, o SearchOptions) ([]byte, error)
	// Progress is told of each call that ended: how many did so far, and what
	// the last one was. The call's answer waits for it.
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
	Output  int64         // bytes of result, print and error together, default 1 MiB
	Calls   int           // requests and searches; 0 allows none
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
	return l
}

// freeMemory returns the memory that a script may hold without asking, in bytes.
func (l Limits) freeMemory() int64 { return min(max(l.Memory/8, 2<<20), l.Memory) }

// Result is the outcome of a run. After an error it holds what there was until then, as
// far as the process could tell it.
type Result struct {
	// JSON is the value that was returned or given to result(…); nil when
	// there was none.
	JSON    []byte
	Printed string // with a final line break, if anything
	Calls   int    // requests and searches that were begun
	// Hint is set when there is neither JSON nor Printed: what to do about it.
	Hint string
}

// Error is a script that failed.
type Error = worker.Error

// Kind says why it did.
type Kind = worker.Kind

// The kinds of [Error].
const (
	Syntax    = worker.Syntax
	Runtime   = worker.Runtime
	Timeout   = worker.Timeout
	Memory    = worker.Memory
	Calls     = worker.Calls
	Output    = worker.Output
	Cancelled = worker.Cancelled
	Crash     = worker.Crash
)
