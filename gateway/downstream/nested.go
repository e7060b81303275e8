package downstream

import (
	"context"
	"time"

	"goblin/gateway/jsonrpc"
)

// Nested is a request that a handler makes for the client of another request.
type Nested struct {
	Request
	out nestedStream
}

var nestedID = []byte("0")

// Nested returns a request within x that ends with ctx. Messages to the client use the
// stream of x. params must be an object.
func (x *Request) Nested(ctx context.Context, method string, params []byte) *Nested {
	n := &Nested{out: nestedStream{outer: x}}
	in := &n.Request
	in.number = requestNumbers.Add(1)
	in.startTime = time.Now()
	in.session = x.session
	in.id = nestedID
	in.method = method
	in.params = params
	in.out = &n.out
	in.outer = x.Outer()
	if m := x.Modern(); m != nil {
		own := *m
		own.Header = nil // it describes the outer request
		in.modern = &own
	}
	in.ctx, in.cancel = context.WithCancelCause(ctx)
	return n
}

// Answer returns the reply after the handler has returned.
func (n *Nested) Answer() jsonrpc.Reply { return n.out.reply }

type nestedStream struct {
	outer *Request
	reply jsonrpc.Reply
}

func (s *nestedStream) answer(frame []byte, _ int, _ *jsonrpc.WriteBatch, _ []jsonrpc.QueuePosition) {
	if m, err := jsonrpc.Parse(frame); err == nil {
		s.reply = jsonrpc.Reply{Result: m.Result, Error: m.Error}
	}
}

func (s *nestedStream) abandon() {}

func (s *nestedStream) send(frame []byte) {
	x := s.outer.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.done.Load() {
		x.out.send(frame)
	}
}

// sendLow ignores keys: notifications of a nested request are never replaced.
func (s *nestedStream) sendLow(server, _ string, frame []byte) (m jsonrpc.QueuePosition) {
	x := s.outer.current()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.done.Load() {
		m = x.notifyLocked(server, "", frame)
	}
	return m
}

func (s *nestedStream) request(ctx context.Context, frame []byte) error {
	return s.outer.ask(ctx, frame)
}

func (s *nestedStream) unsentBytes() int64 { return s.outer.UnsentBytes() }

func (s *nestedStream) laneBytes(server string) int64 { return s.outer.current().out.laneBytes(server) }
