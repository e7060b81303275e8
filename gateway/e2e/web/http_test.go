//go:build e2e

package web

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func with(h map[string]string, more ...string) map[string]string {
	out := map[string]string{}
	for k, v := range h {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

func TestH01_H03_ForeignHostIsRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "t0ken-of-the-test"
	s := w.Serve()
	port := s.Base[strings.LastIndex(s.Base, ":"):]
	for _, host := range []string{"evil.example", "evil.example" + port, "127.0.0.1.evil.example", "localhost.evil.example" + port, "10.0.0.1" + port} {
		for _, auth := range []string{"Bearer t0ken-of-the-test", ""} {
			got := s.Do("POST", "/mcp", map[string]string{"Host": host, "Authorization": auth}, e2e.InitBody)
			require.Contains(t, []int{http.StatusForbidden, http.StatusMisdirectedRequest}, got.Status, "%s %q", host, auth)
		}
	}
	for _, host := range []string{"localhost" + port, "127.0.0.1" + port, "[::1]" + port} {
		require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", map[string]string{"Host": host}, e2e.InitBody).Status, host)
	}
}

func TestH02_ForeignOriginIsRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["allowed_origins"] = []string{"https://app.example"}
	s := w.Serve()
	port := s.Base[strings.LastIndex(s.Base, ":"):]
	for _, origin := range []string{
		"https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://app.example.evil.example",
		"https://app.example:444", "file://", "http://evil.example" + port,
	} {
		require.Equal(t, http.StatusForbidden, s.Do("POST", "/mcp", map[string]string{"Origin": origin}, e2e.InitBody).Status, origin)
	}
	for _, origin := range []string{"http://localhost" + port, "http://127.0.0.1:9999", "https://app.example"} {
		require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", map[string]string{"Origin": origin}, e2e.InitBody).Status, origin)
	}
}

func TestH04_H05_TokenGuardsEverythingButHealth(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "Tok3n-of-the-test"
	s := w.Serve()
	for _, auth := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer Tok3n-of-the-tes", "Bearer Tok3n-of-the-test2", "Bearer tok3n-of-the-test", "Basic VG9rM24tb2YtdGhlLXRlc3Q=", "Tok3n-of-the-test"} {
		for _, to := range []string{"POST /mcp", "GET /mcp", "DELETE /mcp", "GET /metrics"} {
			method, path, _ := strings.Cut(to, " ")
			got := s.Do(method, path, map[string]string{"Authorization": auth, "Cookie": "token=Tok3n-of-the-test"}, e2e.InitBody)
			require.Equal(t, http.StatusUnauthorized, got.Status, "%s %q", to, auth)
			require.Contains(t, got.Header.Get("WWW-Authenticate"), "Bearer")
			require.Empty(t, got.Header.Get("Mcp-Session-Id"))
		}
		require.Equal(t, http.StatusOK, s.Do("GET", "/healthz", map[string]string{"Authorization": auth}, "").Status)
	}
	require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", nil, e2e.InitBody).Status)
	require.Equal(t, http.StatusOK, s.Do("GET", "/metrics", nil, "").Status)
	require.Equal(t, http.StatusOK, s.Do("GET", "/readyz", map[string]string{"Authorization": ""}, "").Status)
	for _, path := range []string{"/", "/admin", "/api/v1/servers", "/mcp/../x"} {
		require.Equal(t, http.StatusNotFound, s.Do("GET", path, nil, "").Status, path)
	}
	require.NotContains(t, s.Stderr.String(), "Tok3n")
}

func TestH07_H08_H13_RequestsThatNobodyMaySendAreRefused(t *testing.T) {
	t.Parallel()
	s := e2e.NewWorld(t).Serve()
	browsersOfStrangersGetNothing(t, s)
	versionsAndVerbsAreThoseOfTheProtocol(t, s)
	sessionsCannotBeGuessedOrChosen(t, s)
}

func browsersOfStrangersGetNothing(t *testing.T, s *e2e.Web) {
	t.Helper()
	got := s.Do("OPTIONS", "/mcp", map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, "")
	require.Empty(t, got.Header.Get("Access-Control-Allow-Origin"))
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/html", ""} {
		got := s.Do("POST", "/mcp", map[string]string{"Content-Type": kind}, e2e.InitBody)
		require.GreaterOrEqual(t, got.Status, 400, kind)
		require.Less(t, got.Status, 500, kind)
	}
}

