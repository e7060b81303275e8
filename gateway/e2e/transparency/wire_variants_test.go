//go:build e2e

package transparency

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestC10_OversizedLineCostsOnlyItself(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"frame": "1MiB"}
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	c := w.Standalone()
	got := exchangeLine(c, `{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x":"`+strings.Repeat("x", 3<<20)+`"}}`, 1)
	e := e2e.ParseError(t, got[0])
	require.Contains(t, []int{-32700, -32600}, e.Code)
	require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
}

func TestC17_DuplicateIdsAreEachAnswered(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "on": e2e.Obj{"tools/call": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}})
	c := w.Standalone()
	for i := range 2 {
		c.Write([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"b_t","arguments":{"i":%d}}}`, i)))
	}
	b.WaitEvent("wait", "go")
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	c.Wait("both answers", func() bool { return len(c.Replies[`"same"`]) == 2 })
	c.Update(func() { delete(c.Replies, `"same"`) })
}
