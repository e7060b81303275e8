//go:build e2e

package eras

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server configured to get no roots gets none from a client of its own era either.
// Their messages usually pass unchanged.
func TestModernServersGetNoRootsWhereTheConfigSaysSo(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///work"}}
	b := w.ModernBackend("stdio", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{
		"tools/call t": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "roots/list"}), e2e.Do("answers")),
	}}, e2e.Obj{"roots": "none"})
	modern, legacy := w.Pipe("stdio", "--standalone").Stateless(), w.Pipe("stdio", "--standalone")
	for _, c := range []*e2e.Client{modern, legacy} {
		c.Caps = e2e.Obj{"roots": e2e.Obj{}, "sampling": e2e.Obj{}}
	}
	legacy.Init()
	for _, c := range []*e2e.Client{modern, legacy} {
		require.NotNil(t, c.Request("tools/call", e2e.Obj{"name": "b_t"}).Error)
		require.Empty(t, c.Asks)
	}
	for _, call := range b.Received("tools/call") {
		require.JSONEq(t, `{"sampling":{}}`, e2e.ProtocolMeta(call, "clientCapabilities"))
	}
}