func versionsAndVerbsAreThoseOfTheProtocol(t *testing.T, s *e2e.Web) {
	t.Helper()
	h := s.Session()
	for _, version := range []string{"1999-01-01", "nonsense", "2025-11-25x"} {
		got := s.Do("POST", "/mcp", with(h, "MCP-Protocol-Version", version), e2e.PingBody)
		require.Equal(t, http.StatusBadRequest, got.Status, version)
	}
	for _, version := range []string{e2e.Revision, "2025-06-18", ""} {
		require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", with(h, "MCP-Protocol-Version", version), e2e.PingBody).Status, version)
	}
	for _, verb := range []string{"PUT", "PATCH", "TRACE"} {
		got := s.Do(verb, "/mcp", h, e2e.PingBody)
		require.Equal(t, http.StatusMethodNotAllowed, got.Status, verb)
	}
}

func sessionsCannotBeGuessedOrChosen(t *testing.T, s *e2e.Web) {
	t.Helper()
	seen := map[string]bool{}
	for range 20 {
		id := s.Session()["Mcp-Session-Id"]
		require.False(t, seen[id])
		seen[id] = true
	}
	for _, id := range []string{"guess", "mcp-session-00000000-0000-4000-8000-000000000000", "1"} {
		require.Equal(t, http.StatusNotFound, s.Do("POST", "/mcp", map[string]string{"Mcp-Session-Id": id}, e2e.PingBody).Status, id)
		require.Equal(t, http.StatusNotFound, s.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": id}, "").Status, id)
		got := s.Do("POST", "/mcp", map[string]string{"Mcp-Session-Id": id}, e2e.InitBody)
		require.NotEqual(t, id, got.Header.Get("Mcp-Session-Id"))
	}
	require.Equal(t, http.StatusBadRequest, s.Do("POST", "/mcp", nil, e2e.PingBody).Status)
	h := s.Session()
	require.Less(t, s.Do("DELETE", "/mcp", h, "").Status, 300)
	require.Equal(t, http.StatusNotFound, s.Do("POST", "/mcp", h, e2e.PingBody).Status)
}

func TestH18_ClientsTokenNeverReachesABackend(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "Tok3n-of-the-test"
	b := w.Remote("remote", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}}, e2e.Obj{"headers": e2e.Obj{"Authorization": "Bearer of-the-backend", "X-Extra": "1"}})
	env := w.Backend("env", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("env")}, "on": e2e.Obj{"tools/call env": e2e.Actions(e2e.Do("env"))}})
	s := w.Serve()
	c := s.Client(false)
	c.Ok("tools/call", e2e.Obj{"name": "remote_t"})
	require.NotContains(t, c.CallText("env_env", e2e.Obj{}), "Tok3n")
	for _, told := range b.Received("") {
		require.Equal(t, "Bearer of-the-backend", told.Headers["authorization"])
		require.Equal(t, "1", told.Headers["x-extra"])
		require.NotContains(t, fmt.Sprint(told.Headers)+string(told.Msg), "Tok3n")
	}
	require.NotEmpty(t, env.Received("tools/call"))
}

func TestHTTPElicitationComesOnTheStreamOfItsCall(t *testing.T) {
	t.Parallel()
	for _, stream := range e2e.Variants(1, true, false) {
		t.Run(fmt.Sprint("GET=", stream), func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			ask := func(method string) []e2e.Obj {
				return e2e.Actions(e2e.Do("request", e2e.Obj{"method": method}), e2e.Do("answers"))
			}
			w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("elicit"), e2e.Tool("sample"), e2e.Tool("roots")}, "on": e2e.Obj{
				"tools/call elicit": ask("elicitation/create"), "tools/call sample": ask("sampling/createMessage"), "tools/call roots": ask("roots/list"),
			}})
			s := w.Serve()
			c := s.RawClient()
			c.Caps = e2e.Obj{"elicitation": e2e.Obj{}, "sampling": e2e.Obj{}, "roots": e2e.Obj{}}
			c.Reply = func(ask e2e.Message) (any, any) { return e2e.Obj{"to": ask.Method}, nil }
			c.Init()
			if stream {
				c.Listen()
			}
			for i, name := range []string{"elicit", "sample", "roots"} {
				id := c.Begin("tools/call", e2e.Obj{"name": "b_" + name})
				require.Contains(t, e2e.Str(c.End(id).Result, "content", 0, "text"), `"to":`)
				require.Equal(t, id, c.WaitAsks(i+1).Via)
			}
		})
	}
}

func TestReadinessFollowsTheServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"initialize": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "up"}))}
	fs := w.Backend("filesystem", script)
	s := w.Serve()
	require.Equal(t, http.StatusOK, s.Do("GET", "/healthz", nil, "").Status)
	starting := s.Do("GET", "/readyz", nil, "")
	require.Equal(t, http.StatusServiceUnavailable, starting.Status)
	require.JSONEq(t, `{"status":"not ready"}`, starting.Body, "nothing of the servers")
	fs.Do(e2e.Do("release", e2e.Obj{"name": "up"}))
	e2e.Eventually(t, "readiness", func() bool { return s.Do("GET", "/readyz", nil, "").Status == http.StatusOK })
	require.JSONEq(t, `{"status":"ready"}`, s.Do("GET", "/readyz", nil, "").Body)
	require.JSONEq(t, `{"status":"ok"}`, s.Do("GET", "/healthz", nil, "").Body)
}

func TestR3_37_Metrics(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"resources/read " + e2e.AppJSON: e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32603, "message": "boom"}}))}
	fs := w.Backend("filesystem", script)
	s := w.Serve()
	c := s.Client(false)
	c.ReadText(e2e.In("filesystem", e2e.AppLog))
	c.ReadText(e2e.In("filesystem", e2e.AppLog))
	c.Fault("resources/read", e2e.Obj{"uri": e2e.In("filesystem", e2e.AppJSON)})
	for i := range 5 {
		c.Fault("resources/read", e2e.Obj{"uri": fmt.Sprint("unknown:", i)})
		c.Fault("tools/call", e2e.Obj{"name": fmt.Sprint("unknown", i)})
		c.Fault(fmt.Sprint("unknown/", i), nil)
	}
	c.CallText("filesystem_stat", e2e.Obj{})
	s.Counts("1", `mcp_tool_calls_total{server_id="filesystem",status="success",tool="stat"}`)
	s.Counts("2", `mcp_resource_reads_total{mime_type="text/plain",server_id="filesystem",status="success"}`)
	body := ""
	e2e.Eventually(t, "one read that failed", func() bool {
		body = s.Do("GET", "/metrics", nil, "").Body
		failures := 0
		for line := range strings.Lines(body) {
			if strings.HasPrefix(line, "mcp_resource_reads_total{") && strings.Contains(line, `server_id="filesystem",status="failure"} 1`) {
				failures++
			}
		}
		return failures == 1
	})
	require.NotContains(t, body, "unknown:")
	require.NotContains(t, body, "unknown0")
	require.NotContains(t, body, "unknown/")
	for series, want := range map[string]string{
		`mcp_server_up{server_id="filesystem"}`:                        "1",
		`mcp_server_restarts_total{server_id="filesystem"}`:            "0",
		`mcp_catalog_entries{kind="resources",server_id="filesystem"}`: "2",
		`mcp_catalog_entries{kind="tools",server_id="filesystem"}`:     "2",
		`mcp_sessions_active{transport="http"}`:                        "1",
		`mcp_resource_subscriptions_active{server_id="filesystem"}`:    "0",
	} {
		got := s.Metric(series)
		if got == "" && want == "0" {
			continue // a series may appear with its first event
		}
		require.Equal(t, want, got, series)
	}
	require.Contains(t, body, `mcp_requests_total{method="tools/call",server_id="filesystem",status="`)
	require.Contains(t, body, `mcp_request_duration_seconds_count{method="resources/read",server_id="filesystem"}`)

	fs.Do(e2e.Do("crash", e2e.Obj{"code": 1}))
	fs.WaitStarts(2)
	e2e.Eventually(t, "the restart is counted", func() bool {
		return s.Metric(`mcp_server_restarts_total{server_id="filesystem"}`) == "1"
	})
}

