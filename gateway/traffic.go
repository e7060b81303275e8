package gateway

import (
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/rawjson"
)

func (g *Gateway) record(r *request, label string) {
	tool := ""
	if label == "tools/call" {
		tool = r.target.Name
	}
	r.call.RecordLatency(g.journal.RecordRequest(r.Request, label, r.server, r.name, telemetry.Answer{
		Body: r.answer, Shape: r.rewriter.Shape, Edits: r.edits, Parts: r.parts, Code: r.code, Failed: r.failed, UserAsked: r.call.PromptedUser(), UserWait: r.call.PromptTime(), Tool: tool, Call: &r.call,
	}))
	r.buffer.Release()
	r.answer, r.buffer = nil, nil
}

// OnParked implements [downstream.Parker].
func (r *request) OnParked(result []byte, edits []rawjson.Edit) {
	r.gateway.journal.RecordRequest(r.Request, r.Method(), r.server, r.name, telemetry.Answer{
		Body: result, Edits: edits, UserAsked: r.call.ResetPrompted(), Call: &r.call,
	})
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
