package downstream_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// site is an endpoint and its client.
type site struct {
	t      testing.TB
	h      *script
	http   *downstream.HTTP
	url    string
	client *http.Client
}

func newSite(t testing.TB, o downstream.HTTPOptions) *site {
	h := newScript()
	if o.Handler == nil {
		o.Handler = h
	}
	if o.Drain == 0 {
		o.Drain = time.Millisecond
	}
	e := downstream.NewHTTP(o)
	srv := httptest.NewServer(e.Handler())
	t.Cleanup(func() {
		e.Close()
		srv.Close()
	})
	return &site{t: t, h: h, http: e, url: srv.URL, client: srv.Client()}
}

// do sends a request with valid headers, changed by pairs of header and value. The value
// "" removes a header.
func (c *site) do(method, session, body string, headers ...string) *http.Response {
	c.t.Helper()
	return c.doContext(c.t.Context(), method, session, body, headers...)
}

func (c *site) doContext(ctx context.Context, method, session, body string, headers ...string) *http.Response {
	c.t.Helper()
	res, err := c.try(ctx, method, session, body, headers...)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (c *site) try(ctx context.Context, method, session, body string, headers ...string) (*http.Response, error) {
	path := "/mcp"
	if verb, p, ok := strings.Cut(method, " "); ok {
		method, path = verb, p
	}
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, in)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			req.Host = headers[i+1]
		case headers[i+1] == "":
			req.Header.Del(headers[i])
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	return c.client.Do(req)
}

func body(t testing.TB, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return strings.TrimSuffix(string(b), "\n")
}

func (c *site) open(headers ...string) string {
	c.t.Helper()
	res := c.do("POST", "", initialize, headers...)
	require.Equal(c.t, 200, res.StatusCode, body(c.t, res))
	io.Copy(io.Discard, res.Body)
	id := res.Header.Get("Mcp-Session-Id")
	require.Regexp(c.t, `^[!-~]{22,}$`, id)
	return id
}

// events reads an event stream.
type events struct {
	t  testing.TB
	in *bufio.Reader
}

func (c *site) stream(res *http.Response) *events {
	c.t.Helper()
	require.Equal(c.t, 200, res.StatusCode)
	require.Equal(c.t, "text/event-stream", res.Header.Get("Content-Type"))
	require.Equal(c.t, "no-cache", res.Header.Get("Cache-Control"))
	require.Equal(c.t, "no", res.Header.Get("X-Accel-Buffering"))
	return &events{c.t, bufio.NewReader(res.Body)}
}

// next returns the data of the next event. ok is false at the end of the stream.
func (e *events) next() (data string, ok bool) {
	e.t.Helper()
	for {
		line, err := e.in.ReadString('\n')
		if err == io.EOF {
			return "", false
		}
		require.NoError(e.t, err)
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "data: "):
			data = strings.TrimPrefix(line, "data: ")
		case line == "" && data != "":
			return data, true
		}
	}
}

func (e *events) must() string {
	e.t.Helper()
	data, ok := e.next()
	require.True(e.t, ok, "the stream is closed")
	return data
}

func (c *site) get(session string) *events {
	c.t.Helper()
	return c.stream(c.do("GET", session, ""))
}

func TestHTTPAnswersWithJSONOfKnownLength(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	res := c.do("POST", id, request("9007199254740993", "echo", "{\n \"a\": \r\n1.0\n}"), "Mcp-Protocol-Version", "2025-11-25")
	require.Equal(t, 200, res.StatusCode)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.Positive(t, res.ContentLength)
	require.Equal(t, `{"jsonrpc":"2.0","id":9007199254740993,"result":{  "a":   1.0 }}`, body(t, res), "unchanged, but on one line")
}

func TestHTTPMessagesSpreadOverLinesArePassedOnAsOne(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	params := make(chan string, 1)
	c.h.handle = func(x *downstream.Request) {
		params <- string(x.Params())
		x.Reply([]byte(`{}`))
	}
	c.do("POST", c.open(), "{\n"+`"jsonrpc":"2.0",`+"\r\n"+`"id":1,"method":"any","params":{`+"\n"+`"a":"\n"}}`+"\n")
	require.Equal(t, `{ "a":"\n"}`, <-params)
}

