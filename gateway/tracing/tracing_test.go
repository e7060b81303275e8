package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"goblin/gateway/config"
	"goblin/gateway/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an OTLP/HTTP receiver that decodes with the official messages.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []func(http.ResponseWriter) // for the next requests; then 200
	requests []*http.Request
	spans    []*tracepb.Span
	groups   []*tracepb.ResourceSpans
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	var body io.Reader = q.Body
	if q.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(q.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	text, _ := io.ReadAll(body)
	// An ExportTraceServiceRequest has the same field as TracesData.
	var data tracepb.TracesData
	if err := proto.Unmarshal(text, &data); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
	if len(r.answers) > 0 {
		answer := r.answers[0]
		r.answers = r.answers[1:]
		answer(w)
		return
	}
	for _, g := range data.ResourceSpans {
		r.groups = append(r.groups, g)
		for _, s := range g.ScopeSpans {
			r.spans = append(r.spans, s.Spans...)
		}
	}
}

type world struct {
	*Tracer
	log *bytes.Buffer
	env map[string]string
}

func newWorld(env map[string]string) *world {
	w := &world{log: &bytes.Buffer{}, env: env}
	w.Tracer = New(Options{
		Version: "1.2.3", Mask: config.NewMask(&config.Config{OTel: config.OTel{Headers: map[string]string{"a": "mask-me-now"}}}),
		Logger: slog.New(slog.NewTextHandler(w.log, nil)), Getenv: func(name string) string { return env[name] },
	})
	return w
}

func (w *world) apply(cfg config.OTel) error {
	cfg.On = true
	return w.Apply(cfg, func(telemetry.Sink) func() { return func() {} })
}

// span sends one span.
func (w *world) span(name string) {
	_, s := w.current().spans.Start(context.Background(), name)
	s.End()
}

func TestSpansArriveWithAllTheirParts(t *testing.T) {
	r := newReceiver(t)
	w := newWorld(nil)
	require.NoError(t, w.apply(config.OTel{Endpoint: r.URL + "/base/", Headers: map[string]string{"X-Key": "k"}}))
	require.True(t, w.Active())

	state, err := trace.ParseTraceState("vendor=1")
	require.NoError(t, err)
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	link := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{3}, SpanID: trace.SpanID{4}, TraceFlags: trace.FlagsSampled})
	start, end := time.Unix(100, 5), time.Unix(101, 6)
	_, s := w.current().spans.Start(under(parent), "tools/call add", trace.WithSpanKind(trace.SpanKindServer),
		trace.WithTimestamp(start), trace.WithLinks(trace.Link{SpanContext: link, Attributes: []attribute.KeyValue{attribute.Bool("l", true)}}))
	s.SetAttributes(attribute.String("s", "bad \xff"), attribute.String("empty", ""), attribute.Bool("b", false), attribute.Int("i", -7),
		attribute.Float64("f", 0.5), attribute.StringSlice("list", []string{"a", ""}))
	s.AddEvent("notifications/progress", trace.WithTimestamp(end), trace.WithAttributes(attribute.Int("n", 0)))
	s.SetStatus(codes.Error, "broken")
	s.End(trace.WithTimestamp(end))
	w.Close()
	require.False(t, w.Active())

	require.Len(t, r.spans, 1)
	require.Equal(t, "/base/v1/traces", r.requests[0].URL.Path)
	require.Equal(t, "application/x-protobuf", r.requests[0].Header.Get("Content-Type"))
	require.Equal(t, "k", r.requests[0].Header.Get("X-Key"))
	got := r.spans[0]
	require.Equal(t, "tools/call add", got.Name)
	require.Equal(t, tracepb.Span_SPAN_KIND_SERVER, got.Kind)
	require.Equal(t, parent.TraceID().String(), hex(got.TraceId))
	require.Equal(t, parent.SpanID().String(), hex(got.ParentSpanId))
	require.Len(t, got.SpanId, 8)
	require.Equal(t, "vendor=1", got.TraceState)
	require.Equal(t, []uint64{uint64(start.UnixNano()), uint64(end.UnixNano())}, []uint64{got.StartTimeUnixNano, got.EndTimeUnixNano})
	require.Equal(t, uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK|tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK|1), got.Flags)
	require.Equal(t, tracepb.Status_STATUS_CODE_ERROR, got.Status.Code)
	require.Equal(t, "broken", got.Status.Message)
	var all []string
	for _, a := range got.Attributes {
		all = append(all, a.Key+"="+strings.ReplaceAll(a.Value.String(), "  ", " "))
	}
	require.Equal(t, []string{
		`s=string_value:"bad �"`, `empty=string_value:""`, `b=bool_value:false`, `i=int_value:-7`, `f=double_value:0.5`,
		`list=array_value:{values:{string_value:"a"} values:{string_value:""}}`,
	}, all)
	require.Len(t, got.Events, 1)
	require.Equal(t, "notifications/progress", got.Events[0].Name)
	require.Equal(t, uint64(end.UnixNano()), got.Events[0].TimeUnixNano)
	require.Equal(t, "n", got.Events[0].Attributes[0].Key)
	require.Equal(t, link.SpanID().String(), hex(got.Links[0].SpanId))
	require.Len(t, got.Links[0].Attributes, 1)

	resource := map[string]string{}
	for _, a := range r.groups[0].Resource.Attributes {
		resource[a.Key] = a.Value.GetStringValue()
	}
	require.Equal(t, "goblin", resource["service.name"])
	require.Equal(t, "1.2.3", resource["service.version"])
	require.Equal(t, "go", resource["telemetry.sdk.language"])
	scope := r.groups[0].ScopeSpans[0].Scope
	require.Equal(t, []string{"goblin", "1.2.3"}, []string{scope.Name, scope.Version})
}

