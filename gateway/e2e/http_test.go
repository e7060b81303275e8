package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// session makes a session by hand and gives the headers of its requests.
func (s *web) session() map[string]string {
	s.t.Helper()
	got := s.do("POST", "/mcp", nil, initBody)
	require.Equal(s.t, http.StatusOK, got.status, got.body)
	id := got.header.Get("Mcp-Session-Id")
	require.Regexp(s.t, `^[\x21-\x7e]{16,}$`, id)
	h := map[string]string{"Mcp-Session-Id": id, "MCP-Protocol-Version": revision}
	require.Equal(s.t, http.StatusAccepted, s.do("POST", "/mcp", h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).status)
	return h
}

const pingBody = `{"jsonrpc":"2.0","id":2,"method":"ping"}`

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
	w := newWorld(t)
	w.gateway["auth_token"] = "t0ken-of-the-test"
	s := w.serve()
	port := s.base[strings.LastIndex(s.base, ":"):]
	for _, host := range []string{"evil.example", "evil.example" + port, "127.0.0.1.evil.example", "localhost.evil.example" + port, "10.0.0.1" + port} {
		for _, auth := range []string{"Bearer t0ken-of-the-test", ""} {
			got := s.do("POST", "/mcp", map[string]string{"Host": host, "Authorization": auth}, initBody)
			require.Contains(t, []int{http.StatusForbidden, http.StatusMisdirectedRequest}, got.status, "%s %q", host, auth)
		}
	}
	for _, host := range []string{"localhost" + port, "127.0.0.1" + port, "[::1]" + port} {
		require.Equal(t, http.StatusOK, s.do("POST", "/mcp", map[string]string{"Host": host}, initBody).status, host)
	}
}

func TestH02_ForeignOriginIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["allowed_origins"] = []string{"https://app.example"}
	s := w.serve()
	port := s.base[strings.LastIndex(s.base, ":"):]
	for _, origin := range []string{
		"https://evil.example", "null", "http://localhost.evil.example", "http://127.0.0.1.evil.example", "https://app.example.evil.example",
		"https://app.example:444", "file://", "http://evil.example" + port,
	} {
		require.Equal(t, http.StatusForbidden, s.do("POST", "/mcp", map[string]string{"Origin": origin}, initBody).status, origin)
	}
	for _, origin := range []string{"http://localhost" + port, "http://127.0.0.1:9999", "https://app.example"} {
		require.Equal(t, http.StatusOK, s.do("POST", "/mcp", map[string]string{"Origin": origin}, initBody).status, origin)
	}
}

func TestH04_H05_TokenGuardsEverythingButHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["auth_token"] = "Tok3n-of-the-test"
	s := w.serve()
	for _, auth := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer Tok3n-of-the-tes", "Bearer Tok3n-of-the-test2", "Bearer tok3n-of-the-test", "Basic VG9rM24tb2YtdGhlLXRlc3Q=", "Tok3n-of-the-test"} {
		for _, to := range []string{"POST /mcp", "GET /mcp", "DELETE /mcp", "GET /metrics"} {
			method, path, _ := strings.Cut(to, " ")
			got := s.do(method, path, map[string]string{"Authorization": auth, "Cookie": "token=Tok3n-of-the-test"}, initBody)
			require.Equal(t, http.StatusUnauthorized, got.status, "%s %q", to, auth)
			require.Contains(t, got.header.Get("WWW-Authenticate"), "Bearer")
			require.Empty(t, got.header.Get("Mcp-Session-Id"))
		}
		require.Equal(t, http.StatusOK, s.do("GET", "/healthz", map[string]string{"Authorization": auth}, "").status)
	}
	require.Equal(t, http.StatusOK, s.do("POST", "/mcp", nil, initBody).status)
	require.Equal(t, http.StatusOK, s.do("GET", "/metrics", nil, "").status)
	require.Equal(t, http.StatusOK, s.do("GET", "/readyz", map[string]string{"Authorization": ""}, "").status)
	for _, path := range []string{"/", "/admin", "/api/v1/servers", "/mcp/../x"} {
		require.Equal(t, http.StatusNotFound, s.do("GET", path, nil, "").status, path)
	}
	require.NotContains(t, s.stderr.String(), "Tok3n")
}

