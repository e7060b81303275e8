package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	crowd = 100 // calls at once
	each1 = 10  // notifications of a kind of each
)

// crowded is a server of n tools, each of which waits for all calls to
// be there before it does the rest.
func crowded(n int, then func(name string) []obj) obj {
	on, tools := obj{}, []obj{}
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		tools = append(tools, tool(name))
		on["tools/call "+name] = append(actions(do("wait", obj{"name": "all"})), then(name)...)
	}
	return obj{"tools": tools, "on": on}
}

// everyRoute runs a test over both transports and revisions on both sides.
func everyRoute(t *testing.T, test func(t *testing.T, r route)) {
	t.Parallel()
	either, eras := []string{"stdio", "http"}, []string{"legacy", "modern"}
	for _, front := range either {
		for _, client := range eras {
			for _, server := range eras {
				for _, back := range either {
					r := route{front: front, client: client, server: server, back: back}
					t.Run(r.String(), func(t *testing.T) {
						t.Parallel()
						test(t, r)
					})
				}
			}
		}
	}
}

// token is the progress token of a call: integers and the strings of the same
// digits.
func token(i int) string {
	if i%2 == 0 {
		return fmt.Sprint(i)
	}
	return fmt.Sprintf("%q", fmt.Sprint(i-1))
}

func TestNotificationsOfManyCallsArriveOnceAndInOrder(t *testing.T) {
	everyRoute(t, func(t *testing.T, r route) {
		r.start(newWorld(t), crowded(crowd, func(name string) []obj {
			return actions(
				do("progress", obj{"n": each1}),
				do("notify", obj{"method": "notifications/message", "n": each1, "params": obj{"level": "error", "data": name + " $n"}}),
			)
		}))
		c := r.through
		c.put("tools/list", "{}")
		var ids []string
		for i := range crowd {
			ids = append(ids, c.send("tools/call", fmt.Sprintf(`{"name":"b_t%d","_meta":{"progressToken":%s,"io.modelcontextprotocol/logLevel":"info"}}`, i, token(i))))
		}
		r.b.waitEvents("wait", "all", crowd)
		r.b.do(do("release", obj{"name": "all"}))
		progress, lines := map[string][]message{}, map[string][]message{}
		answers := map[string]message{}
		for _, id := range ids {
			answers[id] = c.end(id)
			require.Nil(t, answers[id].Error, answers[id].raw)
		}
		c.put("tools/list", "{}") // what is late has come
		for _, n := range c.notesOf("notifications/progress") {
			key := string(at(n.Params, "progressToken"))
			progress[key] = append(progress[key], n)
		}
		for _, n := range c.notesOf("notifications/message") {
			var name string
			_, err := fmt.Sscanf(str(n.Params, "data"), "%s", &name)
			require.NoError(t, err)
			lines[name] = append(lines[name], n)
		}
		require.Len(t, progress, crowd)
		for i, id := range ids {
			r.inOrder(t, progress[token(i)], answers[id], func(k int, params json.RawMessage) bool {
				return string(at(params, "progress")) == fmt.Sprint(k+1)
			})
			name := fmt.Sprintf("t%d", i)
			is := func(k int, params json.RawMessage) bool { return str(params, "data") == fmt.Sprint(name, " ", k) }
			switch {
			case r.back == "http" || r.front == "stdio":
				r.inOrder(t, lines[name], answers[id], is)
			case r.client == "legacy":
				// Which call a line belongs to is not on the wire of the server,
				// so that any stream of the session may carry it.
				requireOnce(t, lines[name])
				require.Len(t, lines[name], each1)
			default:
				// Nor whose it is: it is left out unless that is certain.
				requireOnce(t, lines[name])
				for _, n := range lines[name] {
					require.Equal(t, answers[id].via, n.via)
				}
			}
		}
	})
}

func requireOnce(t *testing.T, notes []message) {
	t.Helper()
	seen := map[string]bool{}
	for _, n := range notes {
		require.False(t, seen[string(n.Params)], "twice: %s", n.raw)
		seen[string(n.Params)] = true
	}
}

// inOrder checks the notifications of a call: all there, once, in the order in
// which they were sent, on the call's own stream and before its answer.
func (r route) inOrder(t *testing.T, notes []message, answer message, is func(k int, params json.RawMessage) bool) {
	t.Helper()
	require.Len(t, notes, each1, answer.raw)
	require.True(t, slices.IsSortedFunc(notes, func(a, b message) int { return a.seq - b.seq }))
	for k, n := range notes {
		require.True(t, is(k, n.Params), "number %d is %s", k, n.raw)
		require.Equal(t, answer.via, n.via)
		require.Less(t, n.seq, answer.seq)
	}
}

func TestCancelledCallsAmongManyAreNotAnsweredAndFreeTheirPlace(t *testing.T) {
	everyRoute(t, func(t *testing.T, r route) {
		w := newWorld(t)
		w.gateway["limits"] = obj{"in_flight": crowd * 4 / 3} // room for them; a place that is not given back is missed
		r.start(w, crowded(crowd, func(string) []obj { return nil }))
		c := r.through
		c.put("tools/list", "{}")
		for round := range 3 {
			var ids []string
			for i := range crowd {
				ids = append(ids, c.send("tools/call", fmt.Sprintf(`{"name":"b_t%d"}`, i)))
			}
			r.b.waitEvents("wait", "all", crowd*(round+1))
			if round == 2 {
				r.b.do(do("release", obj{"name": "all"}))
				for _, id := range ids {
					require.Nil(t, c.end(id).Error)
				}
				return
			}
			for _, id := range ids {
				r.cancel(id)
			}
			r.b.waitEvents("gone", "", crowd*(round+1))
			c.put("tools/list", "{}")
			c.mu.Lock()
			for _, id := range ids {
				require.Empty(t, c.replies[id])
			}
			c.mu.Unlock()
		}
	})
}

// cancel is how a client of that revision cancels over that transport.
func (r route) cancel(id string) {
	if r.front == "http" && r.client == "modern" {
		r.through.web.abort(id)
		return
	}
	r.through.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
}

func TestQuestionsOfCancelledCallsAreWithdrawn(t *testing.T) {
	t.Parallel()
	for _, back := range []string{"stdio", "http"} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			const n = 60 // a server may ask 64 questions at once
			w := newWorld(t)
			script := crowded(n, func(string) []obj { return actions(do("request", obj{"method": "elicitation/create"})) })
			start := map[string]func() *backend{
				"stdio": func() *backend { return w.backend("b", script) },
				"http":  func() *backend { return w.remote("b", "/mcp", script) },
			}
			b := start[back]()
			c := w.pipe("stdio", "--standalone")
			c.caps = obj{"elicitation": obj{}}
			c.init()
			c.names("tools")
			var ids []string
			for i := range n {
				ids = append(ids, c.begin("tools/call", obj{"name": fmt.Sprintf("b_t%d", i)}))
			}
			b.waitEvents("wait", "all", n)
			b.do(do("release", obj{"name": "all"}))
			c.asked(n)
			for _, id := range ids {
				c.notify("notifications/cancelled", obj{"requestId": json.RawMessage(id)})
			}
			open := map[string]bool{}
			for i := range n {
				open[string(c.asked(i+1).ID)] = true
			}
			require.Len(t, open, n)
			c.wait("the end of all questions", func() bool {
				for _, n := range c.notes {
					if n.Method == "notifications/cancelled" {
						delete(open, string(at(n.Params, "requestId")))
					}
				}
				return len(open) == 0
			})
			c.ok("ping", nil)
			for _, id := range ids {
				require.Empty(t, c.replies[id])
			}
		})
	}
}
