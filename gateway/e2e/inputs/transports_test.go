//go:build e2e

package inputs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// webServer is an MCP server over HTTP whose answers the test controls byte by byte.
type webServer struct {
	t   *testing.T
	url string

	mu       sync.Mutex
	number   int                   // of the last session
	sessions map[string]bool       // that the server has
	streams  map[string]*webStream // of HTTP+SSE, by session
	seen     []webRequest
	refuse   func(w http.ResponseWriter, id string) // answers a request of a session that is lost
	fails    string                                 // a method that is refused in all sessions
	encode   func(answer string) (kind, body string)
}

type webRequest struct{ session, method, body string }

// webStream is an event stream that several requests write to.
type webStream struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	closed bool
}

func (s *webStream) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_, _ = io.WriteString(s.w, text)
		s.w.(http.Flusher).Flush()
	}
}

func (s *webStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

// newWebServer adds the server to a world as "shop". kind is "http" or "sse".
func newWebServer(t *testing.T, w *e2e.World, kind string) *webServer {
	r := &webServer{t: t, sessions: map[string]bool{}, streams: map[string]*webStream{}}
	r.encode = func(answer string) (string, string) { return "application/json", answer }
	r.refuse = func(w http.ResponseWriter, _ string) { http.Error(w, "Not Found", http.StatusNotFound) }
	s := httptest.NewServer(r)
	t.Cleanup(func() {
		s.CloseClientConnections() // the daemon may outlive the world by a moment
		s.Close()
	})
	r.url = s.URL + "/" + kind
	b, _ := w.Fake("shop", e2e.Obj{})
	b.Conf["url"], b.Conf["type"] = r.url, kind
	return r
}

func (r *webServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet && req.URL.Path == "/sse" {
		r.stream(w, req)
		return
	}
	if req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(req.Body)
	var m e2e.Message
	_ = json.Unmarshal(body, &m)
	session := req.Header.Get("Mcp-Session-Id") + req.URL.Query().Get("session")
	r.mu.Lock()
	if m.Method == "initialize" && session == "" {
		r.number++
		session = fmt.Sprint("session-", r.number)
		r.sessions[session] = true
		w.Header().Set("Mcp-Session-Id", session)
	}
	r.seen = append(r.seen, webRequest{session, m.Method, string(body)})
	known, refuse, encode, out := r.sessions[session] && m.Method != r.fails, r.refuse, r.encode, r.streams[session]
	r.mu.Unlock()
	switch {
	case m.Method == "server/discover":
		webRefusal(http.StatusOK, "application/json", webFault("$id", -32601, "Method not found"))(w, string(m.ID))
		return
	case !known:
		refuse(w, string(m.ID))
		return
	}
	if m.ID == nil || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, r.result(m.Method))
	kind, text := encode(answer)
	if out != nil {
		w.WriteHeader(http.StatusAccepted)
		out.write(text)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, text)
	if kind == "text/event-stream" { // it stays open, so only the text completes an event
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	}
}

// stream serves the stream of HTTP+SSE, with lone CRs.
func (r *webServer) stream(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	r.mu.Lock()
	r.number++
	session := fmt.Sprint("session-", r.number)
	r.sessions[session] = true
	out := &webStream{w: w}
	r.streams[session] = out
	r.mu.Unlock()
	defer out.close()
	out.write("\uFEFF: hello\revent: endpoint\rdata: /sse?session=" + session + "\r\r")
	<-req.Context().Done()
}

func (r *webServer) result(method string) string {
	switch method {
	case "initialize":
		return `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true},"extensions":{"acme/x":{}}},"serverInfo":{"name":"shop","version":"1"}}`
	case "tools/list":
		return `{"tools":[{"name":"buy","inputSchema":{"type":"object"}}]}`
	case "resources/list":
		return `{"resources":[{"name":"r","uri":"x:r"}]}`
	case "resources/templates/list":
		return `{"resourceTemplates":[]}`
	case "tools/call":
		return `{"content":[{"type":"text","text":"bought"}]}`
	}
	return `{}`
}

// lose makes the server forget its sessions, as by a restart.
func (r *webServer) lose() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.sessions)
}

// count returns how often a method was posted in a session, "" for any.
func (r *webServer) count(method, session string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.seen {
		if p.method == method && (session == "" || p.session == session) {
			n++
		}
	}
	return n
}

func webRefusal(status int, kind, body string) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, id string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		if id == "" {
			id = "null"
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(body, "$id", id))
	}
}

// webFault returns the body of a JSON-RPC error.
func webFault(id string, code int, message string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, message)
}

