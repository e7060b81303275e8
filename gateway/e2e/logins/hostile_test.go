//go:build e2e

package logins

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const metadataPath = "/.well-known/oauth-authorization-server"

// trap is a server that must not receive secrets.
type trap struct {
	server *httptest.Server
	hits   atomic.Int64
}

func newTrap(t *testing.T) *trap {
	p := &trap{}
	p.server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { p.hits.Add(1) }))
	t.Cleanup(p.server.Close)
	return p
}

// answers makes an endpoint of the realm always send the same answer.
func answers(path string, status int, kind, text string) func(*realm) {
	return func(r *realm) {
		r.odd = map[string]http.HandlerFunc{path: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}}
	}
}

// redirects makes an endpoint of the realm redirect the client, or to itself if to
// returns "".
func redirects(path string, status int, to func() string) func(*realm) {
	return func(r *realm) {
		r.odd = map[string]http.HandlerFunc{path: func(w http.ResponseWriter, req *http.Request) {
			at := to()
			if at == "" {
				at = r.server.URL + path
			}
			http.Redirect(w, req, at, status)
		}}
	}
}

func says(member string, value any) func(*realm) {
	return func(r *realm) { r.meta = func(o e2e.Obj) { o[member] = value } }
}

func comesBack(change func(url.Values)) func(*realm) {
	return func(r *realm) { r.redirect = change }
}

// Attacks on a login by an authorization server, a stranger or the user, and the
// resulting messages. Other servers are not affected, and the suggested fix works.
func TestLoginsThatCannotBeTrustedFail(t *testing.T) {
	t.Parallel()
	const html = "<html>out of order</html>"
	elsewhere := newTrap(t)
	itself, away := func() string { return "" }, func() string { return elsewhere.server.URL + "/token" }
	rows := []struct {
		name  string
		realm func(*realm)
		says  string
		code  int
	}{
		{"another issuer", says("issuer", "https://example.com"), "issuer", e2e.ExitFailure},
		{"a redirect of the token elsewhere", redirects("/token", http.StatusTemporaryRedirect, away), "another origin", e2e.ExitFailure},
		{"denied", comesBack(func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }), "denied", e2e.ExitFailure},
	}
	if e2e.AllVariants {
		rows = append(rows, []struct {
			name  string
			realm func(*realm)
			says  string
			code  int
		}{
			{"it is down", func(r *realm) {
				r.names = func(o e2e.Obj) { o["authorization_servers"] = []string{"http://127.0.0.1:1"} }
			}, "(try again later)", e2e.ExitConnect},
			{"no PKCE", says("code_challenge_methods_supported", []string{"plain"}), "PKCE", e2e.ExitFailure},
			{"metadata in HTML", answers(metadataPath, 200, "text/html", html), "unusable", e2e.ExitFailure},
			{"a token of another type", func(r *realm) { r.answer = func(o e2e.Obj) { o["token_type"] = "mac" } }, "only bearer", e2e.ExitFailure},
			{"another issuer at the redirect", comesBack(func(q url.Values) { q.Set("iss", "https://example.com") }), "another authorization server", e2e.ExitFailure},
			{"no PKCE at all", says("code_challenge_methods_supported", nil), "PKCE", e2e.ExitFailure},
			{"no issuer at the redirect", comesBack(func(q url.Values) { q.Del("iss") }), "iss", e2e.ExitFailure},
			{"no code", comesBack(func(q url.Values) { q.Del("code") }), "no code", e2e.ExitFailure},
			{"an error with control characters", comesBack(func(q url.Values) {
				q.Del("code")
				q.Set("error", "server_error")
				q.Set("error_description", "a\x1b[2Jb")
			}), "server_error a [2Jb", e2e.ExitFailure},
			{"no metadata", answers(metadataPath, 404, "text/plain", ""), "no metadata", e2e.ExitFailure},
			{"metadata out of order", answers(metadataPath, 503, "text/html", html), "503", e2e.ExitFailure},
			{"metadata that is broken", answers(metadataPath, 200, "application/json", `{"issuer":`), "unusable", e2e.ExitFailure},
			{"metadata beyond all bounds", says("more", strings.Repeat("x", 2<<20)), "unusable", e2e.ExitFailure},
			{"metadata in circles", redirects(metadataPath, http.StatusFound, itself), "redirects", e2e.ExitFailure},
			{"metadata elsewhere", redirects(metadataPath, http.StatusFound, away), "another origin", e2e.ExitFailure},
			{"tokens in circles", redirects("/token", http.StatusTemporaryRedirect, itself), "redirects", e2e.ExitFailure},
			{"a redirect of the token by GET", redirects("/token", http.StatusFound, itself), "method", e2e.ExitFailure},
			{"tokens in HTML", answers("/token", 200, "text/html", html), "contains no token", e2e.ExitFailure},
			{"tokens out of order", func(r *realm) { r.status = http.StatusServiceUnavailable }, "HTTP status 503", e2e.ExitFailure},
			{"tokens beyond all bounds", func(r *realm) {
				r.answer = func(o e2e.Obj) { o["access_token"] = strings.Repeat("x", 2<<20) }
			}, "contains no token", e2e.ExitFailure},
			{"a token of another line", func(r *realm) { r.answer = func(o e2e.Obj) { o["access_token"] = "a\r\nX-Evil: b" } }, "control characters", e2e.ExitFailure},
			{"a token beyond all headers", func(r *realm) {
				r.answer = func(o e2e.Obj) { o["access_token"] = strings.Repeat("x", 100<<10) }
			}, "too long", e2e.ExitFailure},
			{"a refusal with the status 200", answers("/token", 200, "application/json", `{"error":"bad_verification_code"}`), "bad_verification_code", e2e.ExitFailure},
			{"tokens over http", says("token_endpoint", "http://192.0.2.1/token"), "HTTPS", e2e.ExitFailure},
			{"revocation over http", says("revocation_endpoint", "http://192.0.2.1/revoke"), "not https", e2e.ExitFailure},
			{"a page that is a script", says("authorization_endpoint", "javascript:alert(1)"), "disallowed scheme", e2e.ExitFailure},
			{"no endpoints", says("token_endpoint", ""), "lacks the endpoints", e2e.ExitFailure},
			{"no registration", says("registration_endpoint", ""), "set oauth.client_id", e2e.ExitFailure},
			{"registration refused", answers("/register", 400, "application/json", `{"error":"invalid_client_metadata","error_description":"not\nyou"}`), "not you", e2e.ExitFailure},
			{"registration in HTML", answers("/register", 403, "text/html", html), "HTTP status 403", e2e.ExitFailure},
			{"registration with a secret that cannot be read", answers("/register", 201, "application/json", `{"client_id":5,"client_secret":"access-0"}`), "invalid answer to the registration", e2e.ExitFailure},
			{"no authorization server", func(r *realm) {
				r.names = func(o e2e.Obj) { o["authorization_servers"] = []string{} }
			}, "names no authorization server", e2e.ExitFailure},
			{"an authorization server over http", func(r *realm) {
				r.names = func(o e2e.Obj) { o["authorization_servers"] = []string{"http://192.0.2.1"} }
			}, "HTTPS", e2e.ExitFailure},
			{"another resource", func(r *realm) { r.names = func(o e2e.Obj) { o["resource"] = "https://example.com/mcp" } }, "resource", e2e.ExitFailure},
		}...)
	}
	r, w, _ := protected(t)
	c := w.Standalone()
	for _, row := range rows {
		r.set(func() {
			r.odd, r.meta, r.names, r.answer, r.redirect, r.status = nil, nil, nil, nil, nil, 0
			row.realm(r)
		})
		code, told := r.logIn(w, "shop", func(at string) {
			resp, err := http.Get(at)
			require.NoError(t, err)
			_ = resp.Body.Close()
		})
		require.Equal(t, row.code, code, "%s: %s", row.name, told)
		require.Contains(t, told, row.says, row.name)
		require.NotRegexp(t, `access-\d|refresh-\d|code-\d`, page.ReplaceAllString(told, ""), row.name)
		require.NotRegexp(t, "[\x00-\x09\x0b-\x1f\x7f]", told, row.name)
		require.LessOrEqual(t, strings.Count(told, "\n"), 3, "%s: %s", row.name, told)
		require.Less(t, len(told), 2000, row.name)
		require.True(t, c.Works(e2e.Obj{"name": "local_t", "arguments": e2e.Obj{}}), row.name)
	}
	require.Zero(t, elsewhere.hits.Load())
	r.set(func() { r.odd, r.meta, r.names, r.answer, r.redirect, r.status = nil, nil, nil, nil, nil, 0 })
	r.succeeds(w, r.visit)
	c.WaitListed("tools", "shop_buy", true)
}

