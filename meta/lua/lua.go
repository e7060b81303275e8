// Package lua runs scripts that call tools of all servers.
//
// Each script runs in its own process, implemented by goblin/meta/lua/worker. This
// package starts the process, answers its requests and stops it; it never executes script
// code itself. It must not depend on transports, UIs or the config. README.md is the
// manual for scripts; its examples are tests.
//
// # Processes
//
// [Runner] starts this program again with its command, an empty environment, three pipes
// and its own process group. Its working directory is the root folder. The process exits
// after its script, when the caller of [Runner.Run] cancels, and when the Runner is
// closed. It also exits with this program, which closes its stdin; on Linux the kernel
// kills it then. One idle process waits up to five minutes for the next script.
//
// # Limits
//
// The process is untrusted. The size of frames is checked before they are read. This
// package counts calls, output and time, and kills a process 500 ms after it exceeded a
// limit. Requests about the catalog are answered one at a time in the reading goroutine.
// Other requests have a goroutine each, at most 16. Run does not wait for requests that
// continue after cancellation; [Runner.Close] does.
//
// A script may use Limits.Memory, but only an eighth of it (at least 2 MiB) without
// asking. Four scripts at a time may use more, or receive a large answer; others wait.
// Requests and answers in flight may use four times Limits.Memory in total. A call that
// needs more fails.
package lua

import (
	"context"
	"time"

	"goblin/meta/lua/worker"
	"goblin/registry"
)

// MaxScript is the maximum length of a script, in bytes.
const MaxScript = 64 << 10

// Backend handles a script's requests. Request and Search are called concurrently, the
// others are not.
type Backend interface {
	// Snapshot returns the catalog.
	Snapshot() *registry.Snapshot
	// Servers returns the config names of the servers, in order.
	Servers() []string
	// Request makes one MCP request for the client that runs the script, with names and
	// URIs as clients see them. It should return soon after ctx is done. An error with
	// the methods ErrorCode() int and ErrorData() json.RawMessage is an error response.
	Request(ctx context.Context, method string, params []byte) ([]byte, error)
	// Search returns a JSON array of cards, best first.
	Search(ctx context.Context, query string, o SearchOptions) ([]byte, error)
	// Progress reports each finished call: the number of finished calls and a label of
	// the last one. It delays the answer to the script.
	Progress(done int, message string)
}

// SearchOptions restricts a search. Zero values do not.
type SearchOptions struct {
	Kind   string // "tool", "prompt", "resource" or "template"
	Server string // config name
	Limit  int
}

// Limits holds the limits of a run. Zero values mean defaults, except for Calls.
type Limits struct {
	Timeout time.Duration // default 10 s
	Memory  int64         // bytes, default 64 MiB
	Output  int64         // bytes of result, print and error together, default 1 MiB
	Calls   int           // requests and searches; 0 allows none
}

// withDefaults replaces zero values by the defaults.
func (l Limits) withDefaults() Limits {
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

// freeMemory returns the memory that a script may use without asking, in bytes.
func (l Limits) freeMemory() int64 { return min(max(l.Memory/8, 2<<20), l.Memory) }

// Result is the outcome of a run. After an error it contains what the process sent
// before.
type Result struct {
	// JSON is the value that was returned or passed to result(…), or nil.
	JSON    []byte
	Printed string // ends with a line break unless empty
	Calls   int    // started requests and searches
	// suggests a fix if both JSON and Printed are empty
	Hint string
}

// Error is the error of a script.
type Error = worker.Error

// Kind is the kind of an [Error].
type Kind = worker.Kind

// Values of [Kind].
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
