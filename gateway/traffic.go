package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/metrics"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// journalled is how much of a body the journal of traffic keeps.
const journalled = 64 << 10

// heads are the beginnings of answers in parts, as much as the journal needs to
// see: it copies what it keeps.
var heads = sync.Pool{New: func() any {
	b := make([]byte, 2*journalled)
	return &b
}}

// record counts a request and writes it to the journal of traffic.
func (g *Gateway) record(r *request, label string, start time.Time) {
	took := time.Since(start)
	g.metrics.Request(label, r.server, r.code == 0, took)
	if r.Cancelled() {
		g.noted(registry.ToServer, r.Session(), r.server, "notifications/cancelled", r.name, jsonrpc.CancelParams(r.ID(), r.Reason()))
	}
	answer, size, status := r.answer, len(r.answer), metrics.Status(r.code == 0)
	if r.parts != nil {
		head := heads.Get().(*[]byte)
		defer heads.Put(head)
		answer, size = (*head)[:0], 0
		for _, p := range r.parts {
			answer = append(answer, p[:min(len(p), cap(answer)-len(answer))]...)
			size += len(p)
		}
	}
	if len(answer) <= journalled { // both sides as the client sees them
		if len(r.edits) > 0 {
			answer = rawjson.Splice(answer, r.edits...)
		}
		if r.code == 0 && r.Method() == "tools/call" && string(rawjson.Get(answer, "isError")) == "true" {
			status = registry.StatusToolError
		}
	}
	g.reg.Traffic().Append(registry.TrafficRecord{
		Time:         start,
		Session:      r.Session().ID(),
		Client:       r.Client().Name,
		Direction:    registry.ToServer,
		Server:       r.server,
		Method:       r.Method(),
		Name:         g.mask.String(r.name),
		Duration:     took,
		Size:         int64(size),
		Status:       status,
		Code:         r.code,
		Asked:        r.flight.asked.Load(),
		Request:      g.mask.Head(r.Exchange.Params(), journalled),
		Response:     g.mask.Head(answer, journalled),
		RequestSize:  len(r.Exchange.Params()),
		ResponseSize: size,
	})
	r.buffer.Release()
	r.answer, r.buffer = nil, nil
}

// asked writes a question of a server to the journal of traffic. s is the
// session that was asked, nil for none.
func (g *Gateway) asked(s *downstream.Session, server, method string, params, result []byte, err *jsonrpc.Error, start time.Time) {
	rec := registry.TrafficRecord{
		Time: start, Direction: registry.ToClient, Server: server, Method: method,
		Duration: time.Since(start), Status: metrics.Status(err == nil),
	}
	if s != nil {
		rec.Session, rec.Client = s.ID(), peerName(s)
	}
	if err != nil {
		rec.Code, result = err.Code, err.Object()
	}
	rec.Request, rec.RequestSize = g.mask.Head(params, journalled), len(params)
	rec.Response, rec.ResponseSize = g.mask.Head(result, journalled), len(result)
	rec.Size = int64(len(result))
	g.reg.Traffic().Append(rec)
}

// noted writes a notification to the journal of traffic: one to or from a
// session, or, with none, one of a server that concerned nobody. It runs on
// read loops.
func (g *Gateway) noted(way registry.Direction, s *downstream.Session, server, method, name string, params []byte) {
	rec := registry.TrafficRecord{
		Time: time.Now(), Direction: way, Server: server, Method: method, Name: g.mask.String(name),
		Status: registry.StatusNotification, Request: g.mask.Head(params, journalled), RequestSize: len(params),
	}
	if s != nil {
		rec.Session, rec.Client = s.ID(), peerName(s)
	}
	g.reg.Traffic().Append(rec)
}

// crowd is how many sessions a notification may go to for each to have a record
// of it. More share one: they would push all else out of the journal.
const crowd = 20

// receiver is who a notification went to, and what it was about in the
// receiver's own words.
type receiver struct {
	holder
	name string
}

// announced writes a notification to the journal of traffic that went to any
// number of sessions.
func (g *Gateway) announced(server, method, name string, params []byte, to []receiver) {
	if len(to) == 0 {
		return
	}
	rec := registry.TrafficRecord{
		Time: time.Now(), Direction: registry.ToClient, Server: server, Method: method,
		Status: registry.StatusNotification, Request: g.mask.Head(params, journalled), RequestSize: len(params),
	}
	if len(to) > crowd {
		rec.Name, rec.Receivers = g.mask.String(name), len(to)
		g.reg.Traffic().Append(rec)
		return
	}
	for _, r := range to {
		rec.Session, rec.Client, rec.Name = r.session.ID(), peerName(r.session), g.mask.String(r.name)
		g.reg.Traffic().Append(rec)
	}
}

// withdrawn reports whether a question ended without an answer, so that the
// client was told to forget it.
func withdrawn(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// peerName is what the client of a session calls itself.
func peerName(s *downstream.Session) string {
	_, info := s.Peer()
	return info.Name
}

// showSession writes a session to where screens see it.
func (g *Gateway) showSession(c *client) {
	s := c.session
	protocol, info := s.Peer()
	name := info.Name
	if s.Stateless() {
		name = "stateless clients"
	}
	g.reg.SetSession(registry.Session{
		ID: s.ID(), Transport: s.Transport(), Client: name, ClientTitle: info.Title,
		Version: info.Version, Protocol: protocol, Screen: s.Transport() == ScreenTransport, Since: c.since,
	})
}

// ScreenTransport is the transport of the sessions by which screens act.
const ScreenTransport = "screen"

// SocketTransport is the transport of clients that are bridged to the host.
const SocketTransport = "socket"