func TestHTTPRefusesWhatIsNoMessage(t *testing.T) {
	t.Parallel()
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Limits: downstream.Limits{Frame: 1 << 20}}})
	id := c.open()
	ping := request("1", "echo", "")
	cases := []struct {
		name    string
		status  int
		body    string
		headers []string
		want    string
	}{
		{"no JSON", 400, `{nonsense`, nil, `"id":null,"error":{"code":-32700`},
		{"broken after the id", 400, `{"jsonrpc":"2.0","id":7,"params":[}`, nil, `"id":7,"error":{"code":-32700`},
		{"batch", 400, `[` + ping + `]`, nil, `"error":{"code":-32600`},
		{"no version", 400, `{"id":7,"method":"echo"}`, nil, `"id":7,"error":{"code":-32600`},
		{"empty", 400, ` `, nil, `-32700`},
		{"two messages", 400, ping + ping, nil, `-32700`},
		{"text", 415, ping, []string{"Content-Type", "text/plain"}, `-32600`},
		{"form", 415, ping, []string{"Content-Type", "application/x-www-form-urlencoded"}, `-32600`},
		{"no content type", 415, ping, []string{"Content-Type", ""}, `-32600`},
		{"compressed", 415, ping, []string{"Content-Encoding", "gzip"}, `-32600`},
		{"charset", 200, ping, []string{"Content-Type", "application/json; charset=utf-8"}, `"result":{}`},
		{"accepts HTML only", 406, ping, []string{"Accept", "text/html"}, `-32600`},
		{"accepts neither", 406, ping, []string{"Accept", "application/json;q=0, text/event-stream; q=0.0"}, `-32600`},
		{"accepts anything", 200, ping, []string{"Accept", "*/*"}, `"result":{}`},
		{"no accept", 200, ping, []string{"Accept", ""}, `"result":{}`},
		{"revision of dreams", 400, ping, []string{"Mcp-Protocol-Version", "1999-01-01"}, `-32600`},
		{"no revision", 400, ping, []string{"Mcp-Protocol-Version", "nonsense"}, `-32600`},
		{"old revision", 200, ping, []string{"Mcp-Protocol-Version", "2024-11-05"}, `"result":{}`},
		{"no session", 400, ping, []string{"Mcp-Session-Id", ""}, `"id":1,"error":{"code":-32600`},
		{"unknown session", 404, ping, []string{"Mcp-Session-Id", "mcp-session-3b241101-e2bb-4255-8caf-4136c566a962"}, `-32600`},
		{"too large", 413, request("1", "echo", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), nil, `limits.frame`},
		{"initialize without an id", 400, `{"jsonrpc":"2.0","method":"initialize"}`, []string{"Mcp-Session-Id", ""}, `-32600`},
		{"initialize with an id of the client's making", 404, initialize, []string{"Mcp-Session-Id", "mine"}, `-32600`},
		{"answer without a session", 400, `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{"Mcp-Session-Id", ""}, `-32600`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			res := c.do("POST", id, tc.body, tc.headers...)
			text := body(t, res)
			require.Equal(t, tc.status, res.StatusCode, text)
			require.Contains(t, text, tc.want)
			require.Empty(t, res.Header.Get("Mcp-Session-Id"))
			decode(t, text)
		})
	}
	require.Equal(t, 1, c.http.Sessions())
	t.Run("too large, of unknown length", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", c.url+"/mcp", io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<20))))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Mcp-Session-Id", id)
		res, err := c.client.Do(req)
		require.NoError(t, err)
		defer res.Body.Close()
		require.Equal(t, 413, res.StatusCode)
	})
}

func TestHTTPVerbsAndPaths(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	c := newSite(t, downstream.HTTPOptions{AuthHandlers: map[string]http.Handler{"/metrics": hello}, PublicHandlers: map[string]http.Handler{"/healthz": hello}})
	for _, method := range []string{"PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "FOO"} {
		for _, path := range []string{"/mcp", "/mcp/"} {
			res := c.do(method+" "+path, "", "")
			require.Equal(t, 405, res.StatusCode, method)
			require.Equal(t, "GET, POST, DELETE", res.Header.Get("Allow"))
		}
	}
	for _, path := range []string{"/", "/MCP", "/mcp/x", "//mcp", "/metrics/", "/sse"} {
		res := c.do("GET "+path, "", "")
		require.Equal(t, 404, res.StatusCode, path)
		require.Contains(t, body(t, res), "/mcp")
	}
	require.Equal(t, "hello", body(t, c.do("GET /metrics", "", "")))
	require.Equal(t, "hello", body(t, c.do("GET /healthz", "", "")))
}

func TestHTTPNotificationsAndAnswersAreAccepted(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	s := <-c.h.opened
	require.Equal(t, "http", s.Transport())
	require.False(t, s.Ready())
	for _, message := range []string{
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","method":"n","params":{"a":1}}`,
		`{"jsonrpc":"2.0","id":99,"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`,
	} {
		res := c.do("POST", id, message)
		require.Equal(t, 202, res.StatusCode)
		require.Empty(t, body(t, res))
	}
	require.True(t, s.Ready())
	require.Equal(t, []string{`n{"a":1}`}, c.h.noted())
}