func hex(b []byte) string {
	const digits = "0123456789abcdef"
	var out strings.Builder
	for _, c := range b {
		out.WriteByte(digits[c>>4])
		out.WriteByte(digits[c&15])
	}
	return out.String()
}

func TestTheStandardVariablesConfigureTheExport(t *testing.T) {
	r := newReceiver(t)
	t.Setenv("OTEL_SERVICE_NAME", "my-gateway")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	w := newWorld(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT":        "http://127.0.0.1:1",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": r.URL + "/own",
		"OTEL_EXPORTER_OTLP_HEADERS":         "Authorization=Bearer%20x, X-All = 1",
		"OTEL_EXPORTER_OTLP_COMPRESSION":     "gzip",
		"OTEL_EXPORTER_OTLP_TIMEOUT":         "5000",
		"OTEL_EXPORTER_OTLP_PROTOCOL":        "http/protobuf",
	})
	require.NoError(t, w.apply(config.OTel{Headers: map[string]string{"X-All": "2"}}))
	w.span("a")
	w.Close()
	require.Len(t, r.spans, 1)
	require.Equal(t, "/own", r.requests[0].URL.Path, "as it is")
	require.Equal(t, "Bearer x", r.requests[0].Header.Get("Authorization"))
	require.Equal(t, []string{"2"}, r.requests[0].Header.Values("X-All"), "the config wins")
	attributes := map[string]string{}
	for _, a := range r.groups[0].Resource.Attributes {
		attributes[a.Key] = a.Value.GetStringValue()
	}
	require.Equal(t, "my-gateway", attributes["service.name"])
	require.Equal(t, "test", attributes["deployment.environment.name"])
}