// spilled returns everything written in a world, except its config and logins. It adds
// what other users can see of its processes.
func spilled(t *testing.T, w *e2e.World) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(w.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == w.Config || filepath.Base(filepath.Dir(path)) == "logins" {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	require.Contains(t, all.String(), "level=DEBUG", "the log is included")
	processes := w.Processes("")
	require.GreaterOrEqual(t, len(processes), 2, "a server and its daemon")
	for _, p := range processes {
		pid, line, _ := strings.Cut(p, " ")
		environ, err := os.ReadFile(filepath.Join("/proc", pid, "environ"))
		require.NoError(t, err)
		all.WriteString(line)
		all.Write(environ)
	}
	return all.String()
}

// No file that Goblin writes and no process that it starts contains a secret.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	r, w, b := protected(t)
	w.Log = e2e.Obj{"level": "debug", "file": w.Dir + "/goblin.log"}
	b.Conf["oauth"] = e2e.Obj{"client_id": "mine", "client_secret": "the-client-secret", "redirect_port": e2e.FreePort(t), "issuer": r.server.URL}
	r.meta = func(o e2e.Obj) { o["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"} }
	r.clients["mine"] = fmt.Sprintf("http://127.0.0.1:%d/callback", b.Conf["oauth"].(e2e.Obj)["redirect_port"])
	c := w.Standalone()
	told := r.succeeds(w, r.visit)
	c.WaitListed("tools", "shop_buy", true)
	c.CallText("shop_buy", e2e.Obj{})
	r.set(func() { clear(r.access) })
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 1, r.count("refresh_token"))
	for _, args := range [][]string{{"status", "--json"}, {"list", "servers"}, {"list", "servers", "--json"}, {"read", "goblin://servers"}} {
		out := w.Run(args...)
		told += out.Stdout + out.Stderr
	}
	told += r.succeeds(w, r.visit)
	r.set(func() { // it repeats what it received
		clear(r.access)
		r.odd = map[string]http.HandlerFunc{"/token": func(w http.ResponseWriter, req *http.Request) {
			text, _ := io.ReadAll(req.Body)
			respond(w, http.StatusBadRequest, e2e.Obj{"error": "invalid_grant", "error_description": string(text)})
		}}
	})
	m := c.Request("tools/call", e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}})
	require.Contains(t, m.Raw, "needs login: the login is no longer valid: invalid_grant")
	told += m.Raw + c.Story() + w.Run("logout", "shop").Stderr
	for _, p := range w.Programs {
		told += p.Stderr.String()
	}
	told += spilled(t, w)
	r.set(func() {
		require.Len(t, r.secrets, 13, "of two logins and a refresh")
		for _, s := range r.secrets {
			require.NotContains(t, told, s)
		}
	})
}