func TestHTTPAnswerBecomesAnEventStreamWhenSomethingGoesFirst(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	for range 20 {
		in := c.stream(c.do("POST", id, request("1", "progress", `{"n":50}`)))
		for i := range 50 {
			require.Equal(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":%d}}`, i), in.must())
		}
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, in.must())
		_, ok := in.next()
		require.False(t, ok, "the answer closes the stream")
	}
}

func TestHTTPProgressGoesToItsOwnRequest(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	get := c.get(id)
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			res, err := c.try(t.Context(), "POST", id, request(number(n), "progress", `{"n":100}`))
			if err != nil {
				t.Error(err)
				return
			}
			defer res.Body.Close()
			text, err := io.ReadAll(res.Body)
			if err != nil || strings.Count(string(text), fmt.Sprintf(`"progressToken":%d,`, n)) != 100 || strings.Count(string(text), "data: ") != 101 {
				t.Errorf("%d got %v %s", n, err, text)
			}
		})
	}
	all.Wait()
	s := <-c.h.opened
	s.Notify("last", nil)
	require.Equal(t, `{"jsonrpc":"2.0","method":"last"}`, get.must(), "nothing else came here")
}

func TestHTTPClientsThatTakeOneKindOfAnswer(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	t.Run("events only", func(t *testing.T) {
		res := c.do("POST", "", initialize, "Accept", "text/event-stream")
		id := res.Header.Get("Mcp-Session-Id")
		require.NotEmpty(t, id)
		in := c.stream(res)
		require.Contains(t, in.must(), `"id":"init"`)
		in = c.stream(c.do("POST", id, request("1", "echo", ""), "Accept", "text/event-stream"))
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, in.must())
		_, ok := in.next()
		require.False(t, ok)
	})
	t.Run("JSON only", func(t *testing.T) {
		<-c.h.opened
		id := c.open()
		<-c.h.opened
		res := c.do("POST", id, request("1", "progress", `{"n":3}`), "Accept", "application/json")
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, body(t, res))
		get := c.get(id)
		res = c.do("POST", id, request("2", "progress", `{"n":1}`), "Accept", "application/json")
		require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{}}`, body(t, res))
		require.Contains(t, get.must(), `"progressToken":2`)

		// A request from the handler reaches the client, too.
		answered := make(chan string, 1)
		go func() {
			res, err := c.try(t.Context(), "POST", id, request("3", "ask", ""), "Accept", "application/json")
			if err != nil {
				answered <- err.Error()
				return
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			answered <- strings.TrimSpace(string(b))
		}()
		ask := decode(t, get.must())
		require.Equal(t, "elicitation/create", ask.Method)
		c.do("POST", id, `{"jsonrpc":"2.0","id":`+string(ask.ID)+`,"result":{"yes":1}}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":3,"result":{"yes":1}}`, <-answered)
	})
}

