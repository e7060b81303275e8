//go:build e2e

package e2e

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Traces is an OTLP/HTTP receiver.
type Traces struct {
	board
	w     *World
	URL   string
	spans []Span
}

// Span is a received span.
type Span struct {
	Name, Kind, Trace, ID, Parent, State string
	Failed                               bool
	Status                               string
	Start, End                           uint64
	Attributes                           map[string]string
	Events                               []string
	Links                                []string // span ids
}

// TracesTo starts a receiver and makes the world's config send traces to it.
func (w *World) TracesTo() *Traces {
	w.T.Helper()
	r := &Traces{w: w}
	s := httptest.NewServer(r)
	w.T.Cleanup(s.Close)
	r.URL = s.URL
	w.OTel = Obj{"endpoint": s.URL}
	w.Env = append(w.Env, "OTEL_BSP_SCHEDULE_DELAY=20")
	return r
}

// ServeHTTP decodes an ExportTraceServiceRequest, which has the field of TracesData.
func (r *Traces) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var data tracepb.TracesData
	if err == nil {
		err = proto.Unmarshal(body, &data)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Update(func() {
		for _, g := range data.ResourceSpans {
			for _, scope := range g.ScopeSpans {
				for _, s := range scope.Spans {
					r.spans = append(r.spans, newSpan(s))
				}
			}
		}
	})
}

func newSpan(s *tracepb.Span) Span {
	one := Span{
		Name: s.Name, Kind: strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"), Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
		Parent: hex.EncodeToString(s.ParentSpanId), State: s.TraceState, Start: s.StartTimeUnixNano, End: s.EndTimeUnixNano,
		Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Status: s.GetStatus().GetMessage(), Attributes: map[string]string{},
	}
	for _, a := range s.Attributes {
		_, value, _ := strings.Cut(a.Value.String(), ":")
		one.Attributes[a.Key] = strings.Trim(value, `"`)
	}
	for _, e := range s.Events {
		one.Events = append(one.Events, e.Name)
	}
	for _, l := range s.Links {
		one.Links = append(one.Links, hex.EncodeToString(l.SpanId))
	}
	return one
}

// Context returns the traceparent that the span sends on.
func (s Span) Context() string { return "00-" + s.Trace + "-" + s.ID + "-01" }

// Wait waits for a span of a kind (SERVER, CLIENT) and name.
func (r *Traces) Wait(kind, name string) (found Span) {
	r.w.T.Helper()
	return r.WaitAll(kind, name, 1)[0]
}

// WaitAll waits for n spans of a kind and name.
func (r *Traces) WaitAll(kind, name string, n int) (found []Span) {
	r.w.T.Helper()
	ok := r.Holds(Patience, func() bool {
		found = nil
		for _, s := range r.spans {
			if s.Kind == kind && s.Name == name {
				found = append(found, s)
			}
		}
		return len(found) >= n
	})
	if !ok {
		r.w.T.Fatalf("waited for %d spans %s %s; received:\n%s", n, kind, name, r)
	}
	return found
}

// All returns the spans received so far.
func (r *Traces) All() (all []Span) {
	r.Update(func() { all = append(all, r.spans...) })
	return all
}

func (r *Traces) String() string {
	var text strings.Builder
	for _, s := range r.All() {
		fmt.Fprintf(&text, "%s %s %s<%s failed=%v %v %v\n", s.Kind, s.Name, s.ID, s.Parent, s.Failed, s.Attributes, s.Events)
	}
	return text.String()
}
