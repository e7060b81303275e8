package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"

	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// errNoStream is the cause of an Error if a server doesn't answer with an SSE stream that
// names an endpoint.
var errNoStream = errors.New("no event stream")

// sse is a connection over HTTP+SSE, the transport of 2024-11-05. One stream carries all
// messages of the server; its first event names the endpoint to post to.
type sse struct {
	*remote
	streams atomic.Bool
}

func dialSSE(ctx context.Context, s *Server, unit string) (*link, error) {
	r, err := newRemote(ctx, s, unit, "sse")
	if err != nil {
		return nil, err
	}
	c := &sse{remote: r}
	c.wire, c.target = c, c.base.String
	// The session is part of the endpoint. Before the answer to initialize, a refusal may
	// mean that the server lacks this transport.
	c.inSession = func() bool { return c.info.Load().Protocol != "" }
	// The stream outlives ctx, so it needs its own cancellation.
	defer context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if c.streams.Load() {
			cause = errors.Join(errNoStream, cause)
		}
		c.failStream("the server named no endpoint in time", cause)
	})()
	named := make(chan struct{})
	c.spawn(func() { c.listen(named) })
	select {
	case <-named:
		c.spawn(c.postQueue)
		return c.link, nil
	case <-c.done:
		<-c.closed
		return nil, c.err
	}
}

func (c *sse) failStream(reason string, err error) {
	c.fail(c.srv.newError(ConnectionError, reason, err))
}

// listen closes named when the target is known.
func (c *sse) listen(named chan<- struct{}) {
	resp, err := c.do(c.ctx, http.MethodGet, nil, acceptEvents, "", nil)
	if err != nil {
		reason := "cannot open the stream: " + err.Error()
		if errors.Is(err, errRedirect) {
			reason = errRedirect.Error()
		}
		c.failStream(reason, err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode != http.StatusOK:
		c.fail(c.statusError(resp, nil))
		return
	case contentType(resp) != "text/event-stream":
		c.failStream("the server named no endpoint: its answer is not an event stream", errNoStream)
		return
	}
	c.streams.Store(true)
	for ev := wire.NewStreamReader(resp.Body, c.srv.opt.Limits.Frame, c.srv.memory); c.ctx.Err() == nil; {
		e, err := ev.Next()
		switch {
		case err != nil && named != nil:
			c.failStream("the server named no endpoint", err)
		case errors.Is(err, io.EOF):
			c.failStream("the server closed the stream", err)
		case err != nil:
			c.failStream("the stream was lost: "+err.Error(), err)
		case e.Name == "message" && len(e.Data) > 0:
			c.handleMessage(e.Data)
		case e.Name == "endpoint" && named != nil:
			target, err := c.base.Parse(string(e.Data))
			if err != nil || origin(target) != origin(c.base) {
				c.failStream("the server named an endpoint of another origin", nil)
				return
			}
			c.target = target.String
			close(named)
			named = nil
		}
	}
}

func (c *sse) handleMessage(message []byte) {
	switch c.judgeMessage(nil, message) {
	case wire.SessionLost:
		id, _ := rawjson.Int(rawjson.Get(message, "id"))
		_ = c.closeLostSession(id)
		return
	case wire.SessionSuspect:
		c.requestLivenessCheck()
	}
	c.handle(c.ctx, nil, message)
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func (c *sse) isLegacyOnly() bool { return true }

func (c *sse) request(call *Call, id int64, frame []byte) {
	if c.sessionEnded.Load() {
		c.calls.Fail(id, c.sessionEndedError(ErrSessionLost))
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	call.setAbort(cancel)
	if !c.spawn(func() {
		defer cancel()
		if err := c.post(ctx, frame); err != nil && ctx.Err() == nil {
			c.calls.Fail(id, err)
		}
	}) {
		cancel()
	}
}

func (c *sse) initialized(ctx context.Context, frame []byte) error { return c.post(ctx, frame) }

func (c *sse) close() {
	c.tasks.Wait()
	c.keepNotices()
	c.client.CloseIdleConnections()
}
