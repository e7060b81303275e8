package downstream

import (
	"context"
	"time"

	"goblin/gateway/jsonrpc"
)

// Nested is a request that a handler makes of its own while it works on one of
// a client's, in the name of that client. Its answer is kept for the handler.
type Nested struct {
	Request
	out nestedStream
}

var nestedID = []byte("0")

// Nested makes such a request inside x; what is sent and asked through the nested
// one goes to the stream of x. ctx ends the nested one. params must be an object.
func (x *Request) Nested(ctx context.Context, method string, params []byte) *Nested {
	n := &Nested{out: nestedStream{outer: x}}
	in := &n.Request
	in.startTime = time.Now()
	in.session = x.session
	in.id = nestedID
	in.method = method
	in.params = params
	in.out = &n.out
	in.outer = x.Outer()
	if m := x.Modern(); m != nil {
		own := *m
		own.Header = nil // it repeats what the outer request says
		in.modern = &own
	}
	in.ctx, in.cancel = context.WithCancelCause(ctx)
	return n
}

// Answer returns the reply once the handler has returned; zero if it gave none.
func (n *Nested) Answer() jsonrpc.Reply { return n.out.reply }

// nestedStream is the stream of a nested exchange.
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

// sendLow is the outer exchange's, without keys: nothing of a nested one is replaced.
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
