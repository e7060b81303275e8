//go:build e2e

package security

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestOnlyTheProtocolsMetaReachesAServerThatIsToGetNoMore(t *testing.T) {
	e2e.EachCombination(t, func(t *testing.T, w *e2e.World, x e2e.Combination) {
		b := x.Backend(w, e2e.Obj{
			"tools": []e2e.Obj{e2e.Tool("t")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{e2e.Resource("x:1")},
			"capabilities": e2e.Obj{"completions": e2e.Obj{}, "tools": e2e.Obj{}, "prompts": e2e.Obj{}, "resources": e2e.Obj{}},
		}, e2e.Obj{"forward_meta": false})
		open := w.Backend("open", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
		c := x.Client(w, e2e.Obj{}, 0, nil).Client
		meta := func() e2e.Obj {
			return e2e.Obj{"x-codex-turn-metadata": e2e.Obj{"session_id": "s"}, "threadId": "t", "io.modelcontextprotocol/x": 1, "traceparent": "00-1", "progressToken": "mine"}
		}
		c.Ok("tools/call", e2e.Obj{"name": "open_t", "_meta": meta()})
		require.Contains(t, string(open.WaitReceived("tools/call", 1).Msg), "session_id")
		for method, params := range map[string]e2e.Obj{
			"tools/call": {"name": "b_t"}, "prompts/get": {"name": "b/p"}, "resources/read": {"uri": e2e.In("b", "x:1")},
			"completion/complete": {"ref": e2e.Obj{"type": "ref/prompt", "name": "b/p"}, "argument": e2e.Obj{"name": "a", "value": ""}},
		} {
			params["_meta"] = meta()
			c.Request(method, params)
			told := e2e.At(b.WaitReceived(method, 1).Msg, "params")
			require.NotContains(t, string(told), "session_id", method)
			require.Nil(t, e2e.At(told, "_meta", "threadId"), method)
			if !x.ModernClient() { // whose keys of that prefix are for the next hop only
				require.Equal(t, "1", string(e2e.At(told, "_meta", "io.modelcontextprotocol/x")), method)
			}
			require.Equal(t, `"00-1"`, string(e2e.At(told, "_meta", "traceparent")), method)
			require.NotNil(t, e2e.At(told, "_meta", "progressToken"), method)
		}
	})
}
