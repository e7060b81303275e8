//go:build faults

package full

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestEntriesLeaveAfterTheGraceTime(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["remember"] = "off"
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"start": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 1, "after": 1}))}
	b := w.Backend("bad", script)
	w.Beside()
	c := w.Standalone()
	require.Contains(t, c.Names("tools"), "bad_stat")
	c.Settle()
	b.DoAt(b.WaitStarts(1), e2e.Do("crash", e2e.Obj{"code": 1}))
	b.WaitStarts(2)
	require.Contains(t, c.Names("tools"), "bad_stat")
	require.True(t, c.Holds(2*e2e.Patience, func() bool {
		for _, m := range c.Notes {
			if m.Method == "notifications/tools/list_changed" {
				return true
			}
		}
		return false
	}), "the clients are told")
	c.WaitListed("tools", "bad_stat", false)
	c.WaitListed("resources", e2e.In("bad", e2e.AppLog), false)
	require.Contains(t, c.Names("tools"), "fine_stat")
}
