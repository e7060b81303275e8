//go:build e2e

package transparency

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// nest returns arrays and objects nested to that depth.
func nest(depth int) json.RawMessage {
	inner := "1"
	if depth%2 == 1 {
		inner = "[]"
	}
	return json.RawMessage(strings.Repeat(`[{"a":`, depth/2) + inner + strings.Repeat(`}]`, depth/2))
}

// overFronts runs a test with clients of both eras over each front, with servers over
// each transport.
func overFronts(t *testing.T, prepare func(w *e2e.World), test func(t *testing.T, w *e2e.World, c *e2e.Client)) {
	t.Helper()
	t.Parallel()
	for _, front := range e2e.Variants(1, "http", "socket", "stateless") {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			prepare(w)
			test(t, w, meets(w, front))
		})
	}
}

// meets returns a client of that front.
func meets(w *e2e.World, front string) *e2e.Client {
	w.T.Helper()
	switch front {
	case "http":
		return w.Served().Client(false)
	case "socket":
		return w.Join()
	default:
		return w.Socket().Stateless()
	}
}

func TestJSONOfClientsThatNestsTooDeeplyReachesNoServer(t *testing.T) {
	echo := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "on": e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("text", e2e.Obj{"text": "called"}))}}
	overFronts(t, func(w *e2e.World) {
		w.Backend("local", echo)
		w.Remote("remote", "/mcp", echo)
	}, func(t *testing.T, w *e2e.World, c *e2e.Client) {
		for _, server := range []string{"local", "remote"} {
			within := func(depth int) e2e.Obj { return e2e.Obj{"name": server + "_t", "arguments": e2e.Obj{"a": nest(depth)}} }
			require.Contains(t, string(c.Ok("tools/call", within(500))), "called")
			quoted := e2e.Obj{"name": server + "_t", "arguments": e2e.Obj{"a": string(nest(20_000))}}
			require.Contains(t, string(c.Ok("tools/call", quoted)), "called", "content of strings does not count")
			for _, params := range []e2e.Obj{
				within(513), within(1001), within(9000),
				{"name": server + "_t", "_meta": e2e.Obj{"x/y": nest(600)}},
				{"name": server + "_t", "arguments": e2e.Obj{}, "extra": e2e.Obj{"b": nest(9001)}},
				{"name": server + "_t", "arguments": e2e.Obj{"pad": strings.Repeat("x", 200_000), "a": nest(600)}},
			} {
				e := c.Fault("tools/call", params)
				require.Equal(t, -32600, e.Code)
				require.Contains(t, e.Message, "more than 512 deep (limits.depth)")
			}
			require.Contains(t, string(c.Ok("tools/call", within(10))), "called", "the connection still works")
		}
		for _, b := range w.Backends {
			for _, told := range b.Received("tools/call") {
				require.NotContains(t, string(told.Msg), strings.Repeat(`[{"a":`, 256))
			}
			require.Len(t, b.Received("tools/call"), 3, b.Name)
		}
	})
}
