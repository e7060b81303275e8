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

// errNoStream is the cause of an Error when a server answers with something else than the
// stream of SSE, or with a stream that names no endpoint.
var errNoStream = errors.New("no event stream")

// sse is a connection by HTTP+SSE, the transport of revision 2024-11-05: one stream
// of all that the server says, whose first event names the endpoint to post to.
type sse struct {
	*remote
	streams atomic.Bool // the stream is open
}

// dialSSE opens the stream and waits until the server has named its endpoint.
func dialSSE(ctx context.Context, s *Server, unit string) (*link, error) {
	r, err := newRemote(ctx, s, unit, "sse")
	if err != nil {
		return nil, err
	}
	c := &sse{remote: r}
	c.wire, c.target = c, c.base.String
	// The session is a part of the endpoint. Until the server has answered initialize, a
	// refusal may mean that it has no such transport.
	c.inSession = func() bool { return c.info.Load().Protocol != "" }
	// The stream outlives the attempt, whose end must reach it in another way.
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

// failStream ends the connection because of its stream.
func (c *sse) failStream(reason string, err error) {
	c.fail(c.srv.newError(ConnectionError, reason, err))
}

// listen opens the stream and reads it to its end. named is closed when the target is
// known.
func (c *sse) listen(named chan<- struct{}) {
	resp, err := c.do(c.ctx, http.MethodGet, nil, acceptEvents, "", nil)
	if err != nil {
		reason := "the stream does not open: " + err.Error()
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
		c.failStream("the server named no endpoint: its answer is no event stream", errNoStream)
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
				c.failStream("the server named no endpoint but one of another origin", nil)
				return
			}
			c.target = target.String
			close(named)
			named = nil
		}
	}
}

// handleMessage handles a message of the stream.
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

// request implements [transport].
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

// initialized implements [transport].
func (c *sse) initialized(ctx context.Context, frame []byte) error { return c.post(ctx, frame) }

// close implements [transport].
func (c *sse) close() {
	c.tasks.Wait()
	c.keepNotices()
	c.client.CloseIdleConnections()
}
