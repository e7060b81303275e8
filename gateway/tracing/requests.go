package tracing

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// serverSpan is the SERVER span of a client's request.
type serverSpan struct {
	span    trace.Span
	started time.Time // of the client's message
	baggage string
	parked  atomic.Bool // the client gets an intermediate answer
	ended   atomic.Bool
}

// Begin starts the SERVER span of a client's request, unless it has one. The sink
// finishes it with the request's record. Requests within other ones have no SERVER span.
func (t *Tracer) Begin(x *downstream.Request) {
	if p := t.current(); p != nil && x.Outer() == x {
		p.serverSpan(x)
	}
}

// Park is Begin before an intermediate answer. Later calls belong to the same span until
// the client repeats its request, which gets a span of its own.
func (t *Tracer) Park(x *downstream.Request) {
	if p := t.current(); p != nil {
		p.serverSpan(x.Outer()).parked.Store(true)
	}
}

// Forget removes a request that the journal does not record.
func (t *Tracer) Forget(x *downstream.Request) {
	if t.Active() {
		t.spans.Delete(x.Number())
	}
}

func (p *pipeline) serverSpan(x *downstream.Request) *serverSpan {
	number, at := x.Number(), x.Started()
	old, known := p.tracer.spans.Load(number)
	if known && old.(*serverSpan).started.Equal(at) {
		return old.(*serverSpan)
	}
	from := requestOrigin(x)
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(at),
		trace.WithAttributes(methodName.String(cut(x.Method(), maxText))),
	}
	if from.ambient.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from.ambient}))
	}
	_, span := p.spans.Start(under(from.parent), cut(x.Method(), maxText), options...)
	if span.IsRecording() {
		span.SetAttributes(clientAttributes(x)...)
	}
	s := &serverSpan{span: span, started: at, baggage: from.baggage}
	// Several calls of a script may start at the same time. The first span counts.
	if known && p.tracer.spans.CompareAndSwap(number, old, s) {
		return s
	}
	kept, _ := p.tracer.spans.LoadOrStore(number, s)
	return kept.(*serverSpan)
}

func under(parent trace.SpanContext) context.Context {
	if !parent.IsValid() {
		return context.Background()
	}
	return trace.ContextWithRemoteSpanContext(context.Background(), parent)
}

// Record implements [telemetry.Sink].
func (p *pipeline) Record(rec *registry.TrafficRecord, full telemetry.Bodies) {
	switch {
	case rec.Status == registry.StatusNotification:
		p.notification(rec, full.Request)
	case rec.Direction == registry.ToServer && rec.Number != 0 && rec.Parent == 0:
		if s, ok := p.tracer.spans.Load(rec.Number); ok {
			p.finish(s.(*serverSpan), rec, &full)
		}
	}
}

func (p *pipeline) finish(s *serverSpan, rec *registry.TrafficRecord, full *telemetry.Bodies) {
	if !s.parked.Load() {
		p.tracer.spans.CompareAndDelete(rec.Number, s)
	}
	if s.ended.Swap(true) {
		return
	}
	if s.span.IsRecording() {
		name, all := targetAttributes(rec.Method, rec.Name, full.Request)
		s.span.SetName(name)
		s.span.SetAttributes(append(all, recordAttributes(rec)...)...)
		p.setOutcome(s.span, rec, full.Response)
	}
	s.span.End(trace.WithTimestamp(rec.Time.Add(rec.Duration)))
}

func recordAttributes(rec *registry.TrafficRecord) []attribute.KeyValue {
	all := []attribute.KeyValue{
		callNumber.Int64(int64(rec.Number)), requestSize.Int(rec.RequestSize), responseSize.Int(rec.ResponseSize),
	}
	for _, text := range []struct {
		key   attribute.Key
		value string
	}{{serverName, rec.Server}, {clientName, rec.Client}, {profileName, rec.Profile}, {ruleSteps, registry.RuleSummary(registry.WithoutQuotes(rec.Events))}} {
		if text.value != "" {
			all = append(all, text.key.String(cut(text.value, maxText)))
		}
	}
	for _, wait := range []struct {
		key attribute.Key
		d   time.Duration
	}{{startWait, rec.StartWait}, {queueWait, rec.QueueWait}, {userWait, rec.UserWait}} {
		if wait.d > 0 {
			all = append(all, seconds(wait.key, wait.d))
		}
	}
	return all
}

// setOutcome sets the error of a SERVER span. An error of the caller does not fail it.
func (p *pipeline) setOutcome(span trace.Span, rec *registry.TrafficRecord, response []byte) {
	switch {
	case rec.Status == registry.StatusCancelled:
		setError(span, cancelled, "")
		return
	case rec.Status == registry.StatusLeft:
		setError(span, disconnected, "")
		return
	case rec.Code != 0:
		code := strconv.Itoa(rec.Code)
		span.SetAttributes(statusCodeKey.String(code))
		if !isCallerError(rec.Code) {
			setError(span, code, p.message(response))
		}
		p.setGoblinCode(span, rawjson.Path(response, "data", "code"))
	case rec.Status != telemetry.StatusLabel(true):
		setError(span, toolError, "")
		p.setGoblinCode(span, rawjson.Path(response, "_meta", "goblin/error", "code"))
	}
}

// isCallerError reports whether a code is an error of the caller, by the conventions.
func isCallerError(code int) bool {
	switch code {
	case jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest, jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, downstream.CodeResourceNotFound:
		return true
	}
	return false
}

func (p *pipeline) setGoblinCode(span trace.Span, code []byte) {
	if text, ok := rawjson.String(code); ok && text != "" {
		span.SetAttributes(goblinCode.String(cut(p.tracer.o.Mask.String(text), maxText)))
	}
}

// message returns the masked message of an error object.
func (p *pipeline) message(object []byte) string {
	return cut(p.tracer.o.Mask.String(rawjson.GetString(object, "message")), maxText)
}

func setError(span trace.Span, kind, description string) {
	span.SetAttributes(errorType.String(kind))
	span.SetStatus(codes.Error, description)
}

// notification adds an event to the span of the request that it belongs to. Others become
// spans.
func (p *pipeline) notification(rec *registry.TrafficRecord, params []byte) {
	name, all := targetAttributes(rec.Method, rec.Name, params)
	if rec.Parent != 0 {
		if s, ok := p.tracer.spans.Load(rec.Parent); ok && s.(*serverSpan).span.IsRecording() {
			s.(*serverSpan).span.AddEvent(name, trace.WithTimestamp(rec.Time), trace.WithAttributes(all...))
		}
		return
	}
	kind := trace.SpanKindServer
	if rec.Direction == registry.ToClient {
		kind = trace.SpanKindClient
	}
	for _, text := range []struct {
		key   attribute.Key
		value string
	}{{sessionID, rec.Session}, {serverName, rec.Server}, {clientName, rec.Client}} {
		if text.value != "" {
			all = append(all, text.key.String(cut(text.value, maxText)))
		}
	}
	if rec.Receivers > 0 {
		all = append(all, receivers.Int(rec.Receivers))
	}
	_, span := p.spans.Start(under(metaOrigin(params).parent), name,
		trace.WithSpanKind(kind), trace.WithTimestamp(rec.Time), trace.WithAttributes(all...))
	span.End(trace.WithTimestamp(rec.Time))
}
