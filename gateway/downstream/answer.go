package downstream

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// answerTarget returns the request for an answer of size bytes, or nil if the answer is
// late or refused. It waits if a stateless client is away.
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

// Reply answers with a raw result and edits of it. It returns the edits with those for
// the client's revision. Only the first answer counts, and none after a cancellation.
func (x *Request) Reply(result []byte, edits ...rawjson.Edit) []rawjson.Edit {
	edits = x.Envelope(result, edits, nil)
	if at := x.answerTarget(len(result)); at != nil {
		at.answer(jsonrpc.ResultFrame(at.id, result, edits...), 0)
	}
	return edits
}

// ReplyRaw is Reply for a result without line breaks between tokens that is never
// modified again. A large result is not copied: of, which may be nil, is held until it is
// written. shape may be nil.
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

// ReplyParts is ReplyRaw for a result in parts without edits.
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

// send answers with a frame without line breaks, except its last byte.
func (x *Request) send(frame []byte) {
	x.end(ErrAnswered, func() { x.out.answer(frame, 0, x.writeBatch, x.predecessors) })
}

// Error answers with a raw error object and edits of it. It returns both in the form for
// the client's revision.
func (x *Request) Error(object []byte, edits ...rawjson.Edit) ([]byte, []rawjson.Edit) {
	if x.modern != nil && x.method == "resources/read" {
		uri := rawjson.GetString(x.params, "uri")
		object, edits = toModernNotFound(rawjson.Splice(object, edits...), rawjson.Quote(uri)), nil
	}
	if at := x.answerTarget(len(object)); at != nil {
		code := jsonrpc.CodeInternal
		if at.modern != nil {
			code = jsonrpc.ParseErrorObject(object).Code
		}
		at.answer(jsonrpc.ErrorFrame(at.id, object, edits...), code)
	}
	return object, edits
}

// Fail answers with an error and returns it in the form for the client's revision.
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

// ReplyTruncated answers with the first half of a frame, which is one line of invalid
// JSON. The body is a result, or with a code an error object.
func (x *Request) ReplyTruncated(body []byte, code int) {
	var edits []rawjson.Edit
	if code == 0 {
		edits = x.Envelope(body, nil, nil)
	}
	at := x.answerTarget(len(body))
	if at == nil {
		return
	}
	var frame []byte
	if code == 0 {
		frame = jsonrpc.ResultFrame(at.id, body, edits...)
	} else {
		frame = jsonrpc.ErrorFrame(at.id, body)
	}
	n := len(frame) / 2
	for n > 1 && !utf8.RuneStart(frame[n]) {
		n--
	}
	at.send(append(jsonrpc.OneLine(frame)[:n], '\n'))
}

// Drop finishes the request without an answer. Over HTTP, the response stays open until the
// client disconnects or the session closes. A dropped request counts for no limit.
func (x *Request) Drop() {
	x = x.current()
	last := func() {}
	switch out := x.out.(type) {
	case *batch:
		last = out.abandon // the others are answered
	case *postStream:
		last = out.detachUntilServed
	}
	x.end(ErrDropped, last)
}

// Detach excludes the request from the drain of its HTTP listener until attach is called.
func (x *Request) Detach() (attach func()) {
	out := x.Outer().current().out
	if b, is := out.(*batch); is {
		out = b.stream
	}
	if p, is := out.(*postStream); is && p.listener != nil {
		return p.listener.addStream()
	}
	return func() {}
}

func (x *Request) answered() bool { return x.done.Load() }

func (x *Request) answer(frame []byte, code int) {
	x.end(ErrAnswered, func() { x.out.answer(jsonrpc.OneLine(frame), code, x.writeBatch, x.predecessors) })
}

func (x *Request) abandon(reason string) {
	x.end(&cancelled{reason: reason}, x.out.abandon)
}

func (x *Request) cancelByDisconnect(reason string) {
	x.end(&cancelled{reason: reason, disconnected: true}, x.out.abandon)
}

// Cancel cancels a request with frame as its answer. It returns false if it was already
// answered.
func (x *Request) Cancel(reason string, frame []byte, code int) bool {
	if x.answered() {
		return false
	}
	x.end(&cancelled{reason: reason}, func() { x.out.answer(frame, code, x.writeBatch, x.predecessors) })
	return true
}

// cancelled is [ErrCancelled] with the client's reason.
type cancelled struct {
	reason       string
	disconnected bool // the client closed its connection
}

func (c *cancelled) Error() string        { return ErrCancelled.Error() }
func (c *cancelled) Unwrap() error        { return ErrCancelled }
func (c *cancelled) CancelReason() string { return c.reason }

// end finishes the request. last runs last on its stream.
func (x *Request) end(cause error, last func()) {
	x.mu.Lock()
	if x.done.Load() {
		x.mu.Unlock()
		return
	}
	x.cause = cause
	x.done.Store(true)
	// The client may reuse the id as soon as it has the answer.
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
