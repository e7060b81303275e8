package downstream

import (
	"bytes"
	"errors"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// answerTarget returns the request that an answer of size bytes goes to. It waits for a
// stateless client that was asked something, and returns nil if the answer is refused or late.
func (x *Request) answerTarget(size int) *Request {
	if x.modern != nil {
		x.mu.Lock()
		x.concluded = true
		x.mu.Unlock()
		if p := x.parked.Load(); p != nil {
			x = p.conclude(size)
		}
	}
	if x == nil || x.answered() || !x.checkMemory(size) {
		return nil
	}
	return x
}

// Reply answers with a raw result, with the edits made to it, and returns the edits
// that the client's revision needs, those included. The first answer counts; later
// ones, and those to a cancelled request, are ignored.
func (x *Request) Reply(result []byte, edits ...rawjson.Edit) []rawjson.Edit {
	edits = x.Envelope(result, edits, nil)
	if at := x.answerTarget(len(result)); at != nil {
		at.answer(jsonrpc.ResultFrame(at.id, result, edits...), 0)
	}
	return edits
}

// ReplyRaw is Reply for a result which has no line breaks between its tokens and
// which nobody writes to any more: if it is large, it is not copied, and its
// buffer, which may be nil, is held until it has gone out. shape reads it, if it is
// not nil.
func (x *Request) ReplyRaw(result []byte, of *jsonrpc.Buffer, shape *rawjson.Layout, edits ...rawjson.Edit) []rawjson.Edit {
	edits = x.Envelope(result, edits, shape)
	switch at := x.answerTarget(len(result)); {
	case at == nil:
	case len(result) < jsonrpc.LargeSize:
		at.send(jsonrpc.ResultFrame(at.id, result, edits...))
	default:
		at.ReplyParts(rawjson.SpliceParts(result, edits...), of)
	}
	return edits
}

// ReplyParts is Pass for a result in parts that needs no edits.
func (x *Request) ReplyParts(result [][]byte, of *jsonrpc.Buffer) {
	if x = x.answerTarget(totalLength(result)); x == nil {
		return
	}
	frame := jsonrpc.ResultParts(x.id, result)
	out, ok := x.out.(interface {
		answerParts(frame [][]byte, of *jsonrpc.Buffer, burst *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition)
	})
	if !ok || totalLength(frame) < jsonrpc.LargeSize {
		x.send(bytes.Join(frame, nil))
		return
	}
	x.end(ErrAnswered, func() { out.answerParts(frame, of, x.writeBatch, x.predecessors) })
}

func totalLength(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// send answers with a frame that has no line break but its last byte.
func (x *Request) send(frame []byte) {
	x.end(ErrAnswered, func() { x.out.answer(frame, 0, x.writeBatch, x.predecessors) })
}

// Error answers with a raw error object, with the edits made to it, and returns both
// as the client's revision needs them.
func (x *Request) Error(object []byte, edits ...rawjson.Edit) ([]byte, []rawjson.Edit) {
	if x.modern != nil && x.method == "resources/read" {
		uri := rawjson.GetString(x.params, "uri")
		object, edits = toModernNotFound(rawjson.Splice(object, edits...), rawjson.Quote(uri)), nil
	}
	if at := x.answerTarget(len(object)); at != nil {
		code := jsonrpc.CodeInternal
		if at.modern != nil { // of others it makes no difference
			code = jsonrpc.ParseErrorObject(object).Code
		}
		at.answer(jsonrpc.ErrorFrame(at.id, object, edits...), code)
	}
	return object, edits
}

// Fail answers with an error of ours, and returns it as the client's revision needs
// it.
func (x *Request) Fail(err *jsonrpc.Error) *jsonrpc.Error {
	if x.modern != nil && err.Code == CodeResourceNotFound {
		e := *err
		e.Code = jsonrpc.CodeInvalidParams
		err = &e
	}
	if at := x.answerTarget(len(err.Message) + len(err.Data)); at != nil {
		at.answer(err.Frame(at.id), err.Code)
	}
	return err
}

func (x *Request) answered() bool { return x.done.Load() }

func (x *Request) answer(frame []byte, code int) {
	x.end(ErrAnswered, func() { x.out.answer(jsonrpc.OneLine(frame), code, x.writeBatch, x.predecessors) })
}

// abandon ends the request without an answer.
func (x *Request) abandon(reason string) {
	x.end(&cancelled{reason: reason}, x.out.abandon)
}

// cancelByDisconnect cancels the request because its client disconnected.
func (x *Request) cancelByDisconnect(reason string) {
	x.end(&cancelled{reason: reason, disconnected: true}, x.out.abandon)
}

// Cancel ends a request of the session as its client could, but with an answer: a
// frame. It is false for one that was answered meanwhile.
func (x *Request) Cancel(reason string, frame []byte, code int) bool {
	if x.answered() {
		return false
	}
	x.end(&cancelled{reason: reason}, func() { x.out.answer(frame, code, x.writeBatch, x.predecessors) })
	return true
}

// cancelled is [ErrCancelled] with the client's reason, which goes with the
// cause of the context to whoever passes the cancellation on.
type cancelled struct {
	reason       string
	disconnected bool // the client closed its connection
}

func (c *cancelled) Error() string        { return ErrCancelled.Error() }
func (c *cancelled) Unwrap() error        { return ErrCancelled }
func (c *cancelled) CancelReason() string { return c.reason }

// end makes last the last thing that happens on the exchange's stream.
func (x *Request) end(cause error, last func()) {
	x.mu.Lock()
	if x.done.Load() {
		x.mu.Unlock()
		return
	}
	x.cause = cause
	x.done.Store(true)
	// First, since the client may reuse the id as soon as it has the answer.
	x.session.removeRequest(x)
	last()
	p, posted := x.out.(*postStream)
	x.clientLeft = x.session.ctx.Err() != nil || posted && p.clientLeft()
	cancel, waiter := x.cancel, x.waiter
	x.mu.Unlock()
	if cancel != nil && !errors.Is(cause, errParked) {
		cancel(cause)
	}
	if waiter != nil && !errors.Is(cause, ErrAnswered) {
		waiter.RequestEnded(cause)
	}
}

func (s *Session) removeRequest(x *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight[x.key] == x {
		delete(s.inFlight, x.key)
	}
}
