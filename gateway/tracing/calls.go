package tracing

import (
	"context"
	"errors"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
)

// Call is the CLIENT span of a call to a server. A nil Call does nothing.
type Call struct {
	pipeline *pipeline
	span     trace.Span
	call     *upstream.Call
}

// Target is the recipient of a call.
type Target struct {
	Server   config.Server
	Protocol string // revision of the connection
	Name     string // the server's own name or URI, or ""
}

// StartCall starts the CLIENT span of a call for the client's request x and adds its
// context to c. c must be complete except for that. The result is nil without traces.
func (t *Tracer) StartCall(x *downstream.Request, to Target, c *upstream.Call) *Call {
	p := t.current()
	if p == nil {
		return nil
	}
	within := p.serverSpan(x.Outer())
	name, all := targetAttributes(c.Method, t.o.Mask.String(to.Name), c.Params)
	_, span := p.spans.Start(trace.ContextWithSpan(context.Background(), within.span), name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(all...))
	if span.IsRecording() {
		span.SetAttributes(serverAttributes(&to.Server, to.Protocol)...)
	}
	inject(c, span.SpanContext(), within.baggage)
	return &Call{p, span, c}
}

// End finishes the span with the answer of the server.
func (c *Call) End(reply jsonrpc.Reply, err error) {
	if c == nil {
		return
	}
	defer c.span.End()
	if !c.span.IsRecording() {
		return
	}
	id, answer := c.call.WireID()
	if id != 0 {
		c.span.SetAttributes(requestID.String(strconv.FormatInt(id, 10)))
	}
	c.span.SetAttributes(answerAttributes(answer)...)
	switch {
	case err != nil:
		setError(c.span, failureType(err), "")
	case reply.Error != nil:
		c.pipeline.setCode(c.span, reply.Error)
	case c.call.Method == jsonrpc.MethodToolsCall && string(reply.Shape.Get(reply.Result, "isError")) == "true":
		setError(c.span, toolError, "")
	}
}

// setCode sets the error of a CLIENT span. All codes are errors there.
func (p *pipeline) setCode(span trace.Span, object []byte) {
	code := strconv.Itoa(jsonrpc.ParseErrorObject(object).Code)
	span.SetAttributes(statusCodeKey.String(code))
	setError(span, code, p.message(object))
}

// failureType returns error.type for a call without an answer.
func failureType(err error) string {
	if failed, ok := errors.AsType[*upstream.Error](err); ok {
		return failed.Code
	}
	if errors.Is(err, downstream.ErrCancelled) || errors.Is(err, context.Canceled) {
		return cancelled
	}
	return otherError
}

// ServerRequest is a server's request to a client: a SERVER span for Goblin as the server's
// client, and a CLIENT span for Goblin as the client's server. A nil ServerRequest does
// nothing.
type ServerRequest struct {
	pipeline       *pipeline
	server, client trace.Span
	params         []byte
}

// StartServerRequest starts the spans of a server's request. The parent is the context in
// its `_meta`, otherwise the call that caused it, which may be nil.
func (t *Tracer) StartServerRequest(cause *Call, from Target, method string, params []byte) *ServerRequest {
	p := t.current()
	if p == nil {
		return nil
	}
	own := metaOrigin(params)
	ctx := under(own.parent)
	if !own.parent.IsValid() && cause != nil {
		ctx = trace.ContextWithSpan(ctx, cause.span)
	}
	name, all := targetAttributes(method, "", params)
	ctx, server := p.spans.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(all...))
	if server.IsRecording() {
		server.SetAttributes(serverSide(serverAttributes(&from.Server, from.Protocol))...)
	}
	_, client := p.spans.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(append(all, serverName.String(from.Server.Name))...))
	r := &ServerRequest{pipeline: p, server: server, client: client, params: params}
	if params, ok := setMeta(params, members(client.SpanContext()), own.baggage); ok {
		r.params = params
	}
	return r
}

// serverSide renames the address of a server that acts as the client of a request.
func serverSide(all []attribute.KeyValue) []attribute.KeyValue {
	for i := range all {
		switch all[i].Key {
		case serverAddress:
			all[i].Key = clientAddress
		case serverPort:
			all[i].Key = clientPort
		}
	}
	return all
}

// Params returns the params for the client.
func (r *ServerRequest) Params(own []byte) []byte {
	if r == nil {
		return own
	}
	return r.params
}

// End finishes the spans. s is the client that was asked, or nil: then there is no CLIENT span.
func (r *ServerRequest) End(s *downstream.Session, err *jsonrpc.Error) {
	if r == nil {
		return
	}
	if s != nil {
		if r.client.IsRecording() {
			r.client.SetAttributes(sessionAttributes(s)...)
			if name := s.Name(); name != "" {
				r.client.SetAttributes(clientName.String(cut(name, maxText)))
			}
			if v := s.Protocol(); v != "" {
				r.client.SetAttributes(protocolVersion.String(v))
			}
			if err != nil {
				r.pipeline.setCode(r.client, err.Object())
			}
		}
		r.client.End()
	}
	if err != nil && r.server.IsRecording() {
		code := strconv.Itoa(err.Code)
		r.server.SetAttributes(statusCodeKey.String(code))
		if !isCallerError(err.Code) {
			setError(r.server, code, r.pipeline.message(err.Object()))
		}
	}
	r.server.End()
}
