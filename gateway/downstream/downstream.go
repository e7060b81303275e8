// Package downstream serves MCP clients over stdio, sockets and Streamable HTTP.
//
// It handles framing, ids, ordering, cancellation, flow control, sessions and HTTP access
// control. It interprets only initialize, notifications/initialized,
// notifications/cancelled, and the _meta of requests of 2026-07-28 ([Modern]), which
// share one session over HTTP. Handlers see both eras alike: hop-local members are
// removed from requests and added to answers. A stateless client that must answer a
// request has its own request parked until it returns ([Request.Ask]). The package must
// not know other methods, servers or the catalog; the [Handler] does.
//
// All exported methods are safe for concurrent use. Sending never blocks.
//
// Answers and requests to clients are never dropped. A notification with a key may be
// replaced by a newer one with that key. Without a key, it is dropped and counted while
// more than a quarter of limits.unsent is unsent. Over HTTP it is dropped without an open
// session-wide stream.
//
// Above limits.unsent, requests to the client wait and its messages are not read. The
// session is closed at 20 times that, or after a minute without progress. A
// [memlimit.Pool] limits the memory of all clients: large messages, requests and answers
// over it are refused, and sessions with unread bytes are closed. No client can slow down
// another.
package downstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

// Handler handles the messages of clients.
type Handler interface {
	// SessionOpened is called before the first message of a session.
	SessionOpened(s *Session)
	// Handle must answer a request exactly once before it returns. It runs in a separate
	// goroutine and must return soon after x.Context() ends. A panic or missing answer is
	// answered with -32603.
	Handle(x *Request)
	// HandleNotification is called in order of arrival and must not block. It gets
	// neither notifications/cancelled nor notifications/initialized. params is nil or a
	// raw object and may be kept.
	HandleNotification(s *Session, method string, params []byte)
	// SessionClosed is called after the session and its requests have finished.
	SessionClosed(s *Session)
}

// Starter is a [Handler] that handles some requests without a goroutine.
type Starter interface {
	// Start may take a request that it can answer without waiting, immediately or when
	// another message arrives. It then returns true, answers exactly once, at the latest
	// soon after [Waiter].RequestEnded, and finally calls [Request.Finish]. If it returns
	// false, Handle gets the request. It runs on the read loop and must not block.
	// Requests with a key of [Options].Order are not offered. Send requests to servers
	// with burst, which may be nil.
	Start(x *Request, burst *jsonrpc.WriteBatch) bool
}

// Limits are the limits per client. Zero fields get the defaults.
type Limits struct {
	Frame    int64 // bytes per message from a client; 128 MiB
	Unsent   int64 // unsent bytes above which reading pauses; 16 MiB
	Sessions int   // concurrent HTTP sessions; 2048
	InFlight int   // concurrent requests per session; 16384
	Depth    int   // nesting of arrays and objects per message; 512
}

// Options configures all kinds of sessions.
type Options struct {
	Handler Handler
	Logger  *slog.Logger // nil discards
	Limits  Limits
	// Memory limits the memory of all its owners; nil: no limit.
	Memory *memlimit.Pool
	// Parked holds parked calls; nil: a new one.
	Parked *ParkedCalls
	// ServerInfo is a raw object for results of stateless requests; nil: omitted.
	ServerInfo []byte
	// Drain is the maximum time to finish requests in flight and deliver their answers at
	// end of input or shutdown. The default is 5 s.
	Drain time.Duration
	// Order returns a key for requests that must run in order of arrival, or "". It must
	// not block. It may be nil.
	Order func(method string, params []byte) (key string)
	// OnMissed receives the number of dropped notifications once the client reads again.
	// It must not block and may use the session. It may be nil.
	OnMissed func(s *Session, server string, n uint64)
	Location Location
	// Profile is the profile that the clients request, or "".
	Profile string
	// Closers are closed last by [ServeStream], to unblock reads and writes.
	Closers []io.Closer
}

func (o Options) withDefaults() *Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits.Frame = cmp.Or(o.Limits.Frame, 128<<20)
	o.Limits.Depth = cmp.Or(o.Limits.Depth, 512)
	o.Limits.Unsent = cmp.Or(o.Limits.Unsent, 16<<20)
	o.Limits.Sessions = cmp.Or(o.Limits.Sessions, 2048)
	o.Limits.InFlight = cmp.Or(o.Limits.InFlight, 16384)
	o.Drain = cmp.Or(o.Drain, 5*time.Second)
	if o.Parked == nil {
		o.Parked = NewParkedCalls(0, o.Memory)
	}
	return &o
}

const (
	// A session is closed at overflowFactor times limits.unsent unsent bytes.
	overflowFactor = 20
	// stallTimeout is the maximum time without progress of a write.
	stallTimeout = 60 * time.Second
	// mergeThreshold is the number of unsent bytes above which a request's notifications
	// with equal keys replace each other.
	mergeThreshold = 1 << 20
	// flushGrace is the time for blocked calls to return after the session closed.
	flushGrace = time.Second
	// pollInterval is the interval at which a paused reader checks the unsent bytes.
	pollInterval = 5 * time.Millisecond
)

// Causes of the contexts of sessions and requests.
var (
	// ErrCancelled means that the client sent notifications/cancelled.
	ErrCancelled = fmt.Errorf("cancelled by the client: %w", context.Canceled)
	// ErrDropped means that the request ended without an answer.
	ErrDropped = fmt.Errorf("request dropped: %w", context.Canceled)
	// ErrAnswered means that the request has its answer.
	ErrAnswered = fmt.Errorf("request answered: %w", context.Canceled)
	// ErrSessionEnded means that the client sent DELETE or closed its input.
	ErrSessionEnded = errors.New("session ended by the client")
	// ErrShutdown means that Goblin stops.
	ErrShutdown = errors.New("gateway is shutting down")
	// ErrIdle means that an HTTP session was unused for too long.
	ErrIdle = errors.New("session was idle for too long")
	// ErrOverflow means that more than 20 times limits.unsent bytes were unread.
	ErrOverflow = errors.New("client left too many bytes unread")
	// ErrNoMemory means that unread bytes exceeded the common memory limit.
	ErrNoMemory = fmt.Errorf("client left too many bytes unread: %w", memlimit.ErrFull)
	// ErrSilent means that the client paused for a minute within a large message while
	// memory was short.
	ErrSilent = errors.New("client stopped in the middle of a message")
	// ErrStalled means that the client read nothing for a minute.
	ErrStalled = errors.New("client stopped reading")
	// ErrNoStream means that an HTTP client has no open stream for a request.
	ErrNoStream = errors.New("client has no open stream to send a request on")
)
