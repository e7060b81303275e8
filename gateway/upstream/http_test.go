package upstream

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// web is a scripted Streamable HTTP server.
type web struct {
	t        *testing.T
	srv      *httptest.Server
	conns    atomic.Int32
	mu       sync.Mutex
	posts    []string
	headers  []http.Header
	deletes  int
	gets     []string // Last-Event-ID by request
	answers  chan jsonrpc.Message
	push     chan string // events for the GET stream
	noGET    bool
	session  string
	tool     func(w http.ResponseWriter, r *http.Request, name string, id []byte)
	before   func(w http.ResponseWriter, r *http.Request, method string) bool // answers the request if set
	toolList string
	on       map[string]func(w http.ResponseWriter, r *http.Request, m jsonrpc.Message) // by method
}

func newWeb(t *testing.T, change func(*web)) *web {
	b := scripted(t, change)
	b.srv = httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	b.srv.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			b.conns.Add(1)
		}
	}
	b.srv.Start()
	t.Cleanup(b.srv.Close)
	return b
}

// scripted returns a web without a listener.
func scripted(t *testing.T, change func(*web)) *web {
	b := &web{t: t, session: "s-1", push: make(chan string), answers: make(chan jsonrpc.Message, 10), toolList: `[{"name":"a"}]`}
	if change != nil {
		change(b)
	}
	return b
}

func (b *web) config() config.Server {
	return config.Server{
		Name: "files", Type: config.HTTP, TypeSet: true, URL: b.srv.URL + "/mcp?key=topsecret", Isolation: config.Shared,
		Headers: map[string]string{"Authorization": "Bearer tok", "X-Api-Key": "k"},
	}
}