func TestH07_BrowsersOfStrangersGetNothing(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	got := s.do("OPTIONS", "/mcp", map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, "")
	require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/html", ""} {
		got := s.do("POST", "/mcp", map[string]string{"Content-Type": kind}, initBody)
		require.GreaterOrEqual(t, got.status, 400, kind)
		require.Less(t, got.status, 500, kind)
	}
}

func TestH08_ProtocolVersionHeaderAndVerbs(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	h := s.session()
	for _, version := range []string{"1999-01-01", "nonsense", "2025-11-25x"} {
		got := s.do("POST", "/mcp", with(h, "MCP-Protocol-Version", version), pingBody)
		require.Equal(t, http.StatusBadRequest, got.status, version)
	}
	for _, version := range []string{revision, "2025-06-18", ""} {
		require.Equal(t, http.StatusOK, s.do("POST", "/mcp", with(h, "MCP-Protocol-Version", version), pingBody).status, version)
	}
	for _, verb := range []string{"PUT", "PATCH", "TRACE"} {
		got := s.do(verb, "/mcp", h, pingBody)
		require.Equal(t, http.StatusMethodNotAllowed, got.status, verb)
	}
}

func TestH13_SessionsCannotBeGuessedOrChosen(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	seen := map[string]bool{}
	for range 20 {
		id := s.session()["Mcp-Session-Id"]
		require.False(t, seen[id])
		seen[id] = true
	}
	for _, id := range []string{"guess", "mcp-session-00000000-0000-4000-8000-000000000000", "1"} {
		require.Equal(t, http.StatusNotFound, s.do("POST", "/mcp", map[string]string{"Mcp-Session-Id": id}, pingBody).status, id)
		require.Equal(t, http.StatusNotFound, s.do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": id}, "").status, id)
		got := s.do("POST", "/mcp", map[string]string{"Mcp-Session-Id": id}, initBody)
		require.NotEqual(t, id, got.header.Get("Mcp-Session-Id"))
	}
	require.Equal(t, http.StatusBadRequest, s.do("POST", "/mcp", nil, pingBody).status)
	h := s.session()
	require.Less(t, s.do("DELETE", "/mcp", h, "").status, 300)
	require.Equal(t, http.StatusNotFound, s.do("POST", "/mcp", h, pingBody).status)
}

func TestH14_SameIdsInManySessionsStayApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	s := w.serve()
	var clients []*client
	for range 20 {
		clients = append(clients, s.client(false))
	}
	ids := make([]string, len(clients))
	for i, c := range clients {
		ids[i] = c.begin("tools/call", obj{"name": "b_t", "arguments": obj{"i": i}})
	}
	for i, c := range clients {
		require.Equal(t, ids[0], ids[i])
		require.Equal(t, fmt.Sprintf(`b:t:{"i":%d}`, i), str(c.end(ids[i]).Result, "content", 0, "text"))
	}
}

func TestH18_ClientsTokenNeverReachesABackend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["auth_token"] = "Tok3n-of-the-test"
	b := w.remote("remote", "/mcp", obj{"tools": []obj{tool("t")}}, obj{"headers": obj{"Authorization": "Bearer of-the-backend", "X-Extra": "1"}})
	env := w.backend("env", obj{"tools": []obj{tool("env")}, "on": obj{"tools/call env": actions(do("env"))}})
	s := w.serve()
	c := s.client(false)
	c.ok("tools/call", obj{"name": "remote_t"})
	require.NotContains(t, c.callText("env_env", obj{}), "Tok3n")
	for _, told := range b.received("") {
		require.Equal(t, "Bearer of-the-backend", told.Headers["authorization"])
		require.Equal(t, "1", told.Headers["x-extra"])
		require.NotContains(t, fmt.Sprint(told.Headers)+string(told.Msg), "Tok3n")
	}
	require.NotEmpty(t, env.received("tools/call"))
}

