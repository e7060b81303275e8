package export

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
)

// maxLinks is the maximum number of requests whose parent or trace context is kept.
const maxLinks = 1_000_000

// Kinds of OTLP spans.
const (
	spanServer = 2
	spanClient = 3
)

type otlpSpan struct {
	TraceID    string          `json:"traceId"`
	SpanID     string          `json:"spanId"`
	TraceState string          `json:"traceState,omitempty"`
	ParentID   string          `json:"parentSpanId,omitempty"`
	Name       string          `json:"name"`
	Kind       int             `json:"kind"`
	Start      string          `json:"startTimeUnixNano"`
	End        string          `json:"endTimeUnixNano"`
	Attributes []otlpAttribute `json:"attributes"`
	Status     *otlpStatus     `json:"status,omitempty"`
}

type otlpStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message,omitempty"`
}

type otlpAttribute struct {
	Key   string         `json:"key"`
	Value map[string]any `json:"value"`
}

// traceContext is the context that a client sent, by W3C Trace Context.
type traceContext struct {
	trace, span, state string // lower-case hex
}

// traces finds the trace and the parent of spans. Children are recorded before their
// parents, so it is filled by a pass of its own.
type traces struct {
	seed     []byte
	parents  map[uint64]uint64
	exported map[uint64]bool // parents; true if the parent itself is exported
	contexts map[uint64]traceContext
	protocol map[string]string // by session
}

// writeOTLP writes an ExportTraceServiceRequest.
func writeOTLP(k *walker, w io.Writer) error {
	t := &traces{parents: map[uint64]uint64{}, exported: map[uint64]bool{}, contexts: map[uint64]traceContext{}, protocol: map[string]string{}}
	k.onOther = func(l *recording.Line) error {
		if l.Type == recording.TypeClient && len(t.protocol) < maxPages {
			t.protocol[l.Session] = l.Protocol
		}
		return nil
	}
	if err := k.lines(func(l *recording.Line) error { t.note(k, l); return nil }); err != nil {
		return err
	}
	if k.header != nil {
		t.seed, _ = k.header.Time.MarshalBinary()
	}
	missing := k.sum.MissingBodies
	k.sum, k.onOther = Summary{Note: k.sum.Note}, nil
	resource := attributes("service.name", "goblin", "service.version", k.options.Version)
	scope := encode(nameVersion{"goblin/registry/export", cmp.Or(k.options.Version, "unknown")})
	list := listWriter{w: w}
	list.raw(`{"resourceSpans":[{"resource":{"attributes":` + string(encode(resource)) + `},"scopeSpans":[{"scope":` + string(scope) + `,"spans":[`)
	n := 0
	err := k.each(func(e *exchange) error {
		n++
		for _, s := range t.spans(e, n) {
			if err := list.add(s); err != nil {
				return err
			}
		}
		return nil
	})
	k.sum.MissingBodies = max(k.sum.MissingBodies, missing)
	list.raw("\n]}]}]}\n")
	return cmp.Or(err, list.err)
}

func (t *traces) note(k *walker, l *recording.Line) {
	if len(t.parents)+len(t.contexts)+len(t.exported) > maxLinks {
		k.sum.Note = "some spans have no parent: too many requests"
		return
	}
	if l.Parent != 0 {
		if l.Number != 0 {
			t.parents[l.Number] = l.Parent
		}
		if !t.exported[l.Parent] {
			t.exported[l.Parent] = false
		}
	}
	if _, is := t.exported[l.Number]; is && l.Number != 0 {
		t.exported[l.Number] = true
	}
	if l.Number != 0 && l.Direction == "" {
		params, _ := k.body(l.Params)
		if c, ok := contextOf(params, l.Wire); ok {
			t.contexts[l.Number] = c
		}
	}
}

// contextOf returns the trace context in _meta, otherwise in the HTTP headers.
func contextOf(params []byte, wire string) (c traceContext, ok bool) {
	if bytes.Contains(params, []byte("traceparent")) {
		var p struct {
			Meta struct {
				Parent string `json:"traceparent"`
				State  string `json:"tracestate"`
			} `json:"_meta"`
		}
		if json.Unmarshal(params, &p) == nil {
			if c, ok = parseTraceparent(p.Meta.Parent); ok {
				c.state = p.Meta.State
				return c, true
			}
		}
	}
	e := exchange{Line: &recording.Line{Wire: wire}}
	_, headers := e.headers(registry.FromClient)
	for _, h := range headers {
		if strings.EqualFold(h.Name, "traceparent") {
			return parseTraceparent(h.Value)
		}
	}
	return c, false
}

func parseTraceparent(text string) (c traceContext, ok bool) {
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || len(parts[1]) != 32 || len(parts[2]) != 16 {
		return c, false
	}
	for _, part := range parts[:3] {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return c, false
		}
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return c, false
	}
	return traceContext{trace: parts[1], span: parts[2]}, true
}

func (t *traces) hash(what string, n uint64) []byte {
	h := sha256.New()
	h.Write(t.seed)
	h.Write([]byte(what + strconv.FormatUint(n, 10)))
	return h.Sum(nil)
}

func (t *traces) spanID(what string, n uint64) string { return hex.EncodeToString(t.hash(what, n)[:8]) }