func (b *web) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := jsonrpc.Parse(body)
	b.mu.Lock()
	b.headers = append(b.headers, r.Header.Clone())
	switch r.Method {
	case http.MethodGet:
		b.gets = append(b.gets, r.Header.Get("Last-Event-ID"))
	case http.MethodDelete:
		b.deletes++
	default:
		b.posts = append(b.posts, string(body))
	}
	b.mu.Unlock()
	if b.before != nil && b.before(w, r, m.Method) {
		return
	}
	if do := b.on[m.Method]; do != nil {
		do(w, r, m)
		return
	}
	switch {
	case r.Method == http.MethodGet:
		b.stream(w, r)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case m.IsResponse():
		b.answers <- m
		w.WriteHeader(http.StatusAccepted)
	case m.IsNotification():
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "initialize":
		if b.session != "" {
			w.Header().Set("Mcp-Session-Id", b.session)
		}
		b.json(w, m.ID, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"web","version":"1"}}`)
	case m.Method == "tools/list":
		b.mu.Lock()
		list := b.toolList
		b.mu.Unlock()
		b.json(w, m.ID, `{"tools":`+list+`}`)
	case m.Method == "tools/call":
		name := rawjson.GetString(m.Params, "name")
		b.tool(w, r, name, m.ID)
	}
}

func (b *web) json(w http.ResponseWriter, id []byte, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, "{\n \"jsonrpc\": \"2.0\", \"id\": %s,\n \"result\": %s}\n", id, result)
}

// eventsTo starts an event stream and returns a function that writes events.
func eventsTo(w http.ResponseWriter) func(event string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	f := w.(http.Flusher)
	f.Flush()
	return func(event string) {
		_, _ = io.WriteString(w, event+"\n\n")
		f.Flush()
	}
}

func (b *web) stream(w http.ResponseWriter, r *http.Request) {
	if b.noGET {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	send := eventsTo(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-b.push:
			if e == "" {
				return
			}
			send(e)
		}
	}
}

func (b *web) posted() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.posts, "\n")
}

func (b *web) streams() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.gets...)
}

func TestHTTPHeadersAndSession(t *testing.T) {
	t.Parallel()
	b := newWeb(t, nil)
	r := start(t, b.config(), nil).whole()
	b.tool = func(w http.ResponseWriter, _ *http.Request, _ string, id []byte) {
		w.Header().Set("Mcp-Session-Id", "not of an initialize")
		b.json(w, id, `{"ok":1.50,"x":[`+"\n"+`1]}`)
	}
	got, err := r.call(r.up(), "a")
	require.NoError(t, err)
	require.Equal(t, `{"ok":1.50,"x":[ 1]}`, got, "raw, but on one line")
	require.Equal(t, "http", r.cat.state().Transport)
	r.until("a GET", func() bool { return len(b.streams()) == 1 })

	r.up().Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Equal(t, 1, b.deletes, "the session is ended")
	for i, h := range b.headers {
		require.Equal(t, "Bearer tok", h.Get("Authorization"))
		require.Equal(t, "k", h.Get("X-Api-Key"))
		if i == 0 {
			require.Equal(t, "2026-07-28", h.Get("MCP-Protocol-Version"))
			require.Equal(t, "server/discover", h.Get("Mcp-Method"))
			continue
		}
		require.Empty(t, h.Get("Mcp-Method"))
		if i > 1 {
			require.Equal(t, "s-1", h.Get("Mcp-Session-Id"))
			require.Equal(t, "2025-06-18", h.Get("MCP-Protocol-Version"))
		} else {
			require.Empty(t, h.Get("MCP-Protocol-Version"))
			require.Contains(t, h.Get("Accept"), "text/event-stream")
			require.Contains(t, h.Get("Accept"), "application/json")
		}
	}
	require.Contains(t, b.posts[2], "notifications/initialized")
}

func TestHTTPStreamBelongsToItsCall(t *testing.T) {
	t.Parallel()
	b := newWeb(t, nil)
	b.tool = func(w http.ResponseWriter, r *http.Request, name string, id []byte) {
		send := eventsTo(w)
		send(`event: message` + "\n" + `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"from":"` + name + `"}}`)
		send(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(id) + `,"progress":1}}`)
		send(`data: {"jsonrpc":"2.0","id":"ask-` + name + `","method":"elicitation/create","params":{}}`)
		select {
		case m := <-b.answers:
			send(fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":{\"answer\":%s}}", id, m.Result))
		case <-r.Context().Done():
		}
	}
	r := start(t, b.config(), func(r *rig) {
		r.h.request = func(_ context.Context, c *Call, _ string, _ []byte) ([]byte, *jsonrpc.Error) {
			return []byte(fmt.Sprintf(`{"for":%q}`, c.Cause)), nil
		}
	})
	conn := r.up()
	for _, name := range []string{"a", "b"} {
		progress := 0
		got, err := do(conn, &Call{
			Method: "tools/call", Params: toolParams(name, ""), Cause: "cause-" + name,
			Progress: func([]byte) { progress++ },
		})
		require.NoError(t, err)
		require.Equal(t, `{"answer":{"for":"cause-`+name+`"}}`, got)
		require.Equal(t, 1, progress)
	}
	require.Equal(t, []string{`notifications/message {"from":"a"}`, `notifications/message {"from":"b"}`}, r.h.noted())
	require.Equal(t, []any{"cause-a", "cause-b"}, r.h.causes)
}

func TestHTTPAnswersMayTakeAnyTime(t *testing.T) {
	t.Parallel()
	// The server does not read the answer until release is closed. There is no hidden
	// limit.
	release := make(chan struct{})
	b := newWeb(t, func(b *web) {
		b.before = func(w http.ResponseWriter, r *http.Request, method string) bool {
			if method == "" && r.Method == http.MethodPost {
				<-release
			}
			return false
		}
	})
	b.tool = func(w http.ResponseWriter, _ *http.Request, _ string, id []byte) {
		send := eventsTo(w)
		send(`data: {"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
		m := <-b.answers
		send(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":%s}`, id, m.Result))
	}
	c := &Call{Method: "tools/call", Params: toolParams("a", "")}
	r := start(t, b.config(), func(r *rig) {
		r.h.request = func(context.Context, *Call, string, []byte) ([]byte, *jsonrpc.Error) {
			time.AfterFunc(50*time.Millisecond, func() { close(release) })
			return []byte(`{"late":1}`), nil
		}
	})
	got, err := do(r.up(), c)
	require.NoError(t, err)
	require.Equal(t, `{"late":1}`, got)
}

