//go:build e2e

package e2e_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestSettingsThatNeedANewDaemonAreNamed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	c.WaitListed("tools", "b_stat", true)
	w.Edit(func() { w.Gateway["page_size"] = 7 })
	e2e.Eventually(t, "the log", func() bool {
		return strings.Contains(w.DaemonLog(), `from the next start"=gateway.page_size`)
	})
	require.Equal(t, "edited settings take effect at the next start: gateway.page_size", w.Status().Notice)
	w.Edit(func() { delete(w.Gateway, "page_size") })
	e2e.Eventually(t, "the next reload", func() bool { return strings.Count(w.DaemonLog(), "config reloaded") == 2 })
	require.Empty(t, w.Status().Notice)
	require.Equal(t, 1, b.Starts())
}
