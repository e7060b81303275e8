package gateway

import (
	"context"
	"errors"

	"goblin/gateway/downstream"
	"goblin/gateway/journal"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// record counts a request and writes it to the journal of traffic.
func (g *Gateway) record(r *request, label string) {
	g.journal.Request(r.Exchange, label, r.server, r.name, journal.Answer{
		Body: r.answer, Edits: r.edits, Parts: r.parts, Code: r.code, Asked: r.under.Asked(),
	})
	r.buffer.Release()
	r.answer, r.buffer = nil, nil
}

// Parked implements [downstream.Parker]: each answer is counted and recorded.
func (r *request) Parked(result []byte, edits []rawjson.Edit) {
	r.gateway.journal.Request(r.Exchange, r.Method(), r.server, r.name, journal.Answer{
		Body: result, Edits: edits, Asked: r.under.Forget(),
	})
}

// withdrawn reports whether a question ended without an answer, so that the
// client was told to forget it.
func withdrawn(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// showSession writes a session to where screens see it.
func (g *Gateway) showSession(s *downstream.Session) {
	protocol, info := s.Peer()
	name := info.Name
	if s.Stateless() {
		name = "stateless clients"
	}
	g.reg.SetSession(registry.Session{
		ID: s.ID(), Transport: s.Transport(), Client: name, ClientTitle: info.Title,
		Version: info.Version, Protocol: protocol, Screen: s.Transport() == ScreenTransport, Since: s.Since(),
	})
}

// ScreenTransport is the transport of the sessions by which screens act.
const ScreenTransport = "screen"

// SocketTransport is the transport of clients that are bridged to the host.
const SocketTransport = "socket"
