package gateway

import (
	"context"
	"errors"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/metrics"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// record counts a request and writes it to the journal of traffic.
func (g *Gateway) record(r *request, label string, start time.Time) {
	took := time.Since(start)
	g.metrics.Request(label, r.server, r.code == 0, took)
	if r.Cancelled() {
		g.noted(registry.ToServer, r.Session(), r.server, "notifications/cancelled", r.name, cancelParams(r.ID(), r.Reason()))
	}
	g.reg.Traffic().Append(registry.TrafficRecord{
		Time:         start,
		Session:      r.Session().ID(),
		Client:       r.Session().Client().Name,
		Direction:    registry.ToServer,
		Server:       r.server,
		Method:       r.Method(),
		Name:         g.secrets.text(r.name),
		Duration:     took,
		Size:         int64(len(r.answer)),
		Status:       metrics.Status(r.code == 0),
		Code:         r.code,
		Request:      g.secrets.body(r.Params()),
		Response:     g.secrets.body(r.answer),
		RequestSize:  len(r.Params()),
		ResponseSize: len(r.answer),
	})
}

// asked writes a question of a server to the journal of traffic. s is the
// session that was asked, nil for none.
func (g *Gateway) asked(s *downstream.Session, server, method string, params, result []byte, err *jsonrpc.Error, start time.Time) {
	rec := registry.TrafficRecord{
		Time: start, Direction: registry.ToClient, Server: server, Method: method,
		Duration: time.Since(start), Status: metrics.Status(err == nil),
	}
	if s != nil {
		rec.Session, rec.Client = s.ID(), s.Client().Name
	}
	if err != nil {
		rec.Code, result = err.Code, err.Object()
	}
	rec.Request, rec.RequestSize = g.secrets.body(params), len(params)
	rec.Response, rec.ResponseSize = g.secrets.body(result), len(result)
	rec.Size = int64(len(result))
	g.reg.Traffic().Append(rec)
}

// noted writes a notification to the journal of traffic: one to or from a
// session, or, with none, one of a server that concerned nobody. It runs on
// read loops.
func (g *Gateway) noted(way registry.Direction, s *downstream.Session, server, method, name string, params []byte) {
	rec := registry.TrafficRecord{
		Time: time.Now(), Direction: way, Server: server, Method: method, Name: g.secrets.text(name),
		Status: registry.StatusNotification, Request: g.secrets.body(params), RequestSize: len(params),
	}
	if s != nil {
		rec.Session, rec.Client = s.ID(), s.Client().Name
	}
	g.reg.Traffic().Append(rec)
}

func cancelParams(id []byte, reason string) []byte {
	params := append([]byte(`{"requestId":`), id...)
	if reason != "" {
		params = append(params, `,"reason":`...)
		params = rawjson.AppendString(params, reason)
	}
	return append(params, '}')
}

// withdrawn reports whether a question ended without an answer, so that the
// client was told to forget it.
func withdrawn(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// showSession writes a session to where screens see it.
func (g *Gateway) showSession(c *client) {
	s := c.session
	info := s.Client()
	g.reg.SetSession(registry.Session{
		ID: s.ID(), Transport: s.Transport(), Client: info.Name, ClientTitle: info.Title,
		Version: info.Version, Protocol: s.Protocol(), Screen: s.Transport() == ScreenTransport, Since: c.since,
	})
}

// ScreenTransport is the transport of the sessions by which screens act.
const ScreenTransport = "screen"
