//go:build e2e

package transparency

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Each request has an answer and nothing panics, for any messages of both sides.
func TestOddMessagesAreAnsweredInBothEras(t *testing.T) {
	e2e.OverEveryTransport(t, func(t *testing.T, w *e2e.World, connect func() *e2e.Client) {
		raw := func(s string) json.RawMessage { return json.RawMessage(s) }
		deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
		within := strings.Repeat(`{"a":`, 400) + "1" + strings.Repeat("}", 400) // gateway.limits.depth
		odd := []json.RawMessage{raw("null"), raw("5"), raw("[]"), raw("{}"), raw(`""`), raw(`"x"`), raw("true"), raw(`[null,{"a":1}]`), raw("1e400"), raw(deep), raw(within)}
		on := e2e.Obj{}
		tools := []e2e.Obj{}
		n := 0
		add := func(acts ...e2e.Obj) {
			name := fmt.Sprintf("t%d", n)
			n++
			tools = append(tools, e2e.Tool(name))
			on["tools/call "+name] = e2e.Actions(acts...)
		}
		for _, o := range odd {
			for _, m := range []string{"elicitation/create", "sampling/createMessage", "roots/list", "odd/method"} {
				add(e2e.Do("request", e2e.Obj{"method": m, "params": o}), e2e.Do("answers"))
			}
			for _, m := range []string{"notifications/progress", "notifications/message", "notifications/cancelled", "notifications/resources/updated", "notifications/elicitation/complete", "notifications/tasks/status", "x"} {
				add(e2e.Do("notify", e2e.Obj{"method": m, "params": o}), e2e.Do("text", e2e.Obj{"text": "ok"}))
				add(e2e.Do("notify", e2e.Obj{"method": m, "params": e2e.Obj{"_meta": o, "progressToken": o, "requestId": o, "uri": o, "level": o, "data": o, "elicitationId": o, "taskId": o}}), e2e.Do("text", e2e.Obj{"text": "ok"}))
			}
			add(e2e.Do("result", e2e.Obj{"result": o}))
			add(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": o, "content": o, "_meta": o, "structuredContent": o}}))
			add(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "input_required", "inputRequests": o, "requestState": o}}))
			add(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "input_required", "inputRequests": e2e.Obj{"k": o}, "requestState": "s"}}))
			add(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"resultType": "task", "taskId": o}}))
			add(e2e.Do("error", e2e.Obj{"error": o}))
			add(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32042, "message": "m", "data": e2e.Obj{"elicitations": o}}}))
			add(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32021, "message": "m", "data": e2e.Obj{"requiredCapabilities": o}}}))
			add(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": o, "message": o, "data": o}}))
		}
		for _, era := range []string{"", "modern"} {
			w.Backend("b"+era, e2e.Obj{"tools": tools, "on": on, "era": era, "resources": []e2e.Obj{e2e.Resource("x:1")}}, e2e.Obj{"timeout": "500ms"})
		}
		c := connect()
		c.Caps = e2e.Obj{"elicitation": e2e.Obj{"url": e2e.Obj{}, "form": e2e.Obj{}}, "sampling": e2e.Obj{}, "roots": e2e.Obj{}, "extensions": e2e.Obj{e2e.TasksExtension: e2e.Obj{}}}
		var ids []string
		for i := range n {
			for _, b := range []string{"b", "bmodern"} {
				ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": fmt.Sprintf("%s_t%d", b, i)}))
			}
			for _, id := range ids { // in order: each request waits for its answer
				c.End(id)
			}
			ids = nil
		}
		for _, o := range odd {
			for _, p := range []e2e.Obj{
				{"name": "b_t5", "requestState": o},
				{"name": "b_t5", "inputResponses": o},
				{"name": "bmodern_t5", "requestState": o, "inputResponses": o},
				{"name": "b_t5", "arguments": o},
				{"name": o},
				{"name": "b_t5", "task": o},
			} {
				ids = append(ids, c.Begin("tools/call", p))
			}
			for _, m := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
				ids = append(ids, c.Begin(m, e2e.Obj{"taskId": o}))
			}
			ids = append(ids, c.Begin("tools/list", e2e.Obj{"cursor": o}))
		}
		for _, id := range ids {
			c.End(id)
		}
		for _, p := range w.Programs {
			require.NotContains(t, p.Stderr.String(), "panic")
		}
		require.NotContains(t, w.DaemonLog(), "panic")
	})
}

// The effect of a line does not wait for the blank lines after it.
func TestC02_B17_BlankLinesHoldNothingUp(t *testing.T) {
	t.Parallel()
	for mode, end := range map[string]string{"ignore-cancel": "\n\n \r", "blank-lines": ""} { // of the client, of the server
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.FaultyServer("bad", mode, false)
			c := w.Standalone()
			c.WaitListed("tools", "bad_echo", true)
			for i := range 3 {
				id := strconv.Itoa(100 + i)
				c.Write([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"bad_echo"}}` + end))
				require.NotNil(t, c.End(id).Result, id)
			}
		})
	}
}

// The read loop of a server, which other clients share, passes progress on.
func TestC07_LongProgressTokensAreNotRepeated(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		x.Backend(w, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 3}), e2e.Do("text", e2e.Obj{"text": "over"}))}})
		h := x.Client(w, e2e.Obj{}, 0, nil)
		for size, want := range map[int]int{1000: 3, 1100: 0} {
			token := strings.Repeat("t", size)
			m := h.Call("tools/call", e2e.Obj{"name": "b_t", "_meta": e2e.Obj{"progressToken": token}})
			require.Nil(t, m.Error, m.Raw)
			got := 0
			for _, n := range h.NotesOf("notifications/progress") {
				if e2e.Str(n.Params, "progressToken") == token {
					got++
				}
			}
			require.Equal(t, want, got, "of %d bytes", size)
		}
	})
}

func TestC16_OddInitialize(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	for i, params := range []string{
		`{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`,
		`{"protocolVersion":"9999-99-99","capabilities":{"vendor":{"x":1}},"clientInfo":{"name":"x","version":"1"}}`,
		`{"protocolVersion":7}`, `{}`, `[]`,
	} {
		c := w.Socket()
		c.Write([]byte(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":` + params + `}`))
		m := c.End(`"init"`)
		if i < 2 {
			require.Nil(t, m.Error, m.Raw)
			require.Equal(t, e2e.Revision, e2e.Str(m.Result, "protocolVersion"))
		}
		require.NotNil(t, c.Request("ping", nil).Result)
		c.Close()
	}
}

func TestC15_RequestsBeforeInitialize(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Pipe("stdio", "--standalone")
	require.JSONEq(t, `{}`, string(c.Ok("ping", nil)))
	c.Request("tools/list", nil) // a result or an error
	c.Init()
	require.Equal(t, []string{"b_t"}, c.Names("tools"))
}
