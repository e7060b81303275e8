//go:build e2e

package transparency

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const (
	crowd = 100 // calls at once
	each1 = 10  // notifications of each kind per call
)

// crowded returns a server of n tools. Each waits until all calls have arrived before it
// does the rest.
func crowded(n int, then func(name string) []e2e.Obj) e2e.Obj {
	on, tools := e2e.Obj{}, []e2e.Obj{}
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		tools = append(tools, e2e.Tool(name))
		on["tools/call "+name] = append(e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "all"})), then(name)...)
	}
	return e2e.Obj{"tools": tools, "on": on}
}

// token returns the progress token of a call: integers, and strings of the same digits.
func token(i int) string {
	if i%2 == 0 {
		return fmt.Sprint(i)
	}
	return fmt.Sprintf("%q", fmt.Sprint(i-1))
}

func TestNotificationsOfManyCallsArriveOnceAndInOrder(t *testing.T) {
	everyRoute(t, func(t *testing.T, r route) {
		r.start(e2e.NewWorld(t), crowded(crowd, func(name string) []e2e.Obj {
			return e2e.Actions(
				e2e.Do("progress", e2e.Obj{"n": each1}),
				e2e.Do("notify", e2e.Obj{"method": "notifications/message", "n": each1, "params": e2e.Obj{"level": "error", "data": name + " $n"}}),
			)
		}))
		c := r.through
		put(c, "tools/list", "{}")
		var ids []string
		for i := range crowd {
			ids = append(ids, send(c, "tools/call", fmt.Sprintf(`{"name":"b_t%d","_meta":{"progressToken":%s,"io.modelcontextprotocol/logLevel":"info"}}`, i, token(i))))
		}
		r.b.WaitEvents("wait", "all", crowd)
		r.b.Do(e2e.Do("release", e2e.Obj{"name": "all"}))
		progress, lines := map[string][]e2e.Message{}, map[string][]e2e.Message{}
		answers := map[string]e2e.Message{}
		for _, id := range ids {
			answers[id] = c.End(id)
			require.Nil(t, answers[id].Error, answers[id].Raw)
		}
		put(c, "tools/list", "{}") // late messages have arrived
		for _, n := range c.NotesOf("notifications/progress") {
			key := string(e2e.At(n.Params, "progressToken"))
			progress[key] = append(progress[key], n)
		}
		for _, n := range c.NotesOf("notifications/message") {
			var name string
			_, err := fmt.Sscanf(e2e.Str(n.Params, "data"), "%s", &name)
			require.NoError(t, err)
			lines[name] = append(lines[name], n)
		}
		require.Len(t, progress, crowd)
		for i, id := range ids {
			r.inOrder(t, progress[token(i)], answers[id], func(k int, params json.RawMessage) bool {
				return string(e2e.At(params, "progress")) == fmt.Sprint(k+1)
			})
			name := fmt.Sprintf("t%d", i)
			is := func(k int, params json.RawMessage) bool { return e2e.Str(params, "data") == fmt.Sprint(name, " ", k) }
			switch {
			case r.back == "http" || r.front == "stdio":
				r.inOrder(t, lines[name], answers[id], is)
			case r.client == "legacy":
				// The server doesn't name the call of a line, so any stream of the
				// session may carry it.
				requireOnce(t, lines[name])
				require.Len(t, lines[name], each1)
			default:
				// The line's owner isn't named either: it is dropped unless the owner is
				// certain.
				requireOnce(t, lines[name])
				for _, n := range lines[name] {
					require.Equal(t, answers[id].Via, n.Via)
				}
			}
		}
	})
}

func requireOnce(t *testing.T, notes []e2e.Message) {
	t.Helper()
	seen := map[string]bool{}
	for _, n := range notes {
		require.False(t, seen[string(n.Params)], "twice: %s", n.Raw)
		seen[string(n.Params)] = true
	}
}

// inOrder checks that all notifications of a call arrived once, in order. They must be on
// the call's own stream and precede its answer.
func (r route) inOrder(t *testing.T, notes []e2e.Message, answer e2e.Message, is func(k int, params json.RawMessage) bool) {
	t.Helper()
	require.Len(t, notes, each1, answer.Raw)
	require.True(t, slices.IsSortedFunc(notes, func(a, b e2e.Message) int { return a.Seq - b.Seq }))
	for k, n := range notes {
		require.True(t, is(k, n.Params), "number %d is %s", k, n.Raw)
		require.Equal(t, answer.Via, n.Via)
		require.Less(t, n.Seq, answer.Seq)
	}
}
