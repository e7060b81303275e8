package downstream_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
)

// modern returns the params of a stateless request.
func modern(members string) string {
	if members != "" {
		members += ","
	}
	return `{` + members + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"m"},"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}`
}

// postModern sends a valid stateless request.
func (c *site) postModern(ctx context.Context, id, method, members string) *events {
	c.t.Helper()
	res := c.doContext(ctx, "POST", "", request(id, method, modern(members)), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		c.t.Fatalf("no stream: %s", body(c.t, res))
	}
	return c.stream(res)
}

func (e *events) message() message {
	e.t.Helper()
	return decode(e.t, e.must())
}

func TestStatelessRequestsOverAStream(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(o downstream.Options) *client) {
		h := newScript()
		seen := make(chan *downstream.Request, 4)
		h.handle = func(x *downstream.Request) {
			seen <- x
			x.NotifyLatest("k", "notifications/x", []byte(`{}`))
			x.Reply([]byte(`{}`))
		}
		c := dial(downstream.Options{Handler: h})
		c.send(request("1", "tools/list", modern("")))
		require.Equal(t, "notifications/x", c.message().Method)
		require.JSONEq(t, `{}`, string(c.message().Result))
		x := <-seen
		require.Equal(t, "2026-07-28", x.Modern().Version)
		require.Equal(t, "m", x.Client().Name)
		require.True(t, x.HasCapability("sampling"))
		require.False(t, x.HasCapability("roots"))
		require.False(t, x.Session().HasCapability("sampling"), "valid for this request only")
		require.False(t, x.Session().Ready())
		require.Empty(t, x.Session().Protocol())

		for name, params := range map[string]string{
			"no capabilities": `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`,
			"no version":      `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}}`,
			"not a version":   `{"_meta":{"io.modelcontextprotocol/protocolVersion":{},"io.modelcontextprotocol/clientCapabilities":{}}}`,
		} {
			c.send(request("2", "tools/list", params))
			require.Equal(t, jsonrpc.CodeInvalidParams, c.message().Error.Code, name)
		}
		c.send(request("3", "tools/list", strings.ReplaceAll(modern(""), "2026-07-28", "2025-11-25")))
		require.Equal(t, downstream.CodeUnsupportedVersion, c.message().Error.Code, "a revision that needs a handshake")
		require.Empty(t, seen)
	})
}

func TestStoppingEndsWhatGoesOnForEver(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(o downstream.Options) *client) {
		h := newScript()
		h.handle = func(x *downstream.Request) {
			h.begun <- x
			<-x.Session().Stopping()
			x.Reply([]byte(`{}`))
		}
		c := dial(downstream.Options{Handler: h, Drain: time.Minute})
		c.send(request("1", "listen", modern("")))
		<-h.begun
		c.stop()
		require.JSONEq(t, `{}`, string(c.message().Result))
		require.NoError(t, <-c.done)
	})
}

func TestClosingTheStreamCancelsAStatelessRequest(t *testing.T) {
	h := newScript()
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h}})
	h.handle = func(x *downstream.Request) {
		x.Notify("", "notifications/x", nil)
		<-x.Context().Done()
		h.causes <- context.Cause(x.Context())
	}
	ctx, cancel := context.WithCancel(t.Context())
	require.Equal(t, "notifications/x", c.postModern(ctx, "1", "tools/list", "").message().Method)
	cancel()
	require.ErrorIs(t, <-h.causes, downstream.ErrCancelled)
}

func TestStatelessClientsMayUseTheSameIDs(t *testing.T) {
	h := newScript()
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h}})
	let := make(chan struct{})
	h.handle = func(x *downstream.Request) {
		x.Notify("", "notifications/x", x.Params())
		<-let
		x.Reply(x.Params())
	}
	a, b := c.postModern(t.Context(), "1", "tools/list", `"n":1`), c.postModern(t.Context(), "1", "tools/list", `"n":2`)
	close(let)
	for want, s := range map[string]*events{"1": a, "2": b} {
		var got struct{ N json.Number }
		require.Equal(t, "notifications/x", s.message().Method)
		require.NoError(t, json.Unmarshal(s.message().Result, &got))
		require.Equal(t, want, got.N.String())
	}
	require.Equal(t, 1, c.http.Sessions(), "they share one")
}

func TestSessionOfStatelessRequestsCannotBeNamed(t *testing.T) {
	h := newScript()
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h}})
	h.handle = func(x *downstream.Request) {
		x.Notify("", "notifications/x", nil)
		x.Reply([]byte(`{}`))
	}
	c.postModern(t.Context(), "1", "tools/list", "").message()
	shared := <-h.opened
	require.True(t, shared.Stateless())
	require.Equal(t, 404, c.do("POST", shared.ID(), request("1", "ping", "")).StatusCode)
	require.Equal(t, 404, c.do("DELETE", shared.ID(), "").StatusCode)
}

func TestStatelessClientThatDoesNotReadEndsAlone(t *testing.T) {
	h := newScript()
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h, Limits: downstream.Limits{Unsent: 64 << 10}}})
	flood := `{"data":"` + strings.Repeat("x", 64<<10) + `"}`
	h.handle = func(x *downstream.Request) {
		x.Notify("", "notifications/x", nil)
		if x.Method() == "flood" {
			for i := 0; x.Context().Err() == nil; i++ {
				x.NotifyLatest(number(i), "notifications/x", []byte(flood))
			}
			h.causes <- context.Cause(x.Context())
			return
		}
		<-x.Context().Done()
	}
	quiet := c.postModern(t.Context(), "1", "quiet", "")
	require.Equal(t, "notifications/x", quiet.message().Method)
	// The connection may be cut before the head of the answer.
	res, err := c.try(t.Context(), "POST", "", request("1", "flood", modern("")), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "flood")
	if err == nil {
		t.Cleanup(func() { _ = res.Body.Close() })
	}
	require.ErrorIs(t, <-h.causes, downstream.ErrCancelled)
	require.Equal(t, 1, c.http.Sessions(), "the others continue")
	require.NoError(t, (<-h.opened).Context().Err())
}