func TestLostSessionsAreOpenedAgain(t *testing.T) {
	const text, object, events = "text/plain", "application/json", "text/event-stream"
	for _, row := range []struct {
		name, kind string
		refuse     func(http.ResponseWriter, string)
	}{
		{"404", "http", webRefusal(404, text, "Not Found")},
		{"404 with an error", "http", webRefusal(404, object, webFault("$id", -32001, "Session not found"))},
		{"404 with the code of methods", "http", webRefusal(404, object, webFault("$id", -32601, "Session not found"))},
		{"400", "http", webRefusal(400, object, webFault("null", -32000, "Bad Request: No valid session ID provided"))},
		{"400 with the id of the request", "http", webRefusal(400, object, webFault("$id", -32600, "invalid or expired session ID"))},
		{"400 after a restart", "http", webRefusal(400, object, webFault("null", -32000, "Bad Request: Server not initialized"))},
		{"401", "http", webRefusal(401, text, "Unauthorized: Session not found")},
		{"410", "http", webRefusal(410, text, "Gone")},
		{"200", "http", webRefusal(200, object, webFault("$id", -32001, "Session not found"))},
		{"200 with a code as text", "http", webRefusal(200, object, `{"jsonrpc":"2.0","id":$id,"error":{"code":"-32001","message":"Session not found"}}`)},
		{"200 with a code as fraction", "http", webRefusal(200, object, `{"jsonrpc":"2.0","id":$id,"error":{"code":-32001.0,"message":"Session not found"}}`)},
		{"200 with id null", "http", webRefusal(200, object, webFault("null", -32001, "session_not_found"))},
		{"200 with a mark", "http", webRefusal(200, object, "\uFEFF"+webFault("$id", -32001, "SessionNotFound"))},
		{"200 with an invalid request", "http", webRefusal(200, object, webFault("$id", -32600, "Unknown session"))},
		{"200 with an event", "http", webRefusal(200, events, "data: "+webFault("$id", -32001, "SESSION NOT FOUND")+"\r\r")},
		{"SSE, an event", "sse", nil},
		{"SSE, 404", "sse", webRefusal(404, text, "Could not find session")},
		{"SSE, 410", "sse", webRefusal(410, text, "")},
		{"SSE, 400", "sse", webRefusal(400, text, "invalid session ID")},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			r := newWebServer(t, w, row.kind)
			if r.refuse = row.refuse; row.refuse == nil {
				r.refuse = func(w http.ResponseWriter, id string) {
					w.WriteHeader(http.StatusAccepted)
					r.mu.Lock()
					defer r.mu.Unlock()
					for _, s := range r.streams {
						s.write("data: " + webFault(id, -32001, "Session not found") + "\r\r")
					}
				}
			}
			if row.kind == "sse" {
				r.encode = func(answer string) (string, string) { return "", "data: " + answer + "\r\r" }
			}
			w.HealthyServer()
			c := w.Standalone()
			c.WaitListed("tools", "shop_buy", true)
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("shop", "x:r")})
			c.Ok("logging/setLevel", e2e.Obj{"level": "error"})
			require.Equal(t, "bought", c.CallText("shop_buy", e2e.Obj{}))
			for lost := range 2 {
				before := r.count("initialize", "")
				r.lose()
				var ids []string
				for range 3 {
					ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": "shop_buy"}))
				}
				for _, id := range ids {
					require.Contains(t, c.End(id).Raw, "bought")
				}
				require.Equal(t, before+1, r.count("initialize", ""), "one session more")
				session := fmt.Sprint("session-", lost+2)
				require.Equal(t, 3, r.count("tools/call", session), "each call is sent again once")
				e2e.Eventually(t, "the subscription and the level", func() bool {
					return r.count("resources/subscribe", session) == 1 && r.count("logging/setLevel", session) == 1
				})
			}
			c.CallHealthyServer()
		})
	}
}

// Notifications of clients are sent again, too.
func TestNotificationsThatALostSessionDidNotGetAreSentAgain(t *testing.T) {
	for _, kind := range []string{"http", "sse"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			r := newWebServer(t, w, kind)
			if kind == "sse" {
				r.encode = func(answer string) (string, string) { return "", "data: " + answer + "\r\r" }
			}
			c := w.Pipe("stdio", "--standalone")
			c.Caps = e2e.Obj{"extensions": e2e.Obj{"acme/x": e2e.Obj{}}}
			c.Init()
			c.WaitListed("resources", e2e.In("shop", "x:r"), true)
			r.lose()
			c.Notify("acme/changed", e2e.Obj{"uri": e2e.In("shop", "x:r")})
			e2e.Eventually(t, "the notification", func() bool { return r.count("acme/changed", "session-2") == 1 })
			require.Equal(t, 2, r.count("initialize", ""))
			require.Zero(t, r.count("notifications/cancelled", "session-2"))
		})
	}
}

// A server that accepts no session at all causes an error, and a tool's own errors start
// no session.
func TestErrorsAboutSessionsEndInErrors(t *testing.T) {
	for _, row := range []struct {
		name, want string
		refuse     func(http.ResponseWriter, string)
		most       int // sessions while one call is answered
	}{
		{"always 404", "the server lost the session", webRefusal(404, "text/plain", ""), 3},
		{"always 410", "the server lost the session", webRefusal(410, "text/plain", ""), 3},
		{"always 200", "the server lost the session", webRefusal(200, "application/json", webFault("$id", -32001, "Session not found")), 3},
		{"a session of the tool", "Session not found", webRefusal(200, "application/json", webFault("$id", -32000, "Session not found")), 1},
		{"a timeout", "Request timed out", webRefusal(200, "application/json", webFault("$id", -32001, "Request timed out")), 1},
		{"an argument", "session_id is required", webRefusal(400, "application/json", webFault("$id", -32602, "Invalid params: session_id is required")), 1},
		{"a failure", "Session not found", webRefusal(500, "application/json", webFault("$id", -32603, "Session not found")), 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			r := newWebServer(t, w, "http")
			w.HealthyServer()
			c := w.Standalone()
			c.WaitListed("tools", "shop_buy", true)
			r.mu.Lock()
			r.refuse, r.fails = row.refuse, "tools/call"
			r.mu.Unlock()
			m := c.Request("tools/call", e2e.Obj{"name": "shop_buy"})
			require.Contains(t, m.Raw, row.want)
			require.LessOrEqual(t, r.count("initialize", ""), row.most)
			require.LessOrEqual(t, r.count("tools/call", ""), 2)
			c.CallHealthyServer()
		})
	}
}
