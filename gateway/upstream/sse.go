package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/eventstream"
)

// sse is a connection by HTTP+SSE, the transport of revision 2024-11-05.
// mcp-go's transport opens the stream, finds the endpoint to post to and tells
// when the stream is lost. Messages are taken from the stream before they
// reach it, because it decodes them with loss and drops what the server asks.
type sse struct {
	*remote
	tr     *transport.SSE
	unread chan struct{} // mcp-go has stopped reading

	opening sync.Mutex
	status  int  // of the answer to the GET, 0 for none
	read    bool // mcp-go reads it
}

// dialSSE opens the stream.
func dialSSE(ctx context.Context, s *Server, unit string) (*link, error) {
	r, err := newRemote(s, unit, "sse")
	if err != nil {
		return nil, err
	}
	c := &sse{remote: r, unread: make(chan struct{})}
	c.wire = c
	headers := make(map[string]string, len(s.cfg.Headers))
	for k, v := range s.cfg.Headers {
		headers[k] = v
	}
	tap := &http.Client{Transport: tapped{c}, CheckRedirect: sameOrigin}
	c.tr, err = transport.NewSSE(s.cfg.URL, transport.WithHTTPClient(tap), transport.WithHeaders(headers),
		transport.WithSSELogger(s.log), transport.WithEndpointTimeout(s.cfg.StartupTimeout),
		transport.WithHTTPHost(headers["Host"]))
	if err != nil {
		return nil, s.failure(ConnectionError, "the url is not valid", nil)
	}
	c.target = func() string {
		if u := c.tr.GetEndpoint(); u != nil {
			return u.String()
		}
		return s.cfg.URL
	}
	c.tr.SetConnectionLostHandler(func(err error) {
		reason := "the server closed the stream"
		if !errors.Is(err, io.EOF) {
			reason = "the stream was lost: " + scrub(err).Error()
		}
		c.fail(s.failure(ConnectionError, reason, err))
	})
	// The stream lives as long as the context of Start, so the attempt's end
	// must reach it in another way.
	stop := context.AfterFunc(ctx, func() {
		c.fail(s.failure(ConnectionError, "the server named no endpoint in time", context.Cause(ctx)))
	})
	defer stop()
	if err := c.tr.Start(c.ctx); err != nil {
		c.fail(c.startFailure(err))
		<-c.gone
		return nil, c.err
	}
	c.spawn(c.pump)
	return c.link, nil
}

func (c *sse) startFailure(err error) error {
	c.opening.Lock()
	status := c.status
	c.opening.Unlock()
	switch {
	case errors.Is(err, errRedirect):
		return c.srv.failure(ConnectionError, errRedirect.Error(), errRedirect)
	case status == http.StatusUnauthorized:
		return c.statusFailure(&http.Response{StatusCode: status})
	case status != 0 && status != http.StatusOK:
		return c.srv.failure(ConnectionError, fmt.Sprintf("HTTP status %d %s", status, http.StatusText(status)), errStatus(status))
	case status == http.StatusOK:
		return c.srv.failure(ConnectionError, "the server named no endpoint", nil)
	}
	return c.srv.failure(ConnectionError, "the stream does not open: "+scrub(err).Error(), scrub(err))
}

// tapped is the client's view of the network: it shows mcp-go's transport
// nothing of a stream but its endpoint.
type tapped struct{ c *sse }

func (t tapped) RoundTrip(req *http.Request) (*http.Response, error) {
	c := t.c
	resp, err := c.client.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	c.opening.Lock()
	defer c.opening.Unlock()
	c.status = resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	if contentType(resp) != "text/event-stream" {
		_ = resp.Body.Close()
		return nil, errors.New("the answer is no event stream")
	}
	r, w := io.Pipe()
	body := resp.Body
	if !c.spawn(func() {
		defer func() { _ = body.Close() }()
		_ = w.CloseWithError(c.listen(eventstream.NewReader(body, c.srv.opt.Limits.Frame, c.srv.party), w))
	}) {
		_ = body.Close()
		return nil, jsonrpc.ErrClosed
	}
	c.read = true
	resp.Body = &tappedBody{PipeReader: r, closed: c.unread}
	return resp, nil
}

type tappedBody struct {
	*io.PipeReader
	once   sync.Once
	closed chan struct{}
}

func (b *tappedBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.PipeReader.Close()
}

// listen is the read loop.
func (c *sse) listen(ev *eventstream.Reader, endpoint io.Writer) error {
	for {
		e, err := ev.Next()
		if err != nil {
			return err
		}
		switch {
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case e.Name == "endpoint":
			target, err := c.base.Parse(string(e.Data))
			if err != nil || origin(target) != origin(c.base) {
				return errors.New("the endpoint belongs to another origin")
			}
			if _, err := fmt.Fprintf(endpoint, "event: endpoint\ndata: %s\n\n", target); err != nil {
				return err
			}
		case e.Name == "message" && len(e.Data) > 0:
			c.handle(c.ctx, nil, e.Data)
		}
	}
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// request implements [wire].
func (c *sse) request(call *Call, id int64, frame []byte) {
	ctx, cancel := context.WithCancel(c.ctx)
	call.setAbort(cancel)
	if !c.spawn(func() {
		defer cancel()
		if err := c.push(ctx, frame); err != nil && ctx.Err() == nil {
			c.calls.Resolve(strconv.AppendInt(nil, id, 10), jsonrpc.Reply{}, err)
		}
	}) {
		cancel()
	}
}

// opened implements [wire].
func (c *sse) opened(ctx context.Context, frame []byte) error { return c.push(ctx, frame) }

// shut implements [wire].
func (c *sse) shut() {
	_ = c.tr.Close()
	c.opening.Lock()
	read := c.read
	c.opening.Unlock()
	c.tasks.Wait()
	if read {
		<-c.unread
	}
	c.client.CloseIdleConnections()
}
