//go:build e2e

package calls

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Most clients send no progress token: their servers get one nevertheless, as progress extends
// the time.
func TestCallsHaveATokenForProgressWhoeverAsked(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		steps := e2e.Actions(e2e.Do("progress", e2e.Obj{"n": 6}))
		b := x.Backend(w, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("silent")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
			"on": e2e.Obj{"tools/call t": steps, "prompts/get": steps, "resources/read": steps},
		})
		c := x.Client(w, e2e.Obj{}, 0, nil).Client
		all := []string{
			c.Begin("prompts/get", e2e.Obj{"name": "b/p"}),
			c.Begin("resources/read", e2e.Obj{"uri": "x:1", "_meta": e2e.Obj{}}),
			c.Begin("tools/call", e2e.Obj{"name": "b_silent", "_meta": e2e.Obj{"k": 1}}),
			c.Begin("tools/call", e2e.Obj{"name": "b_t"}),
		}
		for _, id := range all {
			m := c.End(id)
			require.False(t, m.Failed(), m.Raw)
		}
		require.Empty(t, c.NotesOf("notifications/progress"), "it is relayed to who asked")
		tokens := map[string]bool{}
		for _, method := range []string{"prompts/get", "resources/read", "tools/call"} {
			for _, told := range b.Received(method) {
				token := e2e.At(told.Msg, "params", "_meta", "progressToken")
				require.NotNil(t, token, "%s", told.Msg)
				tokens[string(token)] = true
				if e2e.Str(told.Msg, "params", "name") == "silent" {
					require.Equal(t, "1", string(e2e.At(told.Msg, "params", "_meta", "k")))
				}
			}
		}
		require.Len(t, tokens, len(all), "each has its own")

		id := c.Begin("tools/call", e2e.Obj{"name": "b_t", "_meta": e2e.Obj{"progressToken": "mine"}})
		m := c.End(id)
		require.False(t, m.Failed(), m.Raw)
		for _, n := range c.NotesOf("notifications/progress") {
			require.Equal(t, `"mine"`, string(e2e.At(n.Params, "progressToken")))
		}
		require.Len(t, c.NotesOf("notifications/progress"), 6)
	})
}

// Some servers' SDKs take a tenth longer for a call with a token.
func TestWhatIsAlwaysQuickGetsATokenOnlyIfItsClientHasAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	names := strings.Split("abcdefghijklmnopqrstuvwxyz", "") // until one that no busy machine delays
	tools := make([]e2e.Obj, len(names))
	for i, name := range names {
		tools[i] = e2e.Tool(name)
	}
	b := w.Backend("b", e2e.Obj{"tools": tools}, e2e.Obj{})
	c := w.Standalone()
	for i, name := range names {
		before := len(b.Received("tools/call"))
		for range 20 {
			c.CallText("b_"+name, e2e.Obj{})
		}
		c.Request("tools/call", e2e.Obj{"name": "b_" + name, "_meta": e2e.Obj{"progressToken": "mine"}})
		calls := b.Received("tools/call")[before:]
		require.Len(t, calls, 21)
		require.NotNil(t, e2e.At(calls[20].Msg, "params", "_meta", "progressToken"))
		if i == 0 { // another may be taken for one that came before
			require.NotNil(t, e2e.At(calls[0].Msg, "params", "_meta", "progressToken"))
			require.NotNil(t, e2e.At(calls[15].Msg, "params", "_meta", "progressToken"))
		}
		if e2e.At(calls[19].Msg, "params", "_meta") == nil {
			return
		}
	}
	t.Fatal("each call has a token")
}

func TestCallsOfToolsMayTakeAnyTime(t *testing.T) {
	t.Parallel()
	e2e.WithinALimit(t, func(limit time.Duration) string {
		w := e2e.NewWorld(t)
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 3 * limit.Milliseconds() / 2}))}},
			e2e.Obj{"timeout": limit.String(), "call_timeout": 0})
		m := w.Standalone().Request("tools/call", e2e.Obj{"name": "b_t", "arguments": e2e.Obj{}})
		if m.Failed() {
			return string(m.Raw)
		}
		require.Equal(t, "b:t:{}", e2e.Str(m.Result, "content", 0, "text"))
		return ""
	})
}

// One crash is enough for a model to give a tool up.
func TestACallThatComesWhileAServerRestartsWaits(t *testing.T) {
	t.Parallel()
	for _, isolation := range e2e.Variants(1, "shared", "session") {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("dies")}, "on": e2e.Obj{
				"tools/call dies": e2e.Actions(e2e.Do("crash")),
				"start":           e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 300})),
			}}, e2e.Obj{"isolation": isolation})
			c := w.Standalone()
			require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
			require.Equal(t, "CONNECTION_ERROR", c.Fails(e2e.Obj{"name": "b_dies"}).Kind())
			require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
			require.Equal(t, 2, b.Starts())
		})
	}
}