// trace returns the trace of a request: the one of its nearest ancestor with a context,
// otherwise a new one of the first ancestor.
func (t *traces) trace(n uint64) (id, state string) {
	const maxDepth = 64 // parents may be a cycle in damaged recordings
	for range maxDepth {
		if c, ok := t.contexts[n]; ok {
			return c.trace, c.state
		}
		parent, ok := t.parents[n]
		if !ok {
			break
		}
		n = parent
	}
	return hex.EncodeToString(t.hash("trace", n)[:16]), ""
}

func (t *traces) spans(e *exchange, index int) []otlpSpan {
	n, what := e.Number, "span"
	if n == 0 { // a notification
		n, what = uint64(index), "notification"
	}
	s := otlpSpan{
		SpanID: t.spanID(what, n), Name: strings.TrimSpace(e.Method + " " + target(e.Method, e.Name)), Kind: spanServer,
		Start: unixNano(e.Time), End: unixNano(e.end()),
	}
	if e.toClient() {
		s.Kind = spanClient
	}
	switch {
	case e.Number != 0:
		s.TraceID, s.TraceState = t.trace(e.Number)
	case e.Parent != 0:
		s.TraceID, s.TraceState = t.trace(e.Parent)
	default:
		s.TraceID = hex.EncodeToString(t.hash("trace "+what, n)[:16])
	}
	if t.exported[e.Parent] {
		s.ParentID = t.spanID("span", e.Parent)
	} else if c, ok := t.contexts[e.Number]; ok && e.Number != 0 {
		s.ParentID = c.span
	}
	part := registry.ClientID
	if e.toClient() {
		part = registry.ServerID
	}
	s.Attributes = attributes(append(t.common(e, e.Name, string(e.idAt(part))),
		"goblin.client", e.Client, "goblin.profile", e.Profile, "goblin.original_name", e.Original, "goblin.outcome", e.Outcome,
		"goblin.rules", registry.RuleSummary(registry.WithoutQuotes(e.Rules)))...)
	s.Attributes = append(s.Attributes, number("goblin.wait.start", e.StartWait/1000)...)
	s.Attributes = append(s.Attributes, number("goblin.wait.queue", e.QueueWait/1000)...)
	s.Attributes = append(s.Attributes, number("goblin.wait.user", e.UserWait/1000)...)
	if kind, failed := e.failed(); failed {
		s.Status = &otlpStatus{Code: 2, Message: e.Outcome}
		s.Attributes = append(s.Attributes, attributes("error.type", kind)...)
		if e.Code != 0 {
			s.Attributes = append(s.Attributes, attributes("rpc.response.status_code", strconv.Itoa(e.Code))...)
		}
	}
	if e.Server == "" || e.toClient() || e.isNotification() || !e.Answered {
		return []otlpSpan{s}
	}
	hop := s
	hop.SpanID, hop.ParentID, hop.Kind = t.spanID("hop", n), s.SpanID, spanClient
	own := cmp.Or(e.Original, e.Name)
	hop.Name = strings.TrimSpace(e.Method + " " + target(e.Method, own))
	hop.Start = unixNano(e.Time.Add(min(duration(e.StartWait+e.QueueWait), duration(e.Took))))
	hop.Attributes = attributes(t.common(e, own, string(e.idAt(registry.ServerID)))...)
	return []otlpSpan{s, hop}
}

func target(method, name string) string {
	if method == "tools/call" || method == "prompts/get" { // URIs have too many values for a name
		return name
	}
	return ""
}

// common returns the attributes of the semantic conventions, as keys and values.
func (t *traces) common(e *exchange, name, id string) []string {
	all := []string{
		"mcp.method.name", e.Method, "mcp.session.id", e.Session, "mcp.protocol.version", cmp.Or(e.Protocol, t.protocol[e.Session]),
		"jsonrpc.request.id", strings.Trim(id, `"`), "goblin.server", e.Server,
	}
	switch e.Method {
	case "tools/call":
		return append(all, "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", name)
	case "prompts/get":
		return append(all, "gen_ai.prompt.name", name)
	case "resources/read", "resources/subscribe", "resources/unsubscribe", "notifications/resources/updated":
		return append(all, "mcp.resource.uri", withoutQuery(name))
	}
	return all
}

// withoutQuery returns a URI without its query and fragment, which may hold secrets.
func withoutQuery(uri string) string {
	if end := strings.IndexAny(uri, "?#"); end >= 0 {
		return uri[:end]
	}
	return uri
}

// attributes returns attributes from keys and values, without empty values.
func attributes(pairs ...string) []otlpAttribute {
	all := make([]otlpAttribute, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			all = append(all, otlpAttribute{pairs[i], map[string]any{"stringValue": pairs[i+1]}})
		}
	}
	return all
}

func number(key string, v float64) []otlpAttribute {
	if v <= 0 {
		return nil
	}
	return []otlpAttribute{{key, map[string]any{"doubleValue": v}}}
}

// unixNano formats a time as OTLP/JSON does. Times outside of its range are 0.
func unixNano(t time.Time) string {
	if t.Year() < 1970 || t.Year() > 2261 {
		return "0"
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}
