package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// Members of `_meta` and HTTP headers with a trace context (W3C Trace Context and Baggage,
// SEP-414).
const (
	traceparent = "traceparent"
	tracestate  = "tracestate"
	baggageKey  = "baggage"

	// maxContext is the largest tracestate or baggage that is read, in bytes. W3C asks for
	// at least 512 and 8192.
	maxContext = 8 << 10
)

// origin is the trace context of a message.
type origin struct {
	parent  trace.SpanContext // invalid: none
	ambient trace.SpanContext // of the HTTP request, if parent is another one
	baggage string            // valid, or ""
}

// requestOrigin reads the context of a client's request: of `_meta`, otherwise of the HTTP
// headers.
func requestOrigin(x *downstream.Request) origin {
	found := metaOrigin(x.SentParams())
	r, _, _ := x.HTTP(0)
	if r == nil {
		return found
	}
	header := readOrigin(func(name string) string { return r.Header.Get(name) })
	if !found.parent.IsValid() {
		found.parent = header.parent
	} else if header.parent.IsValid() && header.parent.SpanID() != found.parent.SpanID() {
		found.ambient = header.parent
	}
	if found.baggage == "" {
		found.baggage = header.baggage
	}
	return found
}

// metaOrigin reads the context in `_meta` of params.
func metaOrigin(params []byte) origin {
	meta := rawjson.Get(params, "_meta")
	if !rawjson.IsObject(meta) {
		return origin{}
	}
	return readOrigin(func(name string) string { return rawjson.GetString(meta, name) })
}

func readOrigin(get func(name string) string) (o origin) {
	fields := propagation.MapCarrier{traceparent: get(traceparent)}
	if fields[traceparent] != "" {
		if state := get(tracestate); len(state) <= maxContext {
			fields[tracestate] = state
		}
		o.parent = trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), fields))
	}
	if b := get(baggageKey); b != "" && len(b) <= maxContext {
		if _, err := baggage.Parse(b); err == nil {
			o.baggage = b
		}
	}
	return o
}

// members returns the members of `_meta` for a message in a span.
func members(at trace.SpanContext) propagation.MapCarrier {
	fields := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), at), fields)
	return fields
}

// setMeta returns params with the members of a span's context in `_meta`. The client's baggage stays;
// otherwise more is added. ok is false if `_meta` is invalid, which the receiver refuses.
func setMeta(params []byte, own propagation.MapCarrier, more string) (changed []byte, ok bool) {
	if params == nil {
		params = []byte("{}")
	}
	meta := rawjson.Get(params, "_meta")
	if meta == nil {
		meta = []byte("{}")
	}
	if !rawjson.IsObject(params) || !rawjson.IsObject(meta) {
		return params, false
	}
	hasBaggage := rawjson.Get(meta, baggageKey) != nil
	meta = rawjson.Filter(meta, func(k rawjson.Key, v []byte) ([]byte, bool) {
		return v, !k.Is(traceparent) && !k.Is(tracestate)
	})
	for _, name := range []string{traceparent, tracestate} {
		if v := own[name]; v != "" {
			meta = rawjson.SetMember(meta, name, rawjson.Quote(v))
		}
	}
	if more != "" && !hasBaggage {
		meta = rawjson.SetMember(meta, baggageKey, rawjson.Quote(more))
	}
	return rawjson.SetMember(params, "_meta", meta), true
}

// inject adds a span's context to a call, in `_meta` and in the headers of its HTTP
// request.
func inject(c *upstream.Call, at trace.SpanContext, more string) {
	params := c.Params
	if len(c.Edits) > 0 {
		params = rawjson.Splice(params, c.Edits...)
	}
	own := members(at)
	params, ok := setMeta(params, own, more)
	if !ok {
		return
	}
	c.Params, c.Edits = params, nil
	if c.Token.IsKnown() && c.Token != wire.KeepToken {
		c.Token, _ = wire.FindToken(params, rawjson.Get(params, "_meta"))
	}
	c.Header = http.Header{}
	for name, v := range own {
		c.Header.Set(name, v)
	}
}
