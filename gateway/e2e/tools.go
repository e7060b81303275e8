package e2e

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Untracked is a `_meta` as its client sent it: Goblin puts a token of its own for progress
// into that of each request.
func Untracked(t *testing.T, meta json.RawMessage) string {
	t.Helper()
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(meta, &all))
	require.Contains(t, all, "progressToken")
	delete(all, "progressToken")
	return string(Marshal(all))
}

// Lua runs a script and gives the whole result.
func (c *Client) Lua(script string) json.RawMessage {
	c.T.Helper()
	return c.Ok("tools/call", Obj{"name": "execute_lua", "arguments": Obj{"script": script}})
}

// LuaFails runs a script that must fail, and returns the error's text.
func (c *Client) LuaFails(script string) string {
	c.T.Helper()
	result := c.Lua(script)
	require.Equal(c.T, "true", string(At(result, "isError")), "%s", result)
	return Str(result, "content", 0, "text")
}

// LuaText is the text that a script returns.
func (c *Client) LuaText(script string) string {
	c.T.Helper()
	result := c.Lua(script)
	require.Nil(c.T, At(result, "isError"), "%s", result)
	return Str(result, "content", 0, "text")
}

// WithMeta is a world with Goblin's own tools.
func WithMeta(t *testing.T) *World {
	t.Helper()
	w := NewWorld(t)
	w.Gateway["meta_tools"] = true
	return w
}

// OverEveryFront runs a test with clients that made a handshake, of each kind.
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
