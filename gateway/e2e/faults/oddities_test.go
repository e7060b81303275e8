//go:build e2e || faults

package faults

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestB19_ResultOverTheFrameLimitIsAClearError(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"frame": "1MiB"}
	w.Backend("big", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("u")}, "on": e2e.Obj{"tools/call t": e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": 3 << 20}))}})
	c := w.Standalone()
	e := c.Fails(e2e.Obj{"name": "big_t"})
	require.Equal(t, "BAD_REPLY", e.Kind())
	require.Contains(t, e.Message, "big")
	require.Equal(t, "big:u:{}", c.CallText("big_u", e2e.Obj{}))
}

func TestB22_EscapedSurrogatesPassAsTheyAre(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}, "calls": e2e.Obj{"t": json.RawMessage(`{"content":[{"type":"text","text":"\ud800x"}]}`)}})
	c := w.Standalone()
	m := c.Request("tools/call", e2e.Obj{"name": "b_t"})
	require.Nil(t, m.Error)
	require.Contains(t, m.Raw, `\ud800x`)
}

func TestB26_ListsOfTheWrongShapeLeaveTheOtherKinds(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "1s"
	w.Backend("odd", e2e.Obj{"tools": []e2e.Obj{}, "prompts": []e2e.Obj{e2e.Prompt("p")}, "resources": []e2e.Obj{}, "on": e2e.Obj{
		"tools/list":     e2e.Actions(e2e.Do("result", e2e.Obj{"result": e2e.Obj{"tools": e2e.Obj{"a": 1}}})),
		"resources/list": e2e.Actions(e2e.Do("result", e2e.Obj{"result": []int{1}})),
	}})
	w.Beside()
	c := w.Standalone()
	c.Fine()
	c.WaitListed("prompts", "odd/p", true)
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.Names("tools"))
	require.Len(t, c.Names("resources"), 2)
}

func TestServerOfAnOldRevisionIsUsed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	script := e2e.Filesystem()
	script["version"] = "2024-11-05"
	w.Backend("old", script)
	c := w.Standalone()
	require.Equal(t, "old:stat:{}", c.CallText("old_stat", e2e.Obj{}))
}

func TestDisabledServerIsNotStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("off", e2e.Filesystem(), e2e.Obj{"disabled": true})
	w.Beside()
	c := w.Standalone()
	require.Equal(t, []string{"fine_move", "fine_stat"}, c.Names("tools"))
	require.Equal(t, "fine "+e2e.AppLog, c.ReadText(e2e.AppLog), "a disabled server owns no raw URIs")
	require.Zero(t, b.Starts())
	require.Contains(t, w.Succeeds("list", "servers"), "off")
}
