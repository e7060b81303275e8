//go:build e2e

package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestH09_BadBodies(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"frame": "1MiB"}
	s := w.Serve()
	h := s.Session()
	for body, code := range map[string]int{
		"": 0, "{": -32700, "not json": -32700, "[]": -32600, "[" + e2e.PingBody + "]": -32600, `"x"`: -32600,
		`{"jsonrpc":"2.0","id":1}`: -32600, `{"id":1,"method":"ping"}`: -32600,
	} {
		got := s.Do("POST", "/mcp", h, body)
		require.Equal(t, http.StatusBadRequest, got.Status, "%q: %s", body, got.Body)
		if code != 0 {
			require.Equal(t, fmt.Sprint(code), string(e2e.At(json.RawMessage(got.Body), "error", "code")), "%q: %s", body, got.Body)
		}
	}
	big := s.Do("POST", "/mcp", h, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("x", 2<<20)+`"}}`)
	require.Contains(t, []int{http.StatusRequestEntityTooLarge, http.StatusBadRequest}, big.Status)
	require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", h, e2e.PingBody).Status)
}

func TestPagesOfAllowedOriginsMayReadTheAnswers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["allowed_origins"] = []string{"https://app.example"}
	w.Gateway["auth_token"] = "Tok3n-of-the-test"
	s := w.Serve()
	preflight := map[string]string{"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type, mcp-session-id", "Authorization": ""}
	got := s.Do("OPTIONS", "/mcp", preflight, "")
	require.Less(t, got.Status, 300)
	require.Equal(t, "https://app.example", got.Header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, strings.ToLower(got.Header.Get("Access-Control-Allow-Headers")), "mcp-session-id")
	got = s.Do("POST", "/mcp", map[string]string{"Origin": "https://app.example"}, e2e.InitBody)
	require.Equal(t, http.StatusOK, got.Status)
	require.Equal(t, "https://app.example", got.Header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, got.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id")
}

func TestHostsOfAProxyAreAllowed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["allowed_hosts"] = []string{"goblin.example.com", "Upstream."}
	require.Contains(t, w.Run("validate").Stderr, "warning: allowed_hosts without auth_token: whoever reaches the proxy may call every server")
	s := w.Serve()
	for host, want := range map[string]int{
		"goblin.example.com": 200, "GOBLIN.example.com:8443": 200, "goblin.example.com.": 200, "upstream": 200, "localhost": 200, "127.0.0.1:1": 200,
		"example.com": 403, "x.goblin.example.com": 403, "goblin.example.com.evil.example": 403, "goblin": 403,
	} {
		require.Equal(t, want, s.Do("POST", "/mcp", map[string]string{"Host": host}, e2e.InitBody).Status, host)
	}
	for _, wrong := range e2e.Variants(1, "https://goblin.example.com", "goblin.example.com:443", "a/b", "*", "") {
		w.Edit(func() { w.Gateway["allowed_hosts"] = []string{wrong} })
		out := w.Run("validate")
		require.Equal(t, e2e.ExitConfig, out.Code, wrong)
		require.Contains(t, out.Stderr, `"allowed_hosts[0]" in gateway must be a host name such as "goblin.example.com"`)
	}
}