func TestMistakesInTheVariablesAreNamed(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", `OTEL_EXPORTER_OTLP_PROTOCOL="grpc" is not supported; use http/protobuf`},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/json" is not supported`},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4317", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://h", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "my-secret-token", "OTEL_EXPORTER_OTLP_HEADERS is not a list of NAME=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=1%0Ab", "OTEL_EXPORTER_OTLP_HEADERS is not a list of NAME=value"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", `OTEL_EXPORTER_OTLP_TIMEOUT="10s" is not a number of milliseconds`},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", `OTEL_EXPORTER_OTLP_COMPRESSION="zstd" is not supported`},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/none", "OTEL_EXPORTER_OTLP_CERTIFICATE: open /none"},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/none", "needs OTEL_EXPORTER_OTLP_CLIENT_KEY"},
		{"OTEL_TRACES_EXPORTER", "zipkin", `OTEL_TRACES_EXPORTER="zipkin" is not supported`},
	} {
		w := newWorld(map[string]string{tt.name: tt.value})
		err := w.apply(config.OTel{})
		require.ErrorContains(t, err, tt.want)
		require.NotContains(t, err.Error(), "my-secret-token")
		require.False(t, w.Active())
	}
	for _, name := range []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
		w := newWorld(map[string]string{name: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none"}[name]})
		require.NoError(t, w.apply(config.OTel{}))
		require.False(t, w.Active(), name)
	}
	w := newWorld(map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
	require.NoError(t, w.apply(config.OTel{Protocol: config.OTelHTTPProtobuf}), "the config wins")
	w.Close()
}

func TestAPrivateAuthorityIsTrustedIfNamed(t *testing.T) {
	r := &receiver{}
	r.Server = httptest.NewTLSServer(r)
	t.Cleanup(r.Close)
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}), 0o600))
	for _, known := range []bool{false, true} {
		env := map[string]string{}
		if known {
			env["OTEL_EXPORTER_OTLP_CERTIFICATE"] = path
		}
		w := newWorld(env)
		require.NoError(t, w.apply(config.OTel{Endpoint: r.URL}))
		w.span("a")
		w.Close()
		require.Equal(t, known, len(r.spans) == 1)
		require.Equal(t, !known, strings.Contains(w.log.String(), "certificate"), w.log)
	}
}

func TestASampleOfTracesIsSentUnlessTheClientDecides(t *testing.T) {
	r := newReceiver(t)
	w := newWorld(nil)
	require.NoError(t, w.apply(config.OTel{Endpoint: r.URL, Sample: new(float64)}))
	w.span("dropped")
	sampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	_, s := w.current().spans.Start(under(sampled), "kept")
	s.End()
	w.Close()
	require.Len(t, r.spans, 1)
	require.Equal(t, "kept", r.spans[0].Name)
}

func TestABusyReceiverGetsTheBatchAgain(t *testing.T) {
	r := newReceiver(t)
	busy := make(chan struct{})
	r.answers = append(r.answers, func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		close(busy)
	})
	w := newWorld(nil)
	require.NoError(t, w.apply(config.OTel{Endpoint: r.URL}))
	w.span("a")
	flushed := make(chan error)
	go func() { flushed <- w.current().provider.ForceFlush(context.Background()) }()
	<-busy
	require.NoError(t, <-flushed)
	require.Len(t, r.requests, 2)
	require.Len(t, r.spans, 1)
	w.Close()
	require.NotContains(t, w.log.String(), "lost")
}

func TestAFailingReceiverIsReportedOnceWithoutSecrets(t *testing.T) {
	r := newReceiver(t)
	refuse := func(w http.ResponseWriter) { http.Error(w, "no", http.StatusUnauthorized) }
	partial := func(w http.ResponseWriter) { _, _ = w.Write([]byte("\x0a\x0e\x08\x01\x12\x0amask-me-\x1bx")) }
	r.answers = append(r.answers, refuse, refuse, partial)
	w := newWorld(nil)
	require.NoError(t, w.apply(config.OTel{Endpoint: strings.Replace(r.URL, "//", "//user:pass@", 1)}))
	for range 4 {
		w.span("a")
		require.NoError(t, w.current().provider.ForceFlush(context.Background()))
	}
	w.Close()
	text := w.log.String()
	require.Equal(t, 1, strings.Count(text, "traces not sent"), text)
	require.Contains(t, text, "HTTP status 401")
	require.Contains(t, text, "traces are sent again")
	require.Contains(t, text, "spans lost\" count=2 total=3")
	require.NotContains(t, text, "pass")
	require.NotContains(t, text, "\x1b")
	require.Len(t, r.spans, 1)
}

func TestAnUnreachableReceiverNeitherBlocksNorFillsTheMemory(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { close(release) })
	w := newWorld(map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "10"})
	require.NoError(t, w.apply(config.OTel{Endpoint: hanging.URL}))
	for range 1000 {
		w.span("a")
	}
	require.EqualValues(t, 990, w.current().exporter.lost.Load())
	start := time.Now()
	w.Close()
	require.Less(t, time.Since(start), 20*flushTimeout, "it does not wait for the receiver")
	require.Contains(t, w.log.String(), "total=1000")
}

func TestOddSizesOfTheQueueAreHarmless(t *testing.T) {
	r := newReceiver(t)
	for _, value := range []string{"-5", "0", "9223372036854775807", "x"} {
		env := map[string]string{}
		for _, name := range []string{"OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT"} {
			env[name] = value
			t.Setenv(name, value)
		}
		w := newWorld(env)
		require.NoError(t, w.apply(config.OTel{Endpoint: r.URL}))
		w.span(value)
		w.Close()
	}
	require.Len(t, r.spans, 4)
	w := newWorld(map[string]string{"OTEL_BSP_SCHEDULE_DELAY": "0", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "3", "OTEL_BSP_MAX_QUEUE_SIZE": "2"})
	s, err := readSettings(config.OTel{}, w.o.Getenv)
	require.NoError(t, err)
	require.Equal(t, 5*time.Second, s.delay)
	require.Equal(t, 2, s.batch)
}

func TestURIsLoseTheirSecrets(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///a/b.txt":                           "file:///a/b.txt",
		"https://u:p@h/x?token=1#f":                 "https://h/x",
		"mcp://db/postgres://u:p@ss@h:5432/t?ssl=1": "mcp://db/postgres://h:5432/t",
		"mail@example.com":                          "mail@example.com",
		"x://a@b":                                   "x://b",
		"x://\x1b[31m":                              "x:// [31m",
	} {
		require.Equal(t, want, plainURI(uri))
	}
	require.LessOrEqual(t, len(plainURI(strings.Repeat("é", 5000))), maxURI+len("…"))
}

func TestTheContextReplacesTheClientsOwn(t *testing.T) {
	at := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	const ours = `"traceparent":"00-01000000000000000000000000000000-0200000000000000-01"`
	for params, want := range map[string]string{
		``:                    `{"_meta":{` + ours + `}}`,
		`{}`:                  `{"_meta":{` + ours + `}}`,
		`{"name":"x"}`:        `{"name":"x","_meta":{` + ours + `}}`,
		`{"_meta":{"k":[1]}}`: `{"_meta":{"k":[1],` + ours + `}}`,
		`{"_meta":{"traceparent":"old","traceparent":"older","tracestate":"a=b","progressToken":7}}`: `{"_meta":{"progressToken":7,` + ours + `}}`,
		`{"_meta":"no object"}`: `{"_meta":"no object"}`,
	} {
		var in []byte
		if params != "" {
			in = []byte(params)
		}
		got, _ := setMeta(in, members(at), "")
		require.Equal(t, want, string(got))
	}
	got, ok := setMeta([]byte(`{"_meta":{"baggage":"a=1"}}`), members(at), "b=2")
	require.True(t, ok)
	require.Contains(t, string(got), `"baggage":"a=1"`)
	got, _ = setMeta([]byte(`{}`), members(at), "b=2")
	require.Contains(t, string(got), `"baggage":"b=2"`)
}

func FuzzOriginOfAnyMessage(f *testing.F) {
	f.Add([]byte(`{"_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=b","baggage":"a=1"}}`))
	f.Add([]byte(`{"_meta":{"traceparent":"01-0-0-00","baggage":"=;="}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		o := metaOrigin(params)
		if !o.parent.IsValid() {
			return
		}
		require.True(t, o.parent.IsRemote())
		changed, ok := setMeta([]byte(`{}`), members(o.parent), o.baggage)
		require.True(t, ok)
		require.Equal(t, o.parent.TraceID(), metaOrigin(changed).parent.TraceID())
	})
}

func FuzzAnswersOfReceivers(f *testing.F) {
	f.Add([]byte("\x0a\x0e\x08\x01\x12\x0amask-me-now"))
	f.Add([]byte(`{"partialSuccess":{}}`))
	f.Fuzz(func(_ *testing.T, answer []byte) { _, _ = partialSuccess(answer) })
}
