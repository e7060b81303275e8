// Package downstream serves MCP clients over stdio, sockets and Streamable HTTP.
//
// It owns framing, ids, ordering, cancellation, flow control, session
// lifecycle and, over HTTP, who may speak at all. It knows the few methods
// that are about the connection itself (initialize,
// notifications/initialized, notifications/cancelled), and what a request of
// 2026-07-28 says of itself in _meta ([Modern]), since such a request needs no
// session: over HTTP all of them share one. To handlers both eras of clients are the
// same: what belongs to one hop is taken off requests and put on answers here, and a
// stateless client that is asked something has its request parked until it comes back
// ([Request.Ask]). It must not know what other
// methods mean, nor servers or the catalog: that is the [Handler]'s.
//
// Everything exported is safe for concurrent use. Sending never blocks. What
// the client is owed is never dropped: answers, and requests to it. Of
// notifications, those given a key may be replaced by a newer one of that key
// while they wait; those without one are left out, and counted, while more than
// a quarter of limits.unsent waits. Over HTTP session-wide ones are dropped
// while the client holds no stream open for them. Requests to a client
// wait until it has read all but limits.unsent. A client that does not read is
// not read from either once limits.unsent bytes wait for it, and its session
// ends at 20 times that, or when a write made no progress for a minute. All
// clients together are bounded by an account of what they make the process hold
// ([memlimit.Pool]): large messages, requests and answers for which there is no
// room are refused, and a session that leaves more unread ends. No client can slow
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

// Handler decides what the messages of clients mean.
type Handler interface {
	// SessionOpened announces a session, before its first message.
	SessionOpened(s *Session)
	// Handle answers a request, exactly once, before it returns. It has a
	// goroutine of its own and must return soon after x.Context() ends. A
	// missing answer and a panic are answered with -32603.
	Handle(x *Request)
	// HandleNotification takes a notification, in the order of arrival, and must not
	// block. notifications/cancelled and notifications/initialized do not
	// come here. params is nil or a raw object and may be kept.
	HandleNotification(s *Session, method string, params []byte)
	// SessionClosed announces that the session has ended and all its exchanges with
	// it. It is the last that is heard of the session.
	SessionClosed(s *Session)
}

// Starter is a [Handler] that can do without a goroutine for some requests.
type Starter interface {
	// Start takes a request that it can answer without waiting: at once, or
	// later when something arrives elsewhere. Then it returns true, answers
	// exactly once, soon after what [Request.OnEnd] tells at the latest, and
	// calls [Request.Finish] when it is done. It returns false, having done
	// nothing, for all others: they go to Handle. It runs where messages are
	// read and must not block. Requests that [Options].Order keeps apart do not
	// come here. What it sends to servers goes into the burst, which may be nil.
	Start(x *Request, burst *jsonrpc.WriteBatch) bool
}

// Limits bounds what one client may cost. Zero fields get the defaults.
type Limits struct {
	Frame    int64 // bytes of one message from a client; 128 MiB
	Unsent   int64 // bytes waiting for a client above which it is not read from; 16 MiB
	Sessions int   // HTTP sessions at a time; 2048
	InFlight int   // requests of one session at a time; 16384
	Depth    int   // arrays and objects within each other in one message; 512
}

// Options configure every kind of session.
type Options struct {
	Handler Handler
	Logger  *slog.Logger // nil discards
	Limits  Limits
	// Memory bounds what all sessions, and whoever else shares it, make the process
	// hold; nil bounds nothing.
	Memory *memlimit.Pool
	// Parked has the calls that wait for stateless clients; nil for one of this
	// session, or endpoint, alone.
	Parked *ParkedCalls
	// ServerInfo is put into results of stateless requests to name this server, a raw
	// object; nil adds nothing to results.
	ServerInfo []byte
	// Drain is how long requests in flight may take to be answered, and the
	// answers to be read, after the client's end of input or at shutdown;
	// 5 s by default.
	Drain time.Duration
	// Order gives requests that must be handled one after another, as they
	// came, the same key; "" for the others. nil orders none. It must not
	// block.
	Order func(method string, params []byte) (key string)
	// OnMissed is told how many notifications without a key were left out, once
	// the client has read enough to get them again; nil for nobody. It must not
	// block, and may use the session.
	OnMissed func(s *Session, server string, n uint64)
	// Location is where the clients of these options are.
	Location Location
	// Profile is the view of the catalog that the clients of these options ask for; ""
	// for none.
	Profile string
	// Closers are closed by [ServeStream] as the last thing it does to its
	// streams, so that a read or write that is still blocked ends.
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
	// overflowFactor times limits.unsent is where a session is given up.
	overflowFactor = 20
	// stallTimeout is how long a write may make no progress.
	stallTimeout = 60 * time.Second
	// mergeThreshold is the backlog, in bytes, above which notifications of an
	// exchange that have a key replace each other.
	mergeThreshold = 1 << 20
	// flushGrace is how long blocked reads, writes and connections get to
	// notice that a session has ended.
	flushGrace = time.Second
	// pollInterval is how often a paused reader looks for room.
	pollInterval = 5 * time.Millisecond
)

// Causes with which the context of a session or an exchange ends.
var (
	// ErrCancelled: the client sent notifications/cancelled for the request.
	ErrCancelled = fmt.Errorf("cancelled by the client: %w", context.Canceled)
	// ErrAnswered: the exchange has its answer.
	ErrAnswered = fmt.Errorf("request answered: %w", context.Canceled)
	// ErrSessionEnded: the client ended the session, by DELETE or end of input.
	ErrSessionEnded = errors.New("session ended by the client")
	// ErrShutdown: the server stops.
	ErrShutdown = errors.New("server is shutting down")
	// ErrIdle: the HTTP session was not used for too long.
	ErrIdle = errors.New("session was idle for too long")
	// ErrOverflow: more than 20 times limits.unsent waited for the client.
	ErrOverflow = errors.New("client left too many bytes unread")
	// ErrNoMemory: there was no room beside others' for what the client left unread.
	ErrNoMemory = fmt.Errorf("client left too many bytes unread: %w", memlimit.ErrFull)
	// ErrSilent: the client stopped in the middle of a large message for a minute,
	// when others were short of room.
	ErrSilent = errors.New("client stopped in the middle of a message")
	// ErrStalled: the client read nothing for a minute.
	ErrStalled = errors.New("client stopped reading")
	// ErrNoStream: the client holds no stream open that a request could be
	// sent on (HTTP only).
	ErrNoStream = errors.New("client has no open stream to send a request on")
)
