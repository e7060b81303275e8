package downstream_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

func TestOnlyLoopbackHostsAreServedOnLoopback(t *testing.T) {
	cases := []struct {
		host string
		ok   bool
	}{
		{"localhost", true},
		{"LocalHost:7331", true},
		{"127.0.0.1:1", true},
		{"127.8.9.10", true},
		{"[::1]:7331", true},
		{"[::1]", true},
		{"evil.example", false},
		{"evil.example:7331", false},
		{"localhost.evil.example", false},
		{"127.0.0.1.evil.example", false},
		{"192.168.1.5:7331", false},
		{"0.0.0.0", false},
		{"2130706433", false},
		{"0x7f.1", false},
		{"127.1", false},
		{"evil.example:80@localhost", false},
		{"localhost:80:80", false},
		{"localhost:", true},
		{"localhost:x", false},
		{"localhost:80@evil.example", false},
	}
	for _, token := range []string{"", "secret"} {
		c := newSite(t, downstream.HTTPOptions{AuthToken: token, PublicHandlers: map[string]http.Handler{"/healthz": http.NotFoundHandler()}})
		for _, tc := range cases {
			for _, path := range []string{"GET /mcp", "GET /metrics", "GET /healthz"} {
				res, err := c.try(t.Context(), path, "", "", "Host", tc.host, "Authorization", "Bearer secret")
				if err != nil {
					require.False(t, tc.ok, err) // refused by the HTTP client
					continue
				}
				res.Body.Close()
				require.Equal(t, !tc.ok, res.StatusCode == 403 || res.StatusCode == 400 && path != "GET /mcp", "%s %s: %d", path, tc.host, res.StatusCode)
			}
		}
	}
	public := newSite(t, downstream.HTTPOptions{AuthToken: "secret", Listen: "0.0.0.0:7331"})
	require.Equal(t, 404, public.do("GET", "x", "", "Host", "goblin.example", "Authorization", "Bearer secret").StatusCode)
}

func TestWebPagesOfStrangersAreRefused(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{AllowedOrigins: []string{"https://app.example", "vscode-webview://abc"}})
	for _, origin := range []string{
		"http://localhost:6274", "http://127.0.0.1", "https://[::1]:8443", "https://app.example", "vscode-webview://abc",
	} {
		res := c.do("POST", "", initialize, "Origin", origin)
		require.Equal(t, 200, res.StatusCode, origin)
		require.Equal(t, origin, res.Header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, res.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id")
		require.Equal(t, "Origin", res.Header.Get("Vary"))

		res = c.do("OPTIONS", "", "", "Origin", origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
		require.Equal(t, 204, res.StatusCode)
		require.Equal(t, origin, res.Header.Get("Access-Control-Allow-Origin"))
		require.Contains(t, res.Header.Get("Access-Control-Allow-Methods"), "DELETE")
		require.Contains(t, res.Header.Get("Access-Control-Allow-Headers"), "Authorization")
	}
	for _, origin := range []string{
		"null", "https://evil.example", "https://app.example.evil.example", "http://app.example", "https://app.example:444",
		"http://localhost.evil.example", "http://evil.example#localhost", "http://localhost@evil.example", "http://localhost/", "file://", "http://", "localhost",
		"vscode-webview://abcd", "chrome-extension://localhost", " ",
	} {
		for _, method := range []string{"POST", "GET", "OPTIONS", "GET /healthz"} {
			res := c.do(method, "", initialize, "Origin", origin, "Access-Control-Request-Method", "POST")
			require.Equal(t, 403, res.StatusCode, "%s %s", method, origin)
			require.Empty(t, res.Header.Get("Access-Control-Allow-Origin"))
		}
	}
	require.Equal(t, 5, c.http.Sessions())
}

// A tool chooses the names of headers that repeat its parameters. A page therefore
// announces them.
func TestPagesMaySendWhatRepeatsParametersAndNoOtherHeadersOfTheirs(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	allowed := func(asked string) []string {
		res := c.do("OPTIONS", "", "", "Origin", "http://localhost", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", asked)
		require.Equal(t, 204, res.StatusCode)
		return strings.Split(res.Header.Get("Access-Control-Allow-Headers"), ", ")
	}
	always := allowed("")
	require.Equal(t, append(always, "mcp-param-city", "Mcp-Param-Zone"), allowed("content-type,mcp-param-city, x-mine , Mcp-Param-Zone,x-mcp-param-a"))
	many := strings.Join(allowed(strings.Repeat("mcp-param-a,", 2000)), ", ")
	require.Greater(t, len(many), 4000)
	require.Less(t, len(many), 4096+len(strings.Join(always, ", ")), "answers do not grow with requests")
}

func TestTheTokenIsNeeded(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	c := newSite(t, downstream.HTTPOptions{
		AuthToken:      "Secret-1",
		AuthHandlers:   map[string]http.Handler{"/metrics": hello},
		PublicHandlers: map[string]http.Handler{"/healthz": hello},
	})
	for _, auth := range []string{
		"", "Bearer", "Bearer ", "Bearer Secret-", "Bearer Secret-11", "Bearer secret-1", "Secret-1", "Basic Secret-1", "Bearer  Secret-1", "Bearer Secret-1,x",
	} {
		for _, method := range []string{"POST", "GET", "DELETE", "PUT", "OPTIONS", "GET /metrics", "GET /", "POST /x"} {
			res := c.do(method, "", initialize, "Authorization", auth, "Cookie", "token=Secret-1")
			require.Equal(t, 401, res.StatusCode, "%s %q", method, auth)
			require.Contains(t, res.Header.Get("WWW-Authenticate"), "Bearer")
			require.NotContains(t, body(t, res), "Secret-1")
		}
		require.Equal(t, 200, c.do("GET /healthz", "", "", "Authorization", auth).StatusCode)
	}
	require.Equal(t, 401, c.do("GET /mcp?token=Secret-1", "", "").StatusCode)
	require.Equal(t, "hello", body(t, c.do("GET /metrics", "", "", "Authorization", "Bearer Secret-1")))
	id := c.open("Authorization", "bearer Secret-1")
	require.Equal(t, 401, c.do("POST", id, request("1", "echo", "")).StatusCode, "the session ID is not a token")
	require.Equal(t, 204, c.do("OPTIONS", "", "", "Origin", "http://localhost:1", "Access-Control-Request-Method", "POST").StatusCode, "a preflight has no token")
}

// FuzzOrigin checks that every accepted Origin is on this machine.
func FuzzOrigin(f *testing.F) {
	for _, s := range []string{"http://localhost", "null", "http://localhost@evil.example", "https://[::1]:1", "http://127.0.0.1.evil.example"} {
		f.Add(s, s)
	}
	h := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: newScript()}})
	f.Cleanup(h.Close)
	handler := h.Handler()
	local := map[string]bool{"localhost": true, "::1": true}
	f.Fuzz(func(t *testing.T, origin, host string) {
		r := httptest.NewRequest("GET", "http://localhost/x", nil)
		r.Header.Set("Origin", origin)
		r.Host = host
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusForbidden {
			return
		}
		u, err := url.Parse(origin)
		if err != nil || !local[lower(u.Hostname())] && !isLoopbackIP(u.Hostname()) {
			t.Fatalf("origin %q passed", origin)
		}
		v, err := url.Parse("http://" + host)
		if err == nil && !local[lower(v.Hostname())] && !isLoopbackIP(v.Hostname()) {
			t.Fatalf("host %q passed", host)
		}
	})
}
