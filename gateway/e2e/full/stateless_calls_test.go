//go:build faults

package full

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// oneConnection sends requests in order on one connection, by which Goblin recognizes its
// client. Go's own transport opens another one when its goroutines wait for the
// processor.
type oneConnection struct {
	mu   sync.Mutex
	conn net.Conn
	in   *bufio.Reader
}

func (o *oneConnection) RoundTrip(req *http.Request) (*http.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := req.Write(o.conn); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(o.in, req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, err
}

func TestCallsThatWaitForOneStatelessClientLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, name := range []string{"b", "c"} { // over HTTP the cause of each request is certain
		w.Remote(name, "/mcp", e2e.AskingServer("elicitation/create", e2e.Form), e2e.Obj{"timeout": "60s"})
	}
	s := w.Serve()
	connect := func() *e2e.Client {
		own := *s
		conn := s.Dial()
		own.Http = &http.Client{Transport: &oneConnection{conn: conn, in: bufio.NewReader(conn)}}
		c := own.Stateless()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
		return c
	}
	call := e2e.Obj{"name": "b_ask"}
	first := connect()
	state, keys := e2e.InputRequests(t, first.Request("tools/call", call))

	const limit, greedy = 1024, 8
	var all sync.WaitGroup
	oldest := make([]string, greedy)
	clients := make([]*e2e.Client, greedy)
	for i := range greedy {
		clients[i] = connect()
		all.Go(func() {
			for n := range limit/greedy + 20 {
				name := []string{"b_ask", "c_ask"}[n%2]
				got, _ := e2e.InputRequests(t, clients[i].Request("tools/call", e2e.Obj{"name": name}))
				if n == 0 {
					oldest[i] = got
				}
			}
		})
	}
	all.Wait()
	again := func(c *e2e.Client, state string) e2e.Message {
		return c.Request("tools/call", e2e.Obj{"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}})
	}
	done := again(first, state)
	require.Nil(t, done.Error, "%s", done.Raw)
	require.Contains(t, string(done.Result), "Alice")
	// The clients that used all the memory lost their oldest states: they start again.
	for i, c := range clients {
		require.Equal(t, "REQUEST_STATE_INVALID", e2e.ParseError(t, again(c, oldest[i])).Kind())
	}
	state, _ = e2e.InputRequests(t, clients[0].Request("tools/call", call))
	require.Nil(t, again(clients[0], state).Error)
}

func TestLargeCallsThatWaitForTheirClientsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = append(w.Env, "GOMEMLIMIT=32MiB") // 16 MiB of messages
	w.Remote("b", "/mcp", e2e.AskingServer("elicitation/create", e2e.Form))
	s := w.Serve()
	c := s.Stateless()
	c.Caps = e2e.Obj{"elicitation": e2e.Obj{}}
	var calls []e2e.Obj
	text := strings.Repeat("x", 512<<10)
	refused := 0
	for n := range 42 {
		call := e2e.Obj{"name": "b_ask", "arguments": e2e.Obj{"x": text}}
		if n%7 == 0 {
			call = e2e.Obj{"name": "b_ask"}
		}
		m := c.Request("tools/call", call)
		if e2e.Str(m.Result, "resultType") != "input_required" {
			require.NotZero(t, n%7, "small calls are not affected")
			refused++
			continue
		}
		state, keys := e2e.InputRequests(t, m)
		call["requestState"], call["inputResponses"] = state, e2e.Obj{keys["elicitation/create"]: e2e.Accepted}
		calls = append(calls, call)
	}
	require.GreaterOrEqual(t, refused, 36-32)
	require.Less(t, refused, 36, "entries within the limit are kept")
	for _, call := range calls {
		m := c.Request("tools/call", call)
		require.Nil(t, m.Error)
		require.Contains(t, string(m.Result), "Alice")
	}
}

func TestCallsHeldForClientsThatLeftTakeNoRoom(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Remote("b", "/mcp", e2e.AskingServer("elicitation/create", e2e.Form)) // over HTTP the cause of each request is certain
	s := w.Serve()
	call, caps := e2e.Obj{"name": "b_ask"}, e2e.Obj{"elicitation": e2e.Obj{}}
	for range 3 {
		c := w.Pipe("stdio").Stateless()
		c.Caps = caps
		var ids []string
		for range 256 { // as many as may be held for one client
			ids = append(ids, c.Begin("tools/call", call))
		}
		for _, id := range ids {
			e2e.InputRequests(t, c.End(id))
		}
		c.Close()
		c.Prog.Ends(e2e.Patience)
	}
	e2e.Eventually(t, "the end of their sessions", func() bool { return len(w.Status().Sessions) == 0 })
	// If the states of the closed sessions were kept, this client would lose its states
	// first: it has the most.
	c := s.Stateless()
	c.Caps = caps
	state, keys := e2e.InputRequests(t, c.Request("tools/call", call))
	for range 1024 - 3*256 + 10 {
		e2e.InputRequests(t, c.Request("tools/call", call))
	}
	done := c.Request("tools/call", e2e.Obj{"name": "b_ask", "requestState": state, "inputResponses": e2e.Obj{keys["elicitation/create"]: e2e.Accepted}})
	require.Nil(t, done.Error, "%s", done.Raw)
	require.Contains(t, string(done.Result), "Alice")
}
