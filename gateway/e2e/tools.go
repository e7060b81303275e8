package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lua runs a script and gives the whole result.
func (c *Client) Lua(script string) json.RawMessage {
	c.T.Helper()
	return c.Ok("tools/call", Obj{"name": "execute_lua", "arguments": Obj{"script": script}})
}

// LuaFails is what a script that fails says.
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

// OverEveryFront runs a test with a client that made a handshake, over each
// transport.
func OverEveryFront(t *testing.T, test func(t *testing.T, w *World, connect func(caps Obj) *Client)) {
	t.Helper()
	t.Parallel()
	for _, args := range [][]string{{"stdio", "--standalone"}, {"stdio"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			w := WithMeta(t)
			w.Hosted = len(args) == 1
			test(t, w, func(caps Obj) *Client {
				c := w.Pipe(args...)
				c.Caps = caps
				c.Init()
				return c
			})
		})
	}
	t.Run("http", func(t *testing.T) {
		t.Parallel()
		w := WithMeta(t)
		var s *Web
		test(t, w, func(caps Obj) *Client {
			if s == nil {
				s = w.Serve()
			}
			return s.Client(true, caps)
		})
	})
}
