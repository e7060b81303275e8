//go:build e2e

package security

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A stranger opens many more sessions than the limit. Clients without a stream that made
// requests earlier keep their sessions.
func TestSessionsOfAStrangerEvictNoClientThatMadeARequest(t *testing.T) {
	t.Parallel()
	const (
		initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		list        = `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`
	)
	for name, bodies := range map[string][]string{
		"no handshake": nil,
		"handshake":    {initialized},
		"early ping":   {e2e.PingBody},
		"ping":         {initialized, e2e.PingBody, e2e.PingBody},
		"request":      {initialized, list},
		"requests":     {initialized, list, list, list, list, list},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["limits"] = e2e.Obj{"sessions": 16}
			w.Backend("own", e2e.CountingServer())
			web := w.Served()
			var clients []*e2e.Client
			for range 4 {
				clients = append(clients, web.Client(false))
			}
			for _, c := range clients {
				c.Counts()
			}
			for range 64 {
				opened := web.Do("POST", "/mcp", nil, e2e.InitBody)
				require.Equal(t, 200, opened.Status, opened.Body)
				head := map[string]string{"Mcp-Session-Id": opened.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": e2e.Revision}
				for _, body := range bodies {
					web.Do("POST", "/mcp", head, body)
				}
			}
			for _, c := range clients {
				c.Counts()
			}
		})
	}
}

// A client without a request keeps its session after the handshake, if the stranger omits
// the handshake.
func TestSessionsWithoutAHandshakeAreEvictedFirst(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"sessions": 16}
	w.Backend("own", e2e.CountingServer())
	web := w.Served()
	c := web.Client(false)
	for range 64 {
		opened := web.Do("POST", "/mcp", nil, e2e.InitBody)
		require.Equal(t, 200, opened.Status, opened.Body)
		web.Do("POST", "/mcp", map[string]string{"Mcp-Session-Id": opened.Header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": e2e.Revision}, e2e.PingBody)
	}
	c.Counts()
}
