package tui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestAnInvalidConfigIsMarkedUntilItIsValid(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files").setReady("files")
	r.keys("!")
	require.Contains(t, r.screen(), "Nothing needs you")
	all := []registry.Mistake{
		{File: "/etc/goblin/work.yaml", Line: 3, Text: `unknown key "comand" in server "files"; did you mean "command"?`},
		{File: "/etc/goblin/work.yaml", Line: 12, Text: "duplicate server"},
	}
	r.reg.SetMistakes(all)
	r.refresh(registry.Servers).tick(time.Hour)
	require.Contains(t, r.line("work.yaml"), "config invalid (!)")
	r.keys("!")
	for _, want := range []string{"Config not reloaded: 2 errors", "work.yaml", " 3 ", " 12 ", "did you mean", "duplicate server"} {
		require.Contains(t, r.screen(), want)
	}
	r.keys("j enter")
	require.Equal(t, []string{"file /etc/goblin/work.yaml:12: "}, r.term.opened)
	r.reg.SetMistakes(nil)
	r.refresh(registry.Servers)
	require.NotContains(t, r.screen(), "config invalid")
	require.NotContains(t, r.screen(), "duplicate server", "the dialog closes")
}
