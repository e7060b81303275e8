package gateway

import (
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/servers"
	"goblin/gateway/telemetry"
	"goblin/gateway/tracing"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func (g *Gateway) record(r *request, label string) {
	g.o.Tracer.Begin(r.Request)
	tool := ""
	if label == "tools/call" {
		tool = r.target.Name
	}
	a := telemetry.Answer{
		Body: r.answer, Shape: r.rewriter.Shape, Edits: r.edits, Parts: r.parts, Code: r.code, Failed: r.failed,
		UserAsked: r.call.PromptedUser(), UserWait: r.call.PromptTime(), StartWait: r.startWait, QueueWait: r.queueWait,
		Tool: tool, Original: r.target.Name, Answered: r.serverAnswer != nil, Cause: r.cause, Call: &r.call,
		Events: r.ruleEvents(),
	}
	if x := r.intercepted; x != nil {
		a.UserWait += x.UserWait
		a.UserAsked = a.UserAsked || x.UserWait > 0
	}
	if g.journal.HasSinks() {
		a.Sent, a.Own = r.sentParams(), r.ownAnswer()
	}
	r.call.RecordLatency(g.journal.RecordRequest(r.Request, label, r.server, r.name, a))
	r.buffer.Release()
	r.answer, r.buffer = nil, nil
}

// sentParams returns the params as sent to the server, or nil if only the name differs
// from the client's.
func (r *request) sentParams() []byte {
	filled := r.target.Entry != nil && r.target.Entry.Override != nil && len(r.serverEdits) > 0
	params, sent := r.Params(), r.SentParams()
	same := len(params) == len(sent) && (len(params) == 0 || &params[0] == &sent[0])
	if r.server == "" || same && !filled {
		return nil
	}
	return rawjson.Splice(params, r.serverEdits...)
}

// ownAnswer returns the server's answer if answer is another one.
func (r *request) ownAnswer() []byte {
	if len(r.serverAnswer) == 0 || len(r.answer) > 0 && &r.answer[0] == &r.serverAnswer[0] {
		return nil
	}
	return r.serverAnswer
}

// trace starts the span of a call, complete except for its context.
func (r *request) trace(u *inflight.Request, b *servers.Server, conn upstream.Conn) {
	t := r.gateway.o.Tracer
	if b == nil || !t.Active() {
		return
	}
	u.Trace = t.StartCall(r.Request, tracing.Target{Server: b.Config(), Protocol: conn.Info().Protocol, Name: r.target.Name}, &u.Call)
}

// OnParked implements [downstream.Parker].
func (r *request) OnParked(result []byte, edits []rawjson.Edit) {
	r.gateway.o.Tracer.Park(r.Request)
	a := telemetry.Answer{
		Body: result, Edits: edits, UserAsked: r.call.ResetPrompted(), StartWait: r.startWait, QueueWait: r.queueWait,
		Original: r.target.Name, Cause: r.cause, Call: &r.call,
	}
	if r.requestSeen { // otherwise another goroutine may set the exchange now
		a.Events = r.ruleEvents()
	}
	r.gateway.journal.RecordRequest(r.Request, r.Method(), r.server, r.name, a)
}

func (g *Gateway) showSession(s *downstream.Session) {
	protocol, info := s.Peer()
	name := info.Name
	if s.Stateless() {
		name = "stateless clients"
	}
	var quiet func() time.Duration // nil if sessions end with the connection
	if s.Transport() == "http" {
		quiet = s.IdleTime
	}
	g.reg.SetSession(registry.Session{
		ID: s.ID(), Transport: s.Transport(), Client: name, ClientTitle: info.Title,
		Version: info.Version, Protocol: protocol, Screen: s.IsScreen(), Since: s.Started(), IdleTime: quiet,
	})
}
