// Package tracing sends spans of requests to a receiver of OpenTelemetry.
//
// Span names, kinds and attributes follow the semantic conventions for MCP, release v0.1.0
// of github.com/open-telemetry/semantic-conventions-genai (docs/gen-ai/mcp.md). Which error
// codes fail a span is as in model/mcp/common.yaml of revision 0e5e6a8d59d3. Attributes in
// goblin.* are Goblin's own. gateway/TRACES.md lists all of them.
//
// The SDK is the official one. The exporter is not: otlptracehttp links gRPC, which adds
// 8 MB to the binary and half a millisecond to each start.
//
// A [Tracer] without traces costs one atomic load per request. With traces no method blocks:
// the queue is bounded, and spans above it are counted and dropped. Arguments and results
// never become attributes, and secrets are masked.
package tracing

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"goblin/gateway/config"
	"goblin/gateway/telemetry"
)

// flushTimeout is the maximum time that Apply and Close spend on sending the queue.
const flushTimeout = 2 * time.Second

// Options configures a Tracer.
type Options struct {
	Version string       // of Goblin
	Mask    *config.Mask // may be nil
	Logger  *slog.Logger
	// Getenv returns a variable of the environment; nil: os.Getenv. The SDK reads
	// OTEL_TRACES_SAMPLER, OTEL_SPAN_*, OTEL_SERVICE_NAME and
	// OTEL_RESOURCE_ATTRIBUTES itself.
	Getenv func(string) string
}

// Tracer makes spans while traces are on. A nil Tracer makes none. It is safe for
// concurrent use.
type Tracer struct {
	o    Options
	live atomic.Pointer[pipeline] // nil: no traces

	mu sync.Mutex // held by Apply and Close

	spans sync.Map // number of a request in flight: *serverSpan
}

// pipeline is one provider with its exporter.
type pipeline struct {
	tracer   *Tracer
	spans    trace.Tracer
	provider *sdktrace.TracerProvider
	exporter *exporter
	remove   func() // from the journal
}

// New returns a Tracer without traces.
func New(o Options) *Tracer {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	return &Tracer{o: o}
}

// Active reports whether there are traces.
func (t *Tracer) Active() bool { return t.current() != nil }

func (t *Tracer) current() *pipeline {
	if t == nil {
		return nil
	}
	return t.live.Load()
}

// Apply starts, stops or replaces the export. addSink adds the sink that finishes the
// spans of requests. The error is the reason why there are no traces although cfg starts them.
// Sending the queue of the previous receiver takes at most two seconds.
func (t *Tracer) Apply(cfg config.OTel, addSink func(telemetry.Sink) (remove func())) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopLocked()
	if !cfg.On {
		return nil
	}
	s, err := readSettings(cfg, t.o.Getenv)
	if err != nil || s.off {
		return err
	}
	for _, value := range s.headers {
		t.o.Mask.AddSecrets(value)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		t.o.Logger.Warn("traces: problem of the OpenTelemetry SDK", "err", err)
	}))
	p := &pipeline{tracer: t, exporter: newExporter(s, t.o)}
	options := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(t.resource()),
		sdktrace.WithSpanProcessor(&boundedQueue{
			SpanProcessor: sdktrace.NewBatchSpanProcessor(p.exporter, sdktrace.WithMaxQueueSize(s.queue),
				sdktrace.WithMaxExportBatchSize(s.batch), sdktrace.WithBatchTimeout(s.delay), sdktrace.WithExportTimeout(s.limit)),
			exporter: p.exporter,
			limit:    int64(s.queue),
		}),
	}
	if cfg.Sample != nil {
		options = append(options, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*cfg.Sample))))
	}
	p.provider = sdktrace.NewTracerProvider(options...)
	p.spans = p.provider.Tracer("goblin", trace.WithInstrumentationVersion(t.o.Version))
	p.remove = addSink(p)
	t.live.Store(p)
	t.o.Logger.Info("sending traces", "to", t.o.Mask.String(s.shownURL()))
	return nil
}

func (t *Tracer) resource() *resource.Resource {
	r, err := resource.New(context.Background(),
		resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "goblin"), attribute.String("service.version", t.o.Version)),
		resource.WithFromEnv(),
	)
	if err != nil {
		t.o.Logger.Warn("traces: OTEL_RESOURCE_ATTRIBUTES not understood", "err", err)
	}
	return r
}

// Close stops the export. It sends the queue for at most two seconds.
func (t *Tracer) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopLocked()
}

func (t *Tracer) stopLocked() {
	p := t.live.Swap(nil)
	if p == nil {
		return
	}
	p.remove()
	t.spans.Clear()
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, p.exporter.abort)
	defer stop()
	p.exporter.closing.Store(true)
	_ = p.provider.Shutdown(ctx) // lost spans are logged by finish
	p.exporter.finish()
}

// boundedQueue drops spans before the SDK's queue does, to count them.
type boundedQueue struct {
	sdktrace.SpanProcessor
	exporter *exporter
	limit    int64
}

// OnEnd implements [sdktrace.SpanProcessor].
func (q *boundedQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.exporter.pending.Add(1) > q.limit {
		q.exporter.pending.Add(-1)
		q.exporter.lost.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(s)
}