func TestH09_BadBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"frame": "1MiB"}
	s := w.serve()
	h := s.session()
	for body, code := range map[string]int{
		"": 0, "{": -32700, "not json": -32700, "[]": -32600, "[" + pingBody + "]": -32600, `"x"`: -32600,
		`{"jsonrpc":"2.0","id":1}`: -32600, `{"id":1,"method":"ping"}`: -32600,
	} {
		got := s.do("POST", "/mcp", h, body)
		require.Equal(t, http.StatusBadRequest, got.status, "%q: %s", body, got.body)
		if code != 0 {
			require.Equal(t, fmt.Sprint(code), string(at(json.RawMessage(got.body), "error", "code")), "%q: %s", body, got.body)
		}
	}
	big := s.do("POST", "/mcp", h, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`+strings.Repeat("x", 2<<20)+`"}}`)
	require.Contains(t, []int{http.StatusRequestEntityTooLarge, http.StatusBadRequest}, big.status)
	require.Equal(t, http.StatusOK, s.do("POST", "/mcp", h, pingBody).status)
}

func TestHTTPAnswersAreJSONUntilSomethingElseComesFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("plain"), tool("steps")}, "on": obj{"tools/call steps": actions(do("progress", obj{"n": 3}))}})
	s := w.serve()
	c := s.client(true)
	plain := c.begin("tools/call", obj{"name": "b_plain", "_meta": obj{"progressToken": 1}})
	require.Nil(t, c.end(plain).Error)
	require.Equal(t, "application/json", c.contentType(plain))
	steps := c.begin("tools/call", obj{"name": "b_steps", "_meta": obj{"progressToken": 2}})
	m := c.end(steps)
	require.Equal(t, "text/event-stream", c.contentType(steps))
	notes := c.notesOf("notifications/progress")
	require.Len(t, notes, 3)
	for _, n := range notes {
		require.Equal(t, steps, n.via)
		require.Less(t, n.seq, m.seq)
	}
}

func TestHTTPProgressOfParallelCallsStaysOnItsOwnStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	acts := actions(do("wait", obj{"name": "go"}), do("progress", obj{"n": 20}))
	w.backend("b", obj{"tools": []obj{tool("a"), tool("b"), tool("c")}, "on": obj{"tools/call": acts}})
	s := w.serve()
	c := s.client(true)
	ids := map[string]string{}
	for _, name := range []string{"a", "b", "c"} {
		ids[name] = c.begin("tools/call", obj{"name": "b_" + name, "_meta": obj{"progressToken": name}})
	}
	w.backends[0].waitEvents("wait", "go", 3)
	w.backends[0].do(do("release", obj{"name": "go"}))
	for name, id := range ids {
		m := c.end(id)
		last := 0
		for _, n := range c.notesOf("notifications/progress") {
			if str(n.Params, "progressToken") == name {
				require.Equal(t, id, n.via)
				require.Less(t, n.seq, m.seq)
				last++
			}
		}
		require.Positive(t, last, name)
	}
}

func TestHTTPStreamCarriesSessionWideNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fs := w.backend("filesystem", filesystem())
	s := w.serve()
	c, idle := s.client(true), s.client(true)
	c.ok("resources/subscribe", obj{"uri": in("filesystem", appLog)})
	fs.updated(appLog)
	m := c.noted("notifications/resources/updated", nil)
	require.Equal(t, "GET", m.via)
	fs.add("tools", tool("new"))
	fs.listChanged("tools")
	require.Equal(t, "GET", c.noted("notifications/tools/list_changed", nil).via)
	idle.noted("notifications/tools/list_changed", nil)
	require.Empty(t, idle.updates())
}

