package upstream

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/timing"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// Call is one request to a server. It must not be reused.
type Call struct {
	// Context cancels the call: the server gets notifications/cancelled and its late
	// answer is dropped. nil means context.Background.
	Context context.Context
	Method  string
	Params  []byte         // raw object or nil
	Edits   []rawjson.Edit // applied to Params in the frame; in order
	// Token is the position of the progress token in Params. The token is replaced by one
	// that is unique on the connection. It must not overlap Edits.
	Token wire.TokenPosition
	// Progress receives the raw params of each notifications/progress of the call, with
	// Goblin's token. It runs on the read loop, must not block, and is never called after
	// Conn.Call returned.
	Progress func(params []byte)
	// Timeout limits the wait for the answer; progress restarts it. 0 means call_timeout
	// for tools/call, otherwise timeout.
	Timeout time.Duration
	// Batch collects requests of Conn.CallAsync for one write.
	Batch *jsonrpc.WriteBatch
	// Cause is opaque to this package. It lets the Handler find the origin of messages on
	// the call's stream.
	Cause any
	// Capabilities are declared with a modern request, as a raw object. nil means
	// Options.Capabilities.
	Capabilities []byte
	// LogLevel requests log messages of this call from a modern server, at this level or
	// above. "" requests none. Legacy servers use logging/setLevel.
	LogLevel string
	// ForwardInput returns results of type input_required to the caller instead of
	// resolving them. The caller answers with another Call.
	ForwardInput bool
	// Header contains further headers of the call's own HTTP request; nil: none.
	Header http.Header
	// AcceptTask permits a modern server to answer with a task, which is returned
	// unchanged (SEP-2663).
	AcceptTask bool
	// InputResponses and RequestState are raw members of a modern request, or nil. They
	// replace those of Params. Without ForwardInput they change while the server asks for
	// input.
	InputResponses, RequestState []byte

	handshake  bool // initialize and earlier: must not be cancelled
	initialize bool
	probe      bool // liveness check: never cancelled, triggers no other
	modern     bool
	idBuffer   [20]byte

	listen *listenStream

	id     atomic.Int64                  // on the wire; read by other goroutines
	http   atomic.Pointer[http.Response] // nil unless HTTP
	caller Caller

	deliverMu sync.Mutex // held during deliveries
	ended     bool       // Conn.Call returns or has returned
	abort     context.CancelFunc

	timer timing.CallTimer
}

// Caller receives the results of [Conn.CallAsync].
type Caller interface {
	// CallEnded receives what Conn.Call would have returned, once. It runs on the
	// goroutine that finishes the call, usually the read loop, and must not block. Messages
	// that it sends should go into burst, which may be nil.
	CallEnded(reply jsonrpc.Reply, err error, burst *jsonrpc.WriteBatch)
}

// WireID returns the last id of the call on the wire, or 0, and its HTTP response, or
// nil.
func (c *Call) WireID() (id int64, answer *http.Response) { return c.id.Load(), c.http.Load() }

func (c *Call) acceptsResult(resultType string) bool {
	return resultType == "input_required" && c.ForwardInput || resultType == "task" && c.AcceptTask
}

// Pause stops the timer of the call while a user is asked. Each Pause needs one Resume.
func (c *Call) Pause() { c.timer.Pause() }

// Resume undoes one Pause.
func (c *Call) Resume() { c.timer.Resume() }

func (c *Call) prepareRetry(answers, state []byte) {
	c.deliverMu.Lock()
	defer c.deliverMu.Unlock()
	c.ended, c.abort = false, nil
	c.InputResponses, c.RequestState = answers, state
}

// deliver runs f unless the call is over, and reports whether it did.
func (c *Call) deliver(f func()) bool {
	c.deliverMu.Lock()
	defer c.deliverMu.Unlock()
	if c.ended {
		return false
	}
	f()
	return true
}

// end prevents further deliveries. It returns the function that closes the call's stream,
// or nil.
func (c *Call) end() context.CancelFunc {
	c.deliverMu.Lock()
	defer c.deliverMu.Unlock()
	c.ended = true
	return c.abort
}

func (c *Call) setAbort(f context.CancelFunc) {
	c.deliverMu.Lock()
	defer c.deliverMu.Unlock()
	c.abort = f
}

func (c *Call) findToken() {
	switch {
	case c.Token.IsKnown():
	case c.handshake, c.probe, c.listen != nil:
		c.Token = wire.KeepToken
	default:
		c.Token, _ = wire.FindToken(c.Params, rawjson.Get(c.Params, "_meta"))
	}
}

func (c *Call) frame(id []byte) []byte {
	var room [8]rawjson.Edit
	params, edits := c.Token.Put(room[:0], c.Params, c.Edits, id)
	return jsonrpc.RequestFrame(id, c.Method, params, edits...)
}

var errExpired = errors.New("no answer in time")

// expireCalls fails calls that timed out and sets the alarm for the others. Progress and
// pauses may have moved deadlines.
func (l *link) expireCalls() {
	l.expiry.Fired()
	now, next := time.Now(), time.Time{}
	for id, c := range l.calls.All() {
		over, silent, at := c.timer.Check(now)
		if over {
			l.calls.Fail(id, errExpired)
		}
		if silent {
			l.requestLivenessCheck()
		}
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	l.expiry.Expect(next)
}