func TestHTTPGetStream(t *testing.T) {
	t.Parallel()
	b := newWeb(t, nil)
	r := start(t, b.config(), nil).whole()
	b.push <- "id: e1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\"params\":{\"uri\":\"x\"}}"
	r.until("the notification", func() bool { return len(r.h.noted()) == 1 })
	b.mu.Lock()
	b.toolList = `[{"name":"a"},{"name":"new"}]`
	b.mu.Unlock()
	b.push <- `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	r.until("the new list", func() bool { return len(r.cat.list(registry.Tool)) == 2 })
	b.push <- "" // closes the stream
	r.until("another GET", func() bool { return len(b.streams()) == 2 })
	require.Equal(t, []string{"", "e1"}, b.streams(), "it resumes after the last event")
	require.NoError(t, r.up().Err())
}

func TestHTTPWithoutGetStreamIsFine(t *testing.T) {
	t.Parallel()
	b := newWeb(t, func(b *web) { b.noGET = true })
	r := start(t, b.config(), nil).whole()
	r.until("the GET", func() bool { return len(b.streams()) == 1 })
	require.NoError(t, r.up().Err())
}

func TestHTTPOnlyWhatMayPassIsAskedAgain(t *testing.T) {
	t.Parallel()
	for status, again := range map[int]bool{429: true, 500: true, 502: true, 503: true, 504: true, 501: false, 400: false, 404: false, 405: false} {
		require.Equal(t, again, isTemporary(status), status)
	}
}

func TestHTTPNothingIsHeardOnceTheStreamHasEnded(t *testing.T) {
	t.Parallel()
	var streams atomic.Int32
	b := newWeb(t, func(b *web) {
		b.before = func(w http.ResponseWriter, r *http.Request, _ string) bool {
			if r.Method != http.MethodGet || streams.Add(1) == 1 {
				return false
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
			return true
		}
	})
	r := start(t, b.config(), nil).whole()
	heard := &r.up().(*link).streamOpen
	r.until("the stream", heard.Load)
	b.push <- ""
	r.until("the end of it", func() bool { return !heard.Load() })
}

func TestHTTPStreamIsResumed(t *testing.T) {
	t.Parallel()
	b := newWeb(t, nil)
	var id []byte
	b.before = func(w http.ResponseWriter, r *http.Request, method string) bool {
		if r.Header.Get("Last-Event-ID") != "7" {
			return false
		}
		eventsTo(w)(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"resumed":1}}`, id))
		return true
	}
	b.tool = func(w http.ResponseWriter, _ *http.Request, name string, call []byte) {
		id = call
		send := eventsTo(w)
		if name == "with ids" {
			send("id: 7\nretry: 1\ndata:")
		}
	}
	r := start(t, b.config(), nil)
	got, err := r.call(r.up(), "with ids")
	require.NoError(t, err)
	require.Equal(t, `{"resumed":1}`, got)
	_, err = r.call(r.up(), "without")
	requireCode(t, err, ConnectionError, "stream ended before the answer")
}

