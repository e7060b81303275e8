//go:build e2e || faults || soak || interop || conformance || agents

package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// WithoutProgressToken returns a _meta as the client sent it. Goblin adds its own
// progress token to each request.
func WithoutProgressToken(t *testing.T, meta json.RawMessage) string {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(meta, &all))
	require.Contains(t, all, "progressToken")
	delete(all, "progressToken")
	return string(Marshal(all))
}

func (c *Client) Lua(script string) json.RawMessage {
	c.T.Helper()
	return c.Ok("tools/call", Obj{"name": "execute_lua", "arguments": Obj{"script": script}})
}

// LuaFails runs a script that must fail, and returns the error text.
func (c *Client) LuaFails(script string) string {
	c.T.Helper()
	result := c.Lua(script)
	require.Equal(c.T, "true", string(At(result, "isError")), "%s", result)
	return Str(result, "content", 0, "text")
}

// LuaText runs a script and returns its text.
func (c *Client) LuaText(script string) string {
	c.T.Helper()
	result := c.Lua(script)
	require.Nil(c.T, At(result, "isError"), "%s", result)
	return Str(result, "content", 0, "text")
}

func WithMeta(t *testing.T) *World {
	t.Helper()
	w := NewWorld(t)
	w.Gateway["meta_tools"] = true
	return w
}

// OverEveryFront runs a test with initialized clients over each transport.
func OverEveryFront(t *testing.T, test func(t *testing.T, w *World, connect func(caps Obj) *Client)) {
	t.Helper()
	t.Parallel()
	for _, front := range Variants(1, "socket", "http") {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := WithMeta(t)
			test(t, w, func(caps Obj) *Client {
				if front == "http" {
					return w.Served().Client(true, caps)
				}
				c := w.Socket()
				c.Caps = caps
				c.Init()
				return c
			})
		})
	}
}

// WithGrowingLimit tries something with increasing time limits until it succeeds. A slow
// machine may need a longer limit; broken code fails with all. try returns what failed,
// or "".
func WithGrowingLimit(t *testing.T, try func(limit time.Duration) (trouble string)) {
	t.Helper()
	trouble := ""
	for _, limit := range []time.Duration{time.Second, 3 * time.Second, 9 * time.Second} {
		if trouble = try(limit); trouble == "" {
			return
		}
	}
	t.Fatal(trouble)
}

// AskedBy waits until the server sends a request because of a client's request. ok is
// false if that finishes first.
func (c *Client) AskedBy(id string) (question Message, ok bool) {
	c.T.Helper()
	c.Wait("a request of the server, or the end of "+id, func() bool {
		if ok = len(c.Asks) > 0; ok {
			question = c.Asks[len(c.Asks)-1]
		}
		return ok || len(c.Replies[id]) > 0
	})
	return question, ok
}