func TestHTTPAsksOnTheStreamOfTheRequest(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	in := c.stream(c.do("POST", id, request("1", "ask", "")))
	ask := decode(t, in.must())
	require.Equal(t, "elicitation/create", ask.Method)
	res := c.do("POST", id, `{"jsonrpc":"2.0","id":`+string(ask.ID)+`,"result":{"yes":1}}`)
	require.Equal(t, 202, res.StatusCode)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"yes":1}}`, in.must())

	// An answer from another session is refused.
	in = c.stream(c.do("POST", id, request("2", "ask", "")))
	ask = decode(t, in.must())
	other := c.open()
	c.do("POST", other, `{"jsonrpc":"2.0","id":`+string(ask.ID)+`,"result":{"yes":"stranger"}}`)
	c.do("POST", id, `{"jsonrpc":"2.0","id":`+string(ask.ID)+`,"result":{"yes":2}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":2,"result":{"yes":2}}`, in.must())
}

func TestHTTPACancelledRequestEndsWithoutAnAnswer(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bored"}}`

	ended := make(chan *http.Response, 1)
	go func() {
		res, err := c.try(t.Context(), "POST", id, request("1", "block", ""))
		if err != nil {
			t.Error(err)
		}
		ended <- res
	}()
	<-c.h.begun
	require.Equal(t, 202, c.do("POST", id, cancel).StatusCode)
	res := <-ended
	defer res.Body.Close()
	require.Equal(t, 202, res.StatusCode)
	require.Empty(t, body(t, res))
	require.ErrorIs(t, <-c.h.causes, downstream.ErrCancelled)

	in := c.stream(c.do("POST", id, request("1", "block", ""), "Accept", "text/event-stream"))
	<-c.h.begun
	c.do("POST", id, cancel)
	_, ok := in.next()
	require.False(t, ok)
	require.ErrorIs(t, <-c.h.causes, downstream.ErrCancelled)
}

func TestHTTPHangingUpIsNoCancellation(t *testing.T) {
	for _, accept := range []string{"application/json, text/event-stream", "text/event-stream"} {
		release, goingOn := make(chan struct{}), make(chan *downstream.Request, 1)
		finished := make(chan error, 1)
		c := newSite(t, downstream.HTTPOptions{})
		c.h.handle = func(x *downstream.Request) {
			if x.Method() != "slow" {
				x.Reply([]byte(`{}`))
				return
			}
			goingOn <- x
			<-release
			x.Notify("", "n", nil)
			finished <- x.Context().Err()
			x.Reply([]byte(`{}`))
		}
		id := c.open()
		ctx, hangUp := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if res, err := c.try(ctx, "POST", id, request("1", "slow", ""), "Accept", accept); err == nil {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
		}()
		<-goingOn
		hangUp()
		<-gone
		// Its id is still in use.
		require.Contains(t, body(t, c.do("POST", id, request("1", "echo", ""))), "-32600")
		close(release)
		require.NoError(t, <-finished)
		require.Eventually(t, func() bool {
			return strings.Contains(body(t, c.do("POST", id, request("1", "echo", ""))), `"result"`)
		}, 30*time.Second, time.Millisecond)
	}
}

func TestHTTPRefusedInitializeMakesNoSession(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	res := c.do("POST", "", request("1", "initialize", `{"refuse":1}`))
	require.Equal(t, 200, res.StatusCode)
	require.Contains(t, body(t, res), `"refused"`)
	require.Empty(t, res.Header.Get("Mcp-Session-Id"))
	require.Same(t, <-c.h.opened, <-c.h.closed)
	require.Zero(t, c.http.Sessions())
}