func TestHTTPElicitationComesOnTheStreamOfItsCall(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		t.Run(fmt.Sprint("GET=", stream), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ask := func(method string) []obj { return actions(do("request", obj{"method": method}), do("answers")) }
			w.backend("b", obj{"tools": []obj{tool("elicit"), tool("sample"), tool("roots")}, "on": obj{
				"tools/call elicit": ask("elicitation/create"), "tools/call sample": ask("sampling/createMessage"), "tools/call roots": ask("roots/list"),
			}})
			s := w.serve()
			c := s.rawClient()
			c.caps = obj{"elicitation": obj{}, "sampling": obj{}, "roots": obj{}}
			c.reply = func(ask message) (any, any) { return obj{"to": ask.Method}, nil }
			c.init()
			if stream {
				c.listen()
			}
			for i, name := range []string{"elicit", "sample", "roots"} {
				id := c.begin("tools/call", obj{"name": "b_" + name})
				require.Contains(t, str(c.end(id).Result, "content", 0, "text"), `"to":`)
				require.Equal(t, id, c.asked(i+1).via)
			}
		})
	}
}

func TestHTTPCancellationIsForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("slow")}, "on": obj{"tools/call slow": actions(do("wait", obj{"name": "never"}))}})
	c := w.serve().client(false)
	id := c.begin("tools/call", obj{"name": "b_slow"})
	b.waitEvent("wait", "never")
	c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
	b.waitEvent("gone", "slow")
}

func TestHTTPHangUpIsNoCancellation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("slow"), tool("t")}, "on": obj{"tools/call slow": actions(do("wait", obj{"name": "go"}))}})
	s := w.serve()
	c := s.client(false)
	c.begin("tools/call", obj{"name": "b_slow"})
	b.waitEvent("wait", "go")
	c.close()
	other := s.client(false)
	require.Equal(t, "b:t:{}", other.callText("b_t", obj{}))
	require.Zero(t, b.count("notifications/cancelled"))
	b.do(do("release", obj{"name": "go"}))
	require.Equal(t, "b:t:{}", other.callText("b_t", obj{}))
}

func TestReadinessFollowsTheServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"initialize": actions(do("wait", obj{"name": "up"}))}
	fs := w.backend("filesystem", script)
	s := w.serve()
	require.Equal(t, http.StatusOK, s.do("GET", "/healthz", nil, "").status)
	starting := s.do("GET", "/readyz", nil, "")
	require.Equal(t, http.StatusServiceUnavailable, starting.status)
	require.JSONEq(t, `{"status":"not ready"}`, starting.body, "nothing of the servers")
	fs.do(do("release", obj{"name": "up"}))
	eventually(t, "readiness", func() bool { return s.do("GET", "/readyz", nil, "").status == http.StatusOK })
	require.JSONEq(t, `{"status":"ready"}`, s.do("GET", "/readyz", nil, "").body)
	require.JSONEq(t, `{"status":"ok"}`, s.do("GET", "/healthz", nil, "").body)
}

func TestR3_37_Metrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	script := filesystem()
	script["on"] = obj{"resources/read " + appJSON: actions(do("error", obj{"error": obj{"code": -32603, "message": "boom"}}))}
	fs := w.backend("filesystem", script)
	s := w.serve()
	c := s.client(false)
	c.readText(in("filesystem", appLog))
	c.readText(in("filesystem", appLog))
	c.fault("resources/read", obj{"uri": in("filesystem", appJSON)})
	for i := range 5 {
		c.fault("resources/read", obj{"uri": fmt.Sprint("unknown:", i)})
		c.fault("tools/call", obj{"name": fmt.Sprint("unknown", i)})
		c.fault(fmt.Sprint("unknown/", i), nil)
	}
	c.callText("filesystem_stat", obj{})
	require.Equal(t, "2", s.metric(`mcp_resource_reads_total{mime_type="text/plain",server_id="filesystem",status="success"}`))
	body := s.do("GET", "/metrics", nil, "").body
	failures := 0
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "mcp_resource_reads_total{") && strings.Contains(line, `server_id="filesystem",status="failure"} 1`) {
			failures++
		}
	}
	require.Equal(t, 1, failures, body)
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
		got := s.metric(series)
		if got == "" && want == "0" {
			continue // a series may begin with its first event
		}
		require.Equal(t, want, got, series)
	}
	require.Contains(t, body, `mcp_requests_total{method="tools/call",server_id="filesystem",status="`)
	require.Contains(t, body, `mcp_request_duration_seconds_count{method="resources/read",server_id="filesystem"}`)

	fs.do(do("crash", obj{"code": 1}))
	fs.waitStarts(2)
	eventually(t, "the restart to be counted", func() bool {
		return s.metric(`mcp_server_restarts_total{server_id="filesystem"}`) == "1"
	})
}

func TestMetricsBoundMIMETypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reads := obj{}
	var all []obj
	for i := range 100 {
		uri := fmt.Sprint("x:", i)
		all = append(all, resource(uri))
		reads[uri] = []obj{{"uri": uri, "mimeType": fmt.Sprint("application/x-", i), "text": ""}}
	}
	w.backend("b", obj{"resources": all, "reads": reads})
	s := w.serve()
	c := s.client(false)
	for _, uri := range c.names("resources") {
		c.ok("resources/read", obj{"uri": uri})
	}
	body := s.do("GET", "/metrics", nil, "").body
	require.LessOrEqual(t, strings.Count(body, "mcp_resource_reads_total{"), 66)
	require.Contains(t, body, `mime_type="other"`)
}

func TestH21_PortInUse(t *testing.T) {
	t.Parallel()
	s := newWorld(t).serve()
	addr := strings.TrimPrefix(s.base, "http://")
	w := newWorld(t)
	w.gateway["listen"] = addr
	w.backend("filesystem", filesystem())
	out := w.run("serve")
	require.Equal(t, exitFailure, out.code, out.stderr)
	require.Contains(t, out.stderr, "listen on "+addr+" (gateway.listen): ")
	require.Equal(t, 1, strings.Count(strings.TrimSpace(lastLine(out.stderr)), "\n")+1)
	w.gateway["listen"] = "127.0.0.1:" + fmt.Sprint(freePort(t))
	out = w.run("serve", "--listen", addr)
	require.Equal(t, exitFailure, out.code, out.stderr)
	require.Contains(t, out.stderr, "listen on "+addr+" (--listen): ")
	require.Contains(t, out.stderr, "; choose another one with --listen\n")
	w.gateway["listen"] = addr
	// Any other host goes on without it.
	c := w.bridged()
	require.NotEmpty(t, c.names("resources"))
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func TestH19_NonLoopbackAddressNeedsAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["listen"] = "0.0.0.0:" + fmt.Sprint(freePort(t))
	out := w.run("serve")
	require.NotZero(t, out.code)
	require.Contains(t, out.stderr, "auth_token")
}

func TestLeastRecentlyUsedSessionMakesRoomAtTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"sessions": 2}
	s := w.serve()
	one, two := s.session(), s.session()
	require.Equal(t, http.StatusOK, s.do("POST", "/mcp", one, pingBody).status)
	// A session is in use until its answer is out of the server's hands, which
	// may be a moment after it was read.
	var three map[string]string
	eventually(t, "an idle session", func() bool {
		got := s.do("POST", "/mcp", nil, initBody)
		three = map[string]string{"Mcp-Session-Id": got.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": revision}
		return got.status == http.StatusOK
	})
	require.Equal(t, http.StatusNotFound, s.do("POST", "/mcp", two, pingBody).status)
	for _, h := range []map[string]string{one, three} {
		require.Equal(t, http.StatusOK, s.do("POST", "/mcp", h, pingBody).status)
	}
}

func TestPagesOfAllowedOriginsMayReadTheAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["allowed_origins"] = []string{"https://app.example"}
	w.gateway["auth_token"] = "Tok3n-of-the-test"
	s := w.serve()
	preflight := map[string]string{"Origin": "https://app.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type, mcp-session-id", "Authorization": ""}
	got := s.do("OPTIONS", "/mcp", preflight, "")
	require.Less(t, got.status, 300)
	require.Equal(t, "https://app.example", got.header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, strings.ToLower(got.header.Get("Access-Control-Allow-Headers")), "mcp-session-id")
	got = s.do("POST", "/mcp", map[string]string{"Origin": "https://app.example"}, initBody)
	require.Equal(t, http.StatusOK, got.status)
	require.Equal(t, "https://app.example", got.header.Get("Access-Control-Allow-Origin"))
	require.Contains(t, got.header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id")
}
