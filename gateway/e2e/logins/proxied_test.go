//go:build e2e

package logins

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// internet is everything under example.com, which is reached through a proxy only.
type internet struct {
	web   *httptest.Server
	proxy *httptest.Server

	metadata string        // URL of the server's metadata
	names    func(e2e.Obj) // changes the metadata of the server mcp.example.com
	meta     func(e2e.Obj) // changes the metadata of the authorization server login.example.com
}

const (
	farServer = "https://mcp.example.com/mcp"
	farIssuer = "https://login.example.com"
)

func newInternet(t *testing.T) *internet {
	n := &internet{metadata: "https://mcp.example.com/metadata", names: func(e2e.Obj) {}, meta: func(e2e.Obj) {}}
	n.web = httptest.NewTLSServer(http.HandlerFunc(n.answer))
	t.Cleanup(n.web.Close)
	n.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || !strings.HasSuffix(r.Host, ".example.com:443") {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		to, err := net.Dial("tcp", n.web.Listener.Addr().String())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer to.Close()
		from, rest, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer from.Close()
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, rest); _ = to.Close() }()
		_, _ = io.Copy(from, to)
	}))
	t.Cleanup(n.proxy.Close)
	return n
}

func (n *internet) answer(w http.ResponseWriter, r *http.Request) {
	switch r.Host + r.URL.Path {
	case "mcp.example.com/metadata":
		o := e2e.Obj{"resource": farServer, "authorization_servers": []string{farIssuer}}
		n.names(o)
		respond(w, http.StatusOK, o)
	case "login.example.com" + metadataPath:
		o := e2e.Obj{
			"issuer": farIssuer, "authorization_endpoint": farIssuer + "/authorize", "token_endpoint": farIssuer + "/token",
			"code_challenge_methods_supported": []string{"S256"}, "response_types_supported": []string{"code"},
		}
		n.meta(o)
		respond(w, http.StatusOK, o)
	case "login.example.com/token":
		respond(w, http.StatusOK, e2e.Obj{"access_token": "a", "token_type": "Bearer", "expires_in": 3600})
	default:
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+n.metadata+`"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// environ returns the variables by which Goblin uses the proxy and trusts the internet.
func (n *internet) environ(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.web.Certificate().Raw})
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return []string{"HTTPS_PROXY=" + n.proxy.URL, "SSL_CERT_FILE=" + file}
}

// Behind a proxy, too, a server on the internet may name no address of this machine or
// its network.
func TestAServerBehindAProxyNamesNoPrivateAddress(t *testing.T) {
	t.Parallel()
	elsewhere := newTrap(t)
	here := elsewhere.server.URL
	for name, row := range map[string]struct {
		issuer string // in the config
		names  func(*internet)
	}{
		"metadata": {farIssuer, func(n *internet) { n.metadata = here + "/metadata" }},
		"authorization server": {here, func(n *internet) {
			n.names = func(o e2e.Obj) { o["authorization_servers"] = []string{here} }
		}},
		"token endpoint": {farIssuer, func(n *internet) {
			n.meta = func(o e2e.Obj) { o["token_endpoint"] = here + "/token" }
		}},
		"the proxy": {farIssuer, func(n *internet) {
			n.meta = func(o e2e.Obj) { o["token_endpoint"] = n.proxy.URL + "/token" }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, w := newInternet(t), e2e.NewWorld(t)
			row.names(n)
			w.Env = append(w.Env, n.environ(t)...)
			far(w, row.issuer)
			out := w.Run("login", "far")
			require.NotEqual(t, e2e.ExitOK, out.Code)
			require.Contains(t, out.Stderr, "a public server names the private address")
			require.Zero(t, elsewhere.hits.Load())
		})
	}
}

// far adds a server that needs no user for its login.
func far(w *e2e.World, issuer string) {
	b := w.Backend("far", e2e.Obj{})
	b.Conf = e2e.Obj{"url": farServer, "oauth": e2e.Obj{
		"grant": "client_credentials", "client_id": "goblin", "client_secret": "the-client-secret", "issuer": issuer,
	}}
	w.Backends = []*e2e.Backend{b}
}

// What is healthy works in an environment with a proxy: a server behind it, and one of this
// machine, which is not behind it.
func TestLoginsWorkInAnEnvironmentWithAProxy(t *testing.T) {
	t.Parallel()
	n, w := newInternet(t), e2e.NewWorld(t)
	w.Env = append(w.Env, n.environ(t)...)
	far(w, farIssuer)
	out := w.Run("login", "far")
	require.Equal(t, e2e.ExitOK, out.Code, out.Stderr)

	r, w, _ := protected(t)
	w.Env = append(w.Env, "HTTPS_PROXY=http://127.0.0.1:1", "HTTP_PROXY=http://127.0.0.1:1", "ALL_PROXY=http://127.0.0.1:1")
	r.succeeds(w, r.visit)
	require.Equal(t, e2e.ExitOK, w.Run("call", "shop_buy").Code)
	require.Equal(t, e2e.ExitOK, w.Run("logout", "shop").Code)
}
