package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCallsThatWaitForOneStatelessClientLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"b", "c"} { // over HTTP the cause of each question is certain
		w.remote(name, "/mcp", asking("elicitation/create", form), obj{"timeout": "60s"})
	}
	s := w.serve()
	connect := func() *client {
		own := *s
		own.http = newHTTP(t)
		own.http.Transport.(*http.Transport).MaxConnsPerHost = 1
		c := own.rawClient().stateless()
		c.web.stateless, c.caps = true, obj{"elicitation": obj{}}
		return c
	}
	call := obj{"name": "b_ask"}
	first := connect()
	state, keys := demanded(t, first.request("tools/call", call))

	const limit, greedy = 1024, 8
	var all sync.WaitGroup
	oldest := make([]string, greedy)
	clients := make([]*client, greedy)
	for i := range greedy {
		clients[i] = connect()
		all.Go(func() {
			for n := range limit/greedy + 20 {
				name := []string{"b_ask", "c_ask"}[n%2]
				got, _ := demanded(t, clients[i].request("tools/call", obj{"name": name}))
				if n == 0 {
					oldest[i] = got
				}
			}
		})
	}
	all.Wait()
	again := func(c *client, state string) message {
		return c.request("tools/call", obj{"name": "b_ask", "requestState": state, "inputResponses": obj{keys["elicitation/create"]: accepted}})
	}
	done := again(first, state)
	require.Nil(t, done.Error, "%s", done.raw)
	require.Contains(t, string(done.Result), "Alice")
	// Those who took all the room made room, too: they begin anew.
	for i, c := range clients {
		require.Equal(t, "REQUEST_STATE_INVALID", parseError(t, again(c, oldest[i])).kind())
	}
	state, _ = demanded(t, clients[0].request("tools/call", call))
	require.Nil(t, again(clients[0], state).Error)
}

func TestLargeCallsThatWaitForTheirClientsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "GOMEMLIMIT=32MiB") // 16 MiB of messages
	w.remote("b", "/mcp", asking("elicitation/create", form))
	s := w.serve()
	c := s.rawClient().stateless()
	c.web.stateless, c.caps = true, obj{"elicitation": obj{}}
	var calls []obj
	text := strings.Repeat("x", 3<<20)
	for n := range 14 {
		call := obj{"name": "b_ask", "arguments": obj{"x": text}}
		if n%7 == 0 {
			call = obj{"name": "b_ask"}
		}
		state, keys := demanded(t, c.request("tools/call", call))
		call["requestState"], call["inputResponses"] = state, obj{keys["elicitation/create"]: accepted}
		calls = append(calls, call)
	}
	void := 0
	for n, call := range calls {
		m := c.request("tools/call", call)
		if m.Error == nil {
			require.Contains(t, string(m.Result), "Alice")
			continue
		}
		require.NotZero(t, n%7, "small calls notice nothing")
		require.Equal(t, "REQUEST_STATE_INVALID", parseError(t, m).kind())
		void++
	}
	require.GreaterOrEqual(t, void, 12-16/3)
	require.Less(t, void, 12, "what fits is kept")
}
