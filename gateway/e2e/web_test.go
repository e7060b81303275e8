package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// web is a running goblin serve.
type web struct {
	*program
	w     *world
	base  string // http://127.0.0.1:PORT
	token string
	http  *http.Client
}

var serving = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/mcp`)

// serve starts goblin serve on a port of the kernel's choice and waits until it
// has said where it serves.
func (w *world) serve(args ...string) *web {
	w.t.Helper()
	s := &web{w: w, http: newHTTP(w.t)}
	s.token, _ = w.gateway["auth_token"].(string)
	s.program = w.start(nil, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	go func() {
		<-s.exited
		s.stderr.update(func() {}) // wakes the wait below
	}()
	require.True(w.t, s.stderr.holds(patience, func() bool {
		select {
		case <-s.exited:
			return true
		default:
		}
		if m := serving.FindSubmatch(s.stderr.text.Bytes()); m != nil {
			s.base = string(m[1])
		}
		return s.base != ""
	}), "goblin serve to serve")
	require.NotEmpty(w.t, s.base, "goblin serve ended: %s", s.stderr.String())
	return s
}

func newHTTP(t *testing.T) *http.Client {
	c := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// answer is a whole HTTP response.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends one HTTP request. A header with an empty value is left out; "Host"
// sets the host.
func (s *web) do(method, path string, header map[string]string, body string) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	require.NoError(s.t, err)
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
	resp, err := s.http.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

const initBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// metric is the value of one series of /metrics, for example
// `mcp_server_up{server_id="a"}`, "" if there is none.
func (s *web) metric(series string) string {
	s.t.Helper()
	got := s.do("GET", "/metrics", nil, "")
	require.Equal(s.t, http.StatusOK, got.status)
	for line := range strings.Lines(got.body) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			return value
		}
	}
	return ""
}

// webSession is the HTTP side of a client.
type webSession struct {
	t         *testing.T
	s         *web
	ctx       context.Context
	mu        sync.Mutex
	id        string
	version   string
	stateless bool // of 2026-07-28
	running   sync.WaitGroup
	streams   map[string]string             // content type of the answer, by raw id
	cancels   map[string]context.CancelFunc // of requests, by raw id
}

// client is an initialised HTTP client; with a stream it also listens by GET.
func (s *web) client(stream bool, caps ...obj) *client {
	s.t.Helper()
	c := s.rawClient()
	if len(caps) > 0 {
		c.caps = caps[0]
	}
	c.init()
	if stream {
		c.listen()
	}
	return c
}

func (s *web) rawClient() *client {
	ctx, cancel := context.WithCancel(context.Background())
	c := newClient(s.t)
	ws := &webSession{t: s.t, s: s, ctx: ctx, streams: map[string]string{}, cancels: map[string]context.CancelFunc{}}
	c.web = ws
	c.write = func(frame []byte) {
		var m message
		_ = json.Unmarshal(frame, &m)
		if m.Method == "" || m.ID == nil {
			ws.post(c, frame, m) // order matters to the server
			return
		}
		ws.running.Go(func() { ws.post(c, frame, m) })
	}
	c.close = func() {
		cancel()
		ws.running.Wait()
	}
	s.t.Cleanup(c.close)
	return c
}

func (ws *webSession) request(method string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ws.ctx, method, ws.s.base+"/mcp", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.id != "" {
		req.Header.Set("Mcp-Session-Id", ws.id)
		req.Header.Set("MCP-Protocol-Version", ws.version)
	}
	if ws.s.token != "" {
		req.Header.Set("Authorization", "Bearer "+ws.s.token)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if ws.stateless && method == http.MethodPost {
		standardHeaders(req.Header, body)
	}
	return req, nil
}

// post sends one message; failures show as an answer that never comes, and in
// the story.
func (ws *webSession) post(c *client, frame []byte, m message) {
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
	resp, err := ws.s.http.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		ws.mu.Lock()
		ws.id, ws.version = id, revision
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
	if err == nil && len(bytes.TrimSpace(body)) > 0 && kind == "application/json" {
		c.receiveVia(body, string(m.ID))
	}
}

// abort closes the stream of a request.
func (ws *webSession) abort(id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.cancels[id]()
}

func (ws *webSession) events(c *client, body io.Reader, via string) {
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

// listen opens the GET stream and returns once the server has accepted it.
func (c *client) listen() {
	c.t.Helper()
	req, err := c.web.request(http.MethodGet, nil)
	require.NoError(c.t, err)
	req.Header.Set("Accept", "text/event-stream")
	open := *c.web.s.http
	open.Timeout = 0
	resp, err := open.Do(req)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, resp.StatusCode)
	c.web.running.Go(func() {
		defer resp.Body.Close()
		c.web.events(c, resp.Body, "GET")
	})
}

// contentType is that of the response to a request that was answered.
func (c *client) contentType(id string) string {
	c.web.mu.Lock()
	defer c.web.mu.Unlock()
	return c.web.streams[id]
}