func TestHTTPOddAnswers(t *testing.T) {
	t.Parallel()
	b := newWeb(t, nil)
	b.tool = func(w http.ResponseWriter, _ *http.Request, name string, id []byte) {
		switch name {
		case "html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		case "accepted":
			w.WriteHeader(http.StatusAccepted)
		case "other id":
			b.json(w, []byte("999"), "{}")
		case "broken":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":`)
		case "huge":
			b.json(w, id, `{"t":"`+strings.Repeat("x", 2<<20)+`"}`)
		case "huge event":
			eventsTo(w)(`data: {"jsonrpc":"2.0","id":` + string(id) + `,"result":{"t":"` + strings.Repeat("x", 2<<20) + `"}}`)
		case "500":
			http.Error(w, "stack trace", 500)
		case "rpc error", "rpc error of another request", "rpc error by 404":
			status, code := 400, -32099
			if name == "rpc error by 404" {
				status, code = 404, jsonrpc.CodeMethodNotFound // a lost session has another code
			}
			if name == "rpc error of another request" {
				id = []byte("999")
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"m","data":1.0}}`, id, code)
		case "batch":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":%s,"result":{"b":1}}]`, id)
		case "cut":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0"`)
		}
	}
	r := start(t, b.config(), nil)
	conn := r.up()
	for name, want := range map[string][2]string{
		"html": {BadReply, "text/html"}, "accepted": {BadReply, "sent no answer"}, "other id": {BadReply, "sent no JSON-RPC answer"},
		"broken": {BadReply, "sent no JSON-RPC answer"}, "huge": {BadReply, "limits.frame"}, "huge event": {BadReply, "limits.frame"},
		"500": {ConnectionError, "HTTP status 500"}, "rpc error of another request": {ConnectionError, "HTTP status 400"}, "cut": {ConnectionError, "closed the connection"},
	} {
		_, err := r.call(conn, name)
		requireCode(t, err, want[0], want[1])
		require.NotContains(t, err.Error(), "topsecret")
	}
	got, err := r.call(conn, "rpc error")
	require.NoError(t, err)
	require.Equal(t, `error {"code":-32099,"message":"m","data":1.0}`, got)
	got, err = r.call(conn, "rpc error by 404")
	require.NoError(t, err)
	require.Equal(t, `error {"code":-32601,"message":"m","data":1.0}`, got)
	got, err = r.call(conn, "batch")
	require.NoError(t, err)
	require.Equal(t, `{"b":1}`, got)
	require.NoError(t, conn.Err())
}

func TestHTTPAnswersWithoutAnEndAreDropped(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int32
	endless := func(w http.ResponseWriter, r *http.Request, status int, kind, text string) {
		if status != 0 {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
		}
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
			_ = sleep(r.Context(), 20*time.Millisecond)
		}
		dropped.Add(1)
	}
	b := newWeb(t, func(b *web) {
		b.noGET = true
		b.before = func(w http.ResponseWriter, r *http.Request, method string) bool {
			if method != "notifications/odd" {
				return false
			}
			endless(w, r, http.StatusAccepted, "text/plain", "x")
			return true
		}
	})
	b.tool = func(w http.ResponseWriter, r *http.Request, name string, id []byte) {
		switch name {
		case "accepted":
			endless(w, r, http.StatusAccepted, "", "x")
		case "silent":
			endless(w, r, http.StatusAccepted, "", "")
		case "html":
			endless(w, r, http.StatusOK, "text/html", "x")
		case "huge event":
			eventsTo(w)(`data: {"jsonrpc":"2.0","id":` + string(id) + `,"result":{"t":"` + strings.Repeat("x", 2<<20) + `"}}`)
			endless(w, r, 0, "", "x")
		}
	}
	r := start(t, b.config(), nil).whole()
	conn := r.up()
	names := []string{"accepted", "silent", "html", "huge event"}
	for _, name := range names {
		_, err := r.call(conn, name)
		requireCode(t, err, BadReply, "")
	}
	require.NoError(t, conn.Notify("notifications/odd", nil))
	r.until("the end of the requests", func() bool { return int(dropped.Load()) == len(names)+1 })
	require.NoError(t, conn.Err(), "the connection stays open")
}

func TestHTTPCancellationIsPosted(t *testing.T) {
	t.Parallel()
	b := newWeb(t, nil)
	dropped := make(chan struct{})
	var id atomic.Value
	b.tool = func(_ http.ResponseWriter, r *http.Request, _ string, call []byte) {
		id.Store(string(call))
		<-r.Context().Done()
		close(dropped)
	}
	r := start(t, b.config(), nil)
	_, err := do(r.up(), &Call{Method: "tools/call", Params: toolParams("a", ""), Timeout: time.Second})
	requireCode(t, err, RequestTimeout, "")
	<-dropped
	r.until("the cancellation", func() bool {
		return strings.Contains(b.posted(), fmt.Sprintf(`"notifications/cancelled","params":{"requestId":%s,`, id.Load()))
	})
}

