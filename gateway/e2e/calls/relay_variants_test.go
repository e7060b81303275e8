//go:build e2e

package calls

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestArgumentsReachTheBackendByteForByte(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	args := `{"re":"a\\d+","n":12345678901234567890,"f":1.0,"e":1e400,"u":"\u00e9\u2028</x>","z":1,"a":{"b":[null,{}]}}`
	c.Ok("tools/call", e2e.Obj{"name": "b_t", "arguments": json.RawMessage(args), "vendor": true})
	told := b.Received("tools/call")[0]
	require.Equal(t, args, string(e2e.At(told.Msg, "params", "arguments")))
	require.Equal(t, "true", string(e2e.At(told.Msg, "params", "vendor")))
	require.Equal(t, "t", e2e.Str(told.Msg, "params", "name"))
}

func TestResultsReachTheClientByteForByte(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	result := `{"structuredContent":{"c":[1.0,12345678901234567890],"b":1,"a":2},"isError":false,"content":[{"type":"video","x":"\u003c"},{"type":"text","text":"","annotations":{"priority":0.10}}],"_meta":{"z":null},"vendor":"é"}`
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "calls": e2e.Obj{"t": json.RawMessage(result)}})
	c := w.Standalone()
	require.Contains(t, c.Request("tools/call", e2e.Obj{"name": "b_t"}).Raw, result)
}

func TestLogLinesOfACallComeBeforeItsResponse(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	note := e2e.Do("notify", e2e.Obj{"method": "notifications/message", "n": 3, "params": e2e.Obj{"level": "info", "data": "line $n"}})
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call t": e2e.Actions(note)}})
	s := w.Served()
	for name, c := range map[string]*e2e.Client{"socket": w.Join(), "HTTP": s.Client(true)} {
		c.Ok("logging/setLevel", e2e.Obj{"level": "debug"})
		m := c.Request("tools/call", e2e.Obj{"name": "b_t"})
		notes := c.NotesOf("notifications/message")
		require.Len(t, notes, 3, name)
		for i, n := range notes {
			require.Equal(t, fmt.Sprint("line ", i), e2e.Str(n.Params, "data"))
			require.Less(t, n.Seq, m.Seq)
			require.Equal(t, m.Via, n.Via)
		}
		c.Ok("logging/setLevel", e2e.Obj{"level": "emergency"})
	}
}
