package e2e

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Web is a running goblin serve.
type Web struct {
	*Program
	W     *World
	Base  string // http://127.0.0.1:PORT
	token string
	Http  *http.Client
}

var serving = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/mcp`)

// Serve starts goblin serve on a free port and waits until it has printed its address.
func (w *World) Serve(args ...string) *Web {
	w.T.Helper()
	s := &Web{W: w, Http: NewHTTP(w.T)}
	s.token, _ = w.Gateway["auth_token"].(string)
	s.Program = w.Start(nil, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	go func() {
		<-s.Exited
		s.Stderr.Update(func() {}) // wakes the wait below
	}()
	require.True(w.T, s.Stderr.Holds(Patience, func() bool {
		select {
		case <-s.Exited:
			return true
		default:
		}
		if m := serving.FindSubmatch(s.Stderr.Text.Bytes()); m != nil {
			s.Base = string(m[1])
		}
		return s.Base != ""
	}), "goblin serve is ready")
	require.NotEmpty(w.T, s.Base, "goblin serve exited: %s", s.Stderr.String())
	return s
}

// Served returns the world's daemon, which serves HTTP and its socket. The first call
// starts it.
func (w *World) Served() *Web {
	w.T.Helper()
	if w.served == nil {
		w.served = w.Serve()
	}
	return w.served
}

func NewHTTP(t *testing.T) *http.Client {
	c := &http.Client{Timeout: Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

type answer struct {
	Status int
	Header http.Header
	Body   string
}

// Do sends one HTTP request. An empty value removes a header; "Host" sets the host.
func (s *Web) Do(method, path string, header map[string]string, body string) answer {
	s.T.Helper()
	req, err := http.NewRequest(method, s.Base+path, strings.NewReader(body))
	require.NoError(s.T, err)
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	}
	for k, v := range header {
		switch {
		case k == "Host":
			req.Host = v
		case v == "":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	resp, err := s.Http.Do(req)
	require.NoError(s.T, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.T, err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

const InitBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// Metric returns the value of one series of /metrics, such as
// `mcp_server_up{server_id="a"}`, or "".
func (s *Web) Metric(series string) string {
	s.T.Helper()
	got := s.Do("GET", "/metrics", nil, "")
	require.Equal(s.T, http.StatusOK, got.Status)
	for line := range strings.Lines(got.Body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return value
		}
	}
	return ""
}

// Counts waits until a metric has a value. A request is counted after its response, so
// clients may look too early.
func (s *Web) Counts(want, series string) {
	s.T.Helper()
	Eventually(s.T, series+" "+want, func() bool { return s.Metric(series) == want })
}

// webSession is the HTTP side of a client.
type webSession struct {
	t         *testing.T
	S         *Web
	ctx       context.Context
	mu        sync.Mutex
	Id        string
	Version   string
	Path      string // of the endpoint; "" is /mcp
	Stateless bool   // client of 2026-07-28
	running   sync.WaitGroup
	streams   map[string]string             // content type of the response, by raw id
	cancels   map[string]context.CancelFunc // of requests, by raw id
}

// Client returns an initialized HTTP client. With stream it also listens by GET.
func (s *Web) Client(stream bool, caps ...Obj) *Client {
	s.T.Helper()
	c := s.RawClient()
	if len(caps) > 0 {
		c.Caps = caps[0]
	}
	c.Init()
	if stream {
		c.Listen()
	}
	return c
}

func (s *Web) RawClient() *Client {
	ctx, cancel := context.WithCancel(context.Background())
	c := NewClient(s.T)
	ws := &webSession{t: s.T, S: s, ctx: ctx, streams: map[string]string{}, cancels: map[string]context.CancelFunc{}}
	c.Web = ws
	c.Write = func(frame []byte) {
		var m Message
		_ = json.Unmarshal(frame, &m)
		if m.Method == "" || m.ID == nil {
			ws.post(c, frame, m) // the order matters
			return
		}
		ws.running.Go(func() { ws.post(c, frame, m) })
	}
	c.Close = func() {
		cancel()
		ws.running.Wait()
	}
	s.T.Cleanup(c.Close)
	return c
}

func (ws *webSession) request(method string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ws.ctx, method, ws.S.Base+cmp.Or(ws.Path, "/mcp"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.Id != "" {
		req.Header.Set("Mcp-Session-Id", ws.Id)
		req.Header.Set("MCP-Protocol-Version", ws.Version)
	}
	if ws.S.token != "" {
		req.Header.Set("Authorization", "Bearer "+ws.S.token)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if ws.Stateless && method == http.MethodPost {
		StandardHeaders(req.Header, body)
	}
	return req, nil
}

// post sends one message. After a failure, the response is missing and the story contains
// the reason.
func (ws *webSession) post(c *Client, frame []byte, m Message) {
	req, err := ws.request(http.MethodPost, frame)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	ws.mu.Lock()
	ws.cancels[string(m.ID)] = cancel
	ws.mu.Unlock()
	req = req.WithContext(ctx)
	resp, err := ws.S.Http.Do(req)
	if err != nil {
		c.Update(func() { c.lost = append(c.lost, err.Error()) })
		return
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		ws.mu.Lock()
		ws.Id, ws.Version = id, Revision
		ws.mu.Unlock()
	}
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	ws.mu.Lock()
	ws.streams[string(m.ID)] = kind
	ws.mu.Unlock()
	if kind == "text/event-stream" {
		ws.events(c, resp.Body, string(m.ID))
		return
	}
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode >= 300 || err != nil {
		c.Update(func() { c.lost = append(c.lost, fmt.Sprintf("%s %v %.300s", resp.Status, err, body)) })
	}
	if err == nil && len(bytes.TrimSpace(body)) > 0 && kind == "application/json" {
		c.receiveVia(body, string(m.ID))
	}
}

func (ws *webSession) Abort(id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.cancels[id]()
}

func (ws *webSession) events(c *Client, body io.Reader, via string) {
	r := bufio.NewReaderSize(body, 64<<10)
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case len(line) == 0:
			if len(data) > 0 {
				c.receiveVia(data, via)
			}
			data = nil
		case bytes.HasPrefix(line, []byte("data:")):
			data = append(data, bytes.TrimPrefix(line[len("data:"):], []byte(" "))...)
		}
	}
}

// Listen opens the GET stream and returns when the server has accepted it.
func (c *Client) Listen() {
	c.T.Helper()
	req, err := c.Web.request(http.MethodGet, nil)
	require.NoError(c.T, err)
	req.Header.Set("Accept", "text/event-stream")
	open := *c.Web.S.Http
	open.Timeout = 0
	resp, err := open.Do(req)
	require.NoError(c.T, err)
	require.Equal(c.T, http.StatusOK, resp.StatusCode)
	c.Web.running.Go(func() {
		defer resp.Body.Close()
		c.Web.events(c, resp.Body, "GET")
	})
}

func (c *Client) ContentType(id string) string {
	c.Web.mu.Lock()
	defer c.Web.mu.Unlock()
	return c.Web.streams[id]
}

// Dial opens a connection for raw HTTP.
func (s *Web) Dial() net.Conn {
	s.T.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.Base, "http://"))
	require.NoError(s.T, err)
	s.T.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Head returns the head of a request with the given body length. A negative length means
// chunks.
func (s *Web) Head(length int, header map[string]string) string {
	var b strings.Builder
	b.WriteString("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n")
	if s.token != "" && header["Authorization"] == "" {
		b.WriteString("Authorization: Bearer " + s.token + "\r\n")
	}
	for k, v := range header {
		b.WriteString(k + ": " + v + "\r\n")
	}
	if length < 0 {
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	} else {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", length)
	}
	return b.String()
}

// Works checks that a new client is served at once.
func (s *Web) Works() {
	s.T.Helper()
	start := time.Now()
	require.Equal(s.T, "b:t:{}", s.Client(false).CallText("b_t", Obj{}))
	require.True(s.T, Racing() || time.Since(start) < 3*time.Second, "took %v", time.Since(start))
}

func (s *Web) Session() map[string]string {
	s.T.Helper()
	got := s.Do("POST", "/mcp", nil, InitBody)
	require.Equal(s.T, http.StatusOK, got.Status, got.Body)
	id := got.Header.Get("Mcp-Session-Id")
	require.Regexp(s.T, `^[\x21-\x7e]{16,}$`, id)
	h := map[string]string{"Mcp-Session-Id": id, "MCP-Protocol-Version": Revision}
	require.Equal(s.T, http.StatusAccepted, s.Do("POST", "/mcp", h, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Status)
	return h
}

// Upload sends a body of mib MiB, until the server stops reading, and returns the status.
func (s *Web) Upload(mib int, chunked bool, header map[string]string) int {
	s.T.Helper()
	conn := s.Dial()
	require.NoError(s.T, conn.SetDeadline(time.Now().Add(Patience)))
	length, part := mib<<20, bytes.Repeat([]byte("x"), 1<<20)
	if chunked {
		length, part = -1, fmt.Appendf(nil, "%x\r\n%s\r\n", len(part), part)
	}
	_, err := io.WriteString(conn, s.Head(length, header))
	require.NoError(s.T, err)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range mib {
			if _, err := conn.Write(part); err != nil {
				return // the response has the reason
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.T, err)
	_ = conn.Close()
	<-sent
	return resp.StatusCode
}

const PingBody = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
