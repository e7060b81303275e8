//go:build e2e

package logins

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const token = "t0ken-of-the-test"

// Without a token, any user of this machine may be a client over HTTP. They could log
// Goblin in with their own account. Such a client gets the command instead of the page.
func TestClientsOverHTTPWithoutATokenGetNoLoginPage(t *testing.T) {
	t.Parallel()
	r, w := newRealm(t), e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "5s"
	w.Gateway["meta_tools"] = []string{"execute_lua"}
	r.protect(w, w.Remote("shop", "/mcp", e2e.Obj{
		"tools": []e2e.Obj{e2e.Tool("buy")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("file:///a")},
	}))
	legacy := w.Served().Client(false, opens)
	modern := w.Served().Stateless()
	modern.Caps = opens
	requests := map[string]e2e.Obj{
		"tools/call":     buy,
		"prompts/get":    {"name": "shop/p"},
		"resources/read": {"uri": "mcp://shop/file:///a"},
	}
	refused := func(when string) {
		for _, c := range []*e2e.Client{legacy, modern} {
			for method, params := range requests {
				m := c.Request(method, params)
				require.True(t, m.Failed(), "%s: %s: %s", when, method, m.Raw)
				require.Contains(t, m.Raw, "LOGIN_REQUIRED", "%s: %s", when, method)
				require.Contains(t, m.Raw, "goblin login shop", "%s: %s", when, method)
				require.NotContains(t, m.Raw, "/authorize", "%s: %s", when, method)
			}
			script := c.Request("tools/call", e2e.Obj{"name": "execute_lua", "arguments": e2e.Obj{"script": `return shop.buy{}`}})
			require.NotContains(t, script.Raw, "/authorize", when)
			require.NotContains(t, script.Raw, "input_required", when)
			require.Empty(t, c.Asks, when)
		}
	}
	refused("alone")
	require.Zero(t, r.count("register"), "no login begins")

	// A client of the user is asked. Its login shows no page to the others.
	own := w.Pipe("stdio")
	own.Caps = opens
	own.Init()
	id := own.Begin("tools/call", buy)
	page := r.invited(own.WaitAsks(1).Params)
	refused("while a login is open")
	own.Answer(own.WaitAsks(1), agrees)
	r.visit(page)
	m := own.End(id)
	require.False(t, m.Failed(), m.Raw)

	// The others use the login. When it allows too little, they are not asked either.
	legacy.CallText("shop_buy", e2e.Obj{})
	r.set(func() { r.scope = "pay" })
	f := legacy.Fails(buy)
	require.Equal(t, "LOGIN_REQUIRED", f.Kind())
	require.Empty(t, legacy.Asks)
	require.Equal(t, 1, r.count("authorization_code"))
}

// The messages of a batch have the same origin as the batch.
func TestABatchThroughAProxyGetsNoLoginPage(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	w.Gateway["auth_token"] = token
	s := w.Served()
	head := map[string]string{"X-Forwarded-For": "192.0.2.1"}
	hello := strings.Replace(e2e.InitBody, `"2025-11-25","capabilities":{}`, `"2025-03-26","capabilities":`+string(e2e.Marshal(opens)), 1)
	got := s.Do("POST", "/mcp", head, hello)
	require.Equal(t, http.StatusOK, got.Status, got.Body)
	head["Mcp-Session-Id"] = got.Header.Get("Mcp-Session-Id")
	call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":` + string(e2e.Marshal(buy)) + `}`
	require.Contains(t, s.Do("POST", "/mcp", head, "["+call+"]").Body, "LOGIN_REQUIRED")
}