func TestH19_NonLoopbackAddressNeedsAToken(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["listen"] = "0.0.0.0:" + fmt.Sprint(e2e.FreePort(t))
	out := w.Run("serve")
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, "auth_token")
}

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
	require.Contains(t, w.Run("validate").Stderr, "warning: allowed_hosts without auth_token: every client that reaches the proxy may call all servers; set auth_token")
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

func TestMetricsBoundMIMETypes(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	reads := e2e.Obj{}
	var all []e2e.Obj
	for i := range 100 {
		uri := fmt.Sprint("x:", i)
		all = append(all, e2e.Resource(uri))
		reads[uri] = []e2e.Obj{{"uri": uri, "mimeType": fmt.Sprint("application/x-", i), "text": ""}}
	}
	w.Backend("b", e2e.Obj{"resources": all, "reads": reads})
	s := w.Serve()
	c := s.Client(false)
	for _, uri := range c.Names("resources") {
		c.Ok("resources/read", e2e.Obj{"uri": uri})
	}
	body := s.Do("GET", "/metrics", nil, "").Body
	require.LessOrEqual(t, strings.Count(body, "mcp_resource_reads_total{"), 66)
	require.Contains(t, body, `mime_type="other"`)
}

func TestH14_SameIdsInManySessionsStayApart(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	var clients []*e2e.Client
	for range 20 {
		clients = append(clients, s.Client(false))
	}
	ids := make([]string, len(clients))
	for i, c := range clients {
		ids[i] = c.Begin("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{"i": i}})
	}
	for i, c := range clients {
		require.Equal(t, ids[0], ids[i])
		require.Equal(t, fmt.Sprintf(`b:t:{"i":%d}`, i), e2e.Str(c.End(ids[i]).Result, "content", 0, "text"))
	}
}

// raw sends bytes and returns the status of the first answer.
func raw(s *e2e.Web, text string) int {
	s.T.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Base, "http://"))
	require.NoError(s.T, err)
	defer conn.Close()
	require.NoError(s.T, conn.SetDeadline(time.Now().Add(e2e.Patience)))
	_, err = conn.Write([]byte(text))
	require.NoError(s.T, err)
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.T, err, text)
	_ = got.Body.Close()
	return got.StatusCode
}

func TestH01_H05_OddRequestsMeetTheSameGuards(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "right-token"
	s := w.Serve()
	const token = "Authorization: Bearer right-token\r\n"
	for request, want := range map[string]int{
		"GET /metrics HTTP/1.0\r\n" + token + "\r\n":                                                                403, // no Host
		"GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                          403,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n" + token + "\r\n":                       400,
		"GET /metrics HTTP/1.1\r\nHost: localhost.\r\n" + token + "\r\n":                                            403,
		"GET /metrics HTTP/1.1\r\nHost: 2130706433\r\n" + token + "\r\n":                                            403,
		"OPTIONS * HTTP/1.1\r\nHost: evil.example\r\n" + token + "\r\n":                                             403,
		"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                             401,
		"OPTIONS /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                          401,
		"GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                         401,
		"GET //metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                                            404,
		"GET /METRICS HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                                             404,
		"GET /healthz/../metrics HTTP/1.1\r\nHost: localhost\r\n\r\n":                                               401,
		"GET /%6detrics HTTP/1.1\r\nHost: localhost\r\n\r\n":                                                        401,
		"GET /metrics?access_token=right-token HTTP/1.1\r\nHost: localhost\r\n\r\n":                                 401,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + token + "\r\n":                                     401,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right-token x\r\n\r\n":                   401,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "Origin: http://localhost\r\nOrigin: null\r\n\r\n": 403,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "Origin: \r\n\r\n":                                 403,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "X: " + strings.Repeat("x", 100_000) + "\r\n\r\n":  431,
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + token + "\r\n":                                             200,
	} {
		require.Equal(t, want, raw(s, request), "%.200q", request)
	}
}
