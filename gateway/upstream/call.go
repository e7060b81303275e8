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

// Call is one request to a backend. It is used once.
type Call struct {
	// Context ends the call: the backend gets notifications/cancelled, and its
	// late answer is dropped. nil stands for the background.
	Context context.Context
	Method  string
	Params  []byte         // raw object, nil for none
	Edits   []rawjson.Edit // made to Params, in order, while the frame is built
	// Token is the place of the progress token in Params. What stands there is
	// replaced by one that is unique on the connection. It must not overlap Edits.
	Token wire.TokenPosition
	// Progress gets the raw params of each notifications/progress of this
	// call, with our token in them. It runs on the read loop and must not
	// block. It is never called after Conn.Call returned.
	Progress func(params []byte)
	// Timeout bounds the wait for the answer; each progress notification
	// starts it anew. 0 stands for the server's: call_timeout for tools/call,
	// timeout for the others.
	Timeout time.Duration
	// Batch collects the request of Conn.CallAsync with others for one write.
	Batch *jsonrpc.WriteBatch
	// Cause is not looked at: it is for the Handler to find whom a
	// notification or request of this call's stream belongs to.
	Cause any
	// Capabilities are declared with a modern request: a raw object of what
	// the caller can be asked. nil stands for Options.Capabilities.
	Capabilities []byte
	// LogLevel asks a modern backend for log lines of this request from that
	// level on; "" for none. Legacy ones are told by logging/setLevel.
	LogLevel string
	// ForwardInput leaves it to the caller to get what a modern backend wants
	// to know first: a result of the type input_required is returned as it is.
	// Its answers are those of another Call.
	ForwardInput bool
	// AcceptTask lets a modern backend answer with a task: a result of that
	// type is returned as it is (SEP-2663).
	AcceptTask bool
	// InputResponses and RequestState are sent to a modern server as inputResponses and requestState, raw; nil
	// for none. They replace those of Params. Without ForwardInput, they change while the server asks for input.
	InputResponses, RequestState []byte

	handshake  bool     // initialize and what comes before it: must never be cancelled
	initialize bool     // initialize itself
	probe      bool     // a liveness probe: never cancelled, and its timeout starts no other
	modern     bool     // sent in the modern era
	idBuffer   [20]byte // for the id

	listen *listenStream // set for subscriptions/listen

	id     int64                         // on the wire
	http   atomic.Pointer[http.Response] // nil for other transports
	caller Caller

	deliverMu sync.Mutex // held while something of the call is delivered
	ended     bool       // Conn.Call has returned, or is about to
	abort     context.CancelFunc

	timer timing.CallTimer
}

// Caller has begun a call without waiting for it.
type Caller interface {
	// CallEnded gets what Conn.Call would have returned, once. It runs in the
	// goroutine that ends the call, mostly the read loop, and must not block.
	// What it sends because of that goes into the burst, which may be nil.
	CallEnded(reply jsonrpc.Reply, err error, burst *jsonrpc.WriteBatch)
}

// WireID is the id that the call went over the wire with last, 0 for none, and what HTTP
// answered, nil for other transports.
func (c *Call) WireID() (id int64, answer *http.Response) { return c.id, c.http.Load() }

// acceptsResult reports whether the caller handles results of a type itself.
func (c *Call) acceptsResult(resultType string) bool {
	return resultType == "input_required" && c.ForwardInput || resultType == "task" && c.AcceptTask
}

// Pause stops the time of the call until as many calls of Resume: a human is being
// asked.
func (c *Call) Pause() { c.timer.Pause() }

// Resume undoes one Pause.
func (c *Call) Resume() { c.timer.Resume() }

// prepareRetry prepares a call for sending it once more.
func (c *Call) prepareRetry(answers, state []byte) {
	c.deliverMu.Lock()
	defer c.deliverMu.Unlock()
	c.ended, c.abort = false, nil
	c.InputResponses, c.RequestState = answers, state
}

// deliver runs f unless the call has ended; it reports whether it did.
func (c *Call) deliver(f func()) bool {
	c.deliverMu.Lock()
	defer c.deliverMu.Unlock()
	if c.ended {
		return false
	}
	f()
	return true
}

// end makes sure that nothing is delivered any more, and returns what drops
// the stream of the call, if it has one.
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

// findToken finds the position of the call's progress token, once.
func (c *Call) findToken() {
	switch {
	case c.Token.IsKnown():
	case c.handshake, c.probe, c.listen != nil:
		c.Token = wire.KeepToken
	default:
		c.Token, _ = wire.FindToken(c.Params, rawjson.Get(c.Params, "_meta"))
	}
}

// frame is the request under the given id, which is also the progress token.
func (c *Call) frame(id []byte) []byte {
	var room [8]rawjson.Edit
	params, edits := c.Token.Put(room[:0], c.Params, c.Edits, id)
	return jsonrpc.RequestFrame(id, c.Method, params, edits...)
}

// errExpired is the outcome of a call whose time is over.
var errExpired = errors.New("no answer in time")

// expireCalls ends the calls that timed out, and sets the alarm for the others. Progress or a question to
// the user may have moved their deadlines.
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
