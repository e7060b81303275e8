package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// inside answers a client's requests in the same process. In a bubble of synctest, no
// time passes during a wait for a socket.
type inside struct{ http.Handler }

func (i inside) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	out, in := io.Pipe()
	if req.Body == nil {
		req.Body = http.NoBody
	}
	w := &insideWriter{header: http.Header{}, body: in, begun: make(chan int, 1)}
	stop := context.AfterFunc(ctx, func() { _ = out.CloseWithError(ctx.Err()) })
	go func() {
		defer stop()
		i.ServeHTTP(w, req)
		w.WriteHeader(http.StatusOK)
		_ = in.Close()
	}()
	select {
	case status := <-w.begun:
		return &http.Response{StatusCode: status, Header: w.header, Body: out, ContentLength: -1, Request: req}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// insideWriter is the response of inside while it is written.
type insideWriter struct {
	header  http.Header
	body    *io.PipeWriter
	begun   chan int // the status
	written bool
}

func (w *insideWriter) Header() http.Header { return w.header }
func (w *insideWriter) Flush()              {}

func (w *insideWriter) WriteHeader(status int) {
	if !w.written {
		w.written = true
		w.begun <- status
	}
}

func (w *insideWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// late answers a request after a time, with progress at each interval until then; 0 means
// no progress.
func late(w http.ResponseWriter, r *http.Request, m jsonrpc.Message, after, each time.Duration, result string) {
	send := eventsTo(w)
	over := time.After(after)
	var step <-chan time.Time
	if each > 0 {
		steps := time.NewTicker(each)
		defer steps.Stop()
		step = steps.C
	}
	for {
		select {
		case <-over:
			send(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
			return
		case <-step:
			send(fmt.Sprintf(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}`,
				rawjson.Path(m.Params, "_meta", "progressToken")))
		case <-r.Context().Done():
			return
		}
	}
}

// startStill connects to a web in a bubble of synctest and serves the connection until
// the test ends.
func startStill(t *testing.T, b *web, change func(*rig)) (*rig, Conn) {
	t.Helper()
	r := newRig(t, config.Server{Name: "files", Type: config.HTTP, TypeSet: true, URL: "http://files/mcp", Isolation: config.Shared}, change)
	ctx, cancel := context.WithCancel(t.Context())
	r.mu.Lock()
	r.runCtx = ctx
	r.mu.Unlock()
	l, err := r.dialAndShake(ctx, "", func(ctx context.Context, s *Server, unit string) (*link, error) {
		l, err := dialHTTP(ctx, s, unit)
		if err == nil {
			l.wire.(*streamable).client.Transport = inside{http.HandlerFunc(b.serve)}
		}
		return l, err
	})
	require.NoError(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_, _ = r.serve(ctx, l)
	}()
	t.Cleanup(func() {
		cancel()
		<-served
	})
	return r, l
}