func TestHTTPNeedsLogin(t *testing.T) {
	t.Parallel()
	b := newWeb(t, func(b *web) {
		b.before = func(w http.ResponseWriter, _ *http.Request, _ string) bool {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="file:///etc/passwd; rm -rf"`)
			w.WriteHeader(401)
			return true
		}
	})
	for _, typ := range []config.Type{config.HTTP, config.SSE} {
		cfg := b.config()
		cfg.Type, cfg.Headers = typ, nil
		r := start(t, cfg, nil)
		<-r.FirstList()
		_, err := r.Conn()
		requireCode(t, err, ConnectionError, "headers: {Authorization:")
		require.Equal(t, registry.StateNeedsLogin, r.cat.state().State)

		cfg = b.config()
		cfg.Type = typ
		r = start(t, cfg, nil)
		<-r.FirstList()
		_, err = r.Conn()
		requireCode(t, err, ConnectionError, "Authorization header was refused")
		require.NotContains(t, err.Error(), "tok")
	}
}

func TestHTTPRedirectsToOtherOriginsGetNothing(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer thief.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, typ := range []config.Type{config.HTTP, config.SSE} {
			b := newWeb(t, func(b *web) {
				b.before = func(w http.ResponseWriter, r *http.Request, _ string) bool {
					http.Redirect(w, r, thief.URL+"/?q=topsecret", status)
					return true
				}
			})
			cfg := b.config()
			cfg.Type = typ
			r := start(t, cfg, nil)
			<-r.FirstList()
			_, err := r.Conn()
			requireCode(t, err, ConnectionError, "another origin")
			require.NotContains(t, err.Error(), "topsecret")
		}
	}
	require.False(t, reached.Load())
}

func TestHTTPUnreachableServerSaysSoWithoutSecrets(t *testing.T) {
	t.Parallel()
	b := newWeb(t, nil)
	cfg := b.config()
	// The port is reserved by the system, so no test listens on it.
	cfg.URL = strings.Replace(cfg.URL, b.srv.Listener.Addr().String(), "user:pass@127.0.0.1:1", 1)
	for _, typ := range []config.Type{config.HTTP, config.SSE} {
		cfg.Type = typ
		r := start(t, cfg, nil)
		<-r.FirstList()
		_, err := r.Conn()
		requireCode(t, err, ConnectionError, "refused")
		for _, secret := range []string{"topsecret", "pass", "user"} {
			require.NotContains(t, err.Error(), secret)
			require.False(t, r.cat.logged(secret))
		}
	}
}

func TestHTTPConnectionsAreReused(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 300<<10)
	b := newWeb(t, func(b *web) { b.noGET = true })
	b.tool = func(w http.ResponseWriter, _ *http.Request, name string, id []byte) {
		if name == "json" {
			b.json(w, id, `{"t":"`+big+`"}`)
			return
		}
		eventsTo(w)(fmt.Sprintf(`data: {"jsonrpc":"2.0","id":%s,"result":{"t":%q}}`, id, big))
	}
	r := start(t, b.config(), nil).whole()
	conn := r.up()
	for i := range 16 {
		_, err := r.call(conn, []string{"json", "sse"}[i%2])
		require.NoError(t, err)
	}
	require.Less(t, b.conns.Load(), int32(8), "connections for 16 calls")
}

func TestHTTPTypeThatIsWrittenIsNotChanged(t *testing.T) {
	t.Parallel()
	srv, _ := oldWeb(t, "/messages")
	r := start(t, config.Server{Name: "files", Type: config.HTTP, TypeSet: true, URL: srv.URL + "/sse"}, nil)
	<-r.FirstList()
	_, err := r.Conn()
	requireCode(t, err, ConnectionError, "HTTP status 405")
}
