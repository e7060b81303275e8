package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"goblin/gateway/config"
)

const (
	// maxAnswer is the largest answer of a receiver that is read, in bytes.
	maxAnswer = 64 << 10
	// reportInterval is the minimum time between two messages about lost spans.
	reportInterval = time.Minute
	firstRetry     = time.Second
	maxRetry       = 8 * time.Second
)

// exporter sends batches over OTLP/HTTP with protobuf. ExportSpans is called by one
// goroutine of the SDK. Errors are logged here and never returned, since the SDK would
// print them.
type exporter struct {
	s      settings
	client *http.Client
	log    *slog.Logger
	mask   *config.Mask

	pending atomic.Int64  // spans in the queue or in a batch
	lost    atomic.Uint64 // spans that no receiver gets
	closing atomic.Bool   // no more retries

	ctx     context.Context // ends with abort
	abort   context.CancelFunc
	stopped chan struct{} // closed by Shutdown

	mu       sync.Mutex
	failing  bool      // the last batch was not sent
	reported time.Time // lost spans
	told     uint64    // lost spans in messages so far
}

func newExporter(s settings, o Options) *exporter {
	transport := http.DefaultTransport.(*http.Transport).Clone() // has the proxy of the environment
	transport.TLSClientConfig = s.tls
	e := &exporter{s: s, log: o.Logger, mask: o.Mask, stopped: make(chan struct{}), client: &http.Client{
		Transport: transport,
		// A redirect could carry the headers to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	e.ctx, e.abort = context.WithCancel(context.Background())
	return e
}

// ExportSpans implements [sdktrace.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.pending.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	rejected, err := e.send(ctx, encode(spans))
	if err != nil {
		rejected = uint64(len(spans))
	}
	e.lost.Add(rejected)
	e.report(err)
	return nil
}

// Shutdown implements [sdktrace.SpanExporter]. The SDK calls it once, after the last batch.
func (e *exporter) Shutdown(context.Context) error {
	close(e.stopped)
	return nil
}

// finish cancels the rest of the export, waits for it and reports the lost spans.
func (e *exporter) finish() {
	e.abort()
	<-e.stopped // at once: nothing is sent any more
	e.client.CloseIdleConnections()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reportLostLocked()
}

// report logs the first failure, the end of failures, and lost spans once a minute.
func (e *exporter) report(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil && !e.failing:
		e.log.Warn("traces not sent; further failures are not logged", "to", e.mask.String(e.s.shownURL()), "err", e.mask.String(err.Error()))
	case err == nil && e.failing:
		e.log.Info("traces are sent again")
	}
	e.failing = err != nil
	if time.Since(e.reported) >= reportInterval {
		e.reportLostLocked()
	}
}

func (e *exporter) reportLostLocked() {
	lost := e.lost.Load()
	if lost == e.told {
		return
	}
	e.log.Warn("spans lost", "count", lost-e.told, "total", lost)
	e.told, e.reported = lost, time.Now()
}

// send posts a batch and repeats it while the receiver is busy. It returns the number of
// spans that the receiver rejected.
func (e *exporter) send(ctx context.Context, body []byte) (rejected uint64, err error) {
	if e.s.gzip {
		body = compress(body)
	}
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		answer, again, err := e.post(ctx, body)
		if err == nil {
			rejected, reason := partialSuccess(answer)
			if rejected > 0 {
				err = fmt.Errorf("the receiver rejected %d spans: %s", rejected, cut(reason, maxText))
			}
			return rejected, err
		}
		if again < 0 || e.closing.Load() {
			return 0, err
		}
		select {
		case <-time.After(max(wait, min(again, maxRetry))):
		case <-ctx.Done():
			return 0, err
		}
	}
}

func compress(body []byte) []byte {
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, _ = w.Write(body) // a Buffer returns no errors
	_ = w.Close()
	return small.Bytes()
}

// noRetry is a wait for errors that stay.
const noRetry = time.Duration(-1)

// post sends a batch once. again is the time after which to repeat it, or noRetry.
func (e *exporter) post(ctx context.Context, body []byte) (answer []byte, again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.s.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.s.url, bytes.NewReader(body))
	if err != nil {
		return nil, noRetry, withoutURL(err)
	}
	for name, value := range e.s.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "goblin OTel-OTLP-Exporter")
	if e.s.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, noRetry, withoutURL(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		after, _ := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16)
		return nil, time.Duration(after) * time.Second, fmt.Errorf("HTTP status %s", resp.Status)
	}
	if resp.StatusCode/100 != 2 {
		return nil, noRetry, fmt.Errorf("HTTP status %s", resp.Status)
	}
	return answer, noRetry, nil
}

// withoutURL removes the URL from an error, which may hold a secret.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// partialSuccess reads an ExportTraceServiceResponse. Text that is not one means success.
func partialSuccess(answer []byte) (rejected uint64, reason string) {
	fields(answer, func(n protowire.Number, v []byte, _ uint64) {
		if n != 1 { // partial_success
			return
		}
		fields(v, func(n protowire.Number, v []byte, number uint64) {
			switch n {
			case 1: // rejected_spans
				rejected = min(number, 1<<31)
			case 2: // error_message
				reason = string(v)
			}
		})
	})
	return rejected, reason
}

// fields calls visit for each varint and each length-delimited field.
func fields(message []byte, visit func(n protowire.Number, v []byte, number uint64)) {
	for len(message) > 0 {
		n, kind, size := protowire.ConsumeTag(message)
		if size < 0 {
			return
		}
		message = message[size:]
		var v []byte
		var number uint64
		switch kind {
		case protowire.VarintType:
			number, size = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			v, size = protowire.ConsumeBytes(message)
		default:
			size = protowire.ConsumeFieldValue(n, kind, message)
		}
		if size < 0 {
			return
		}
		message = message[size:]
		visit(n, v, number)
	}
}