func TestHTTPMakesRoomForNewSessions(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Limits: downstream.Limits{Sessions: 3}}})
	busy, idle, streaming := c.open(), c.open(), c.open()
	go func() {
		if res, err := c.try(t.Context(), "POST", busy, request("1", "block", "")); err == nil {
			res.Body.Close()
		}
	}()
	<-c.h.begun
	c.get(streaming)
	fresh := c.open()
	require.Equal(t, 404, c.do("POST", idle, request("2", "echo", "")).StatusCode, "the idle one was closed")
	for _, id := range []string{busy, streaming, fresh} {
		require.Equal(t, 200, c.do("POST", id, request("2", "echo", "")).StatusCode)
	}
	c.get(fresh)
	res := c.do("POST", "", initialize)
	require.Equal(t, 503, res.StatusCode, "all are in use")
	require.Contains(t, body(t, res), `"id":"init"`)
	require.NotEmpty(t, res.Header.Get("Retry-After"))
	require.Equal(t, 204, c.do("DELETE", streaming, "").StatusCode)
	c.open()
}

func TestHTTPClientsThatConnectAtTheSameTimeKeepTheirSessions(t *testing.T) {
	const places = 128
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Limits: downstream.Limits{Sessions: places}}})
	for range places { // clients without a DELETE
		require.Equal(t, 200, c.do("POST", c.open(), request("1", "echo", "")).StatusCode)
	}
	one, two := c.open(), c.open()
	for _, id := range []string{one, two} {
		require.Equal(t, 200, c.do("POST", id, request("1", "echo", "")).StatusCode)
	}
	require.Equal(t, places, c.http.Sessions())
}

func TestHTTPSessionsWithEqualIdsDoNotMix(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	var all sync.WaitGroup
	known := map[string]bool{}
	for range 20 {
		id := c.open()
		own := body(t, c.do("POST", id, request("0", "whoami", "")))
		require.False(t, known[own], "each opens another session")
		known[own] = true
		require.NotContains(t, own, id, "the session ID is not the name in logs")
		all.Go(func() {
			for i := range 50 {
				res, err := c.try(t.Context(), "POST", id, request(number(i), "whoami", ""))
				if err != nil {
					t.Error(err)
					return
				}
				text, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if want := strings.Replace(own, `"id":0`, `"id":`+number(i), 1); strings.TrimSpace(string(text)) != strings.TrimSpace(want) {
					t.Errorf("another session's answer: %s", text)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestHTTPEndsWithoutLosingAnswers(t *testing.T) {
	release := make(chan struct{})
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Drain: time.Hour}})
	c.h.handle = func(x *downstream.Request) {
		c.h.begun <- x
		<-release
		x.Reply([]byte(`{"done":true}`))
	}
	id := c.open()
	s := <-c.h.opened
	get := c.get(id)
	answer := make(chan string, 1)
	go func() {
		res, err := c.try(t.Context(), "POST", id, request("1", "any", ""))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		answer <- string(b)
	}()
	<-c.h.begun
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		c.http.Close()
	}()
	require.Eventually(t, func() bool {
		return c.do("POST", "", initialize).StatusCode == 503
	}, 30*time.Second, time.Millisecond)
	require.NoError(t, s.Context().Err())
	close(release)
	require.Contains(t, <-answer, `{"done":true}`)
	<-closed
	require.Same(t, s, <-c.h.closed)
	_, ok := get.next()
	require.False(t, ok)
	require.Zero(t, c.http.Sessions())
	require.Equal(t, 404, c.do("POST", id, request("1", "echo", "")).StatusCode)
}

func TestHTTPLargeAnswersArriveWhole(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	const n = 2 << 20
	for _, accept := range []string{"application/json", "text/event-stream"} {
		res := c.do("POST", id, request("1", "big", `{"n":`+number(n)+`}`), "Accept", accept)
		text := body(t, res)
		require.Equal(t, n, strings.Count(text, "x")-strings.Count(text[:100], "xt"), accept)
	}
}
