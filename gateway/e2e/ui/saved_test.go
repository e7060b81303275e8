//go:build e2e

package ui

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestASavedCallShowsAChangedAnswer(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	p := w.Pane(130, 40)
	p.Goblin("")
	p.Resources("logs/app.log")
	p.Types("7")
	p.Shows("No saved calls yet")
	p.Types("2/shop_stat")
	p.Keys("Enter")
	p.Types("c")
	p.Shows("Call shop_stat", "C-w save call")
	p.Keys("C-w")
	p.Shows("Save the call")
	p.Types("s/one") // after the proposed name
	p.Keys("C-s")
	p.Shows("Saved ", "7 shows it")
	file := filepath.Join(w.Dir, "saved", "shop_stats", "one.yaml")
	read := func() string {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text)
	}
	require.Contains(t, read(), "call: shop_stat\n")

	p.Keys("Escape")
	p.Hides("Call shop_stat")
	p.Types("7")
	showsMatch(p, `(?s)\[7 Saved.*\n│. +one +shop_stat`)
	p.Types("G")
	showsMatch(p, `\n│> +one +shop_stat`)
	p.Keys("Enter")
	p.Shows("Ran one: 1 passed", "shop:stat:{}")
	p.Types("A")
	p.Shows("adds {same: true} to its checks")
	p.Types("y")
	p.Shows("Stored the answer of shop_stats/one.yaml")
	require.Contains(t, read(), "- {same: true}")

	b.Do(e2e.Obj{"do": "on", "key": "tools/call stat", "actions": e2e.Actions(e2e.Do("text", e2e.Obj{"text": "something else"}))})
	p.Keys("Enter")
	p.Shows("0 passed, 1 failed", "changed", "something else")
	p.Types("v")
	p.Shows("stored answer", "last answer", "1 difference")
	p.Keys("Escape")
	p.Hides("last answer")
	p.Types("A")
	p.Shows("Stored the answer of shop_stats/one.yaml")
	p.Keys("Enter")
	p.Shows("Ran one: 1 passed")

	// A file that another program writes appears.
	require.NoError(t, os.WriteFile(filepath.Join(w.Dir, "saved", "other.yaml"), []byte("call: shop_stta\n"), 0o644))
	p.Shows("! other")
	p.Types("g")
	p.Shows("did you mean")
	p.Types("q")
	p.Restored(e2e.ExitOK)

	// A new process of the server answers as before.
	out := w.Run("test", file)
	require.Equal(t, 1, out.Code, out.Stdout+out.Stderr)
	require.Contains(t, out.Stdout, "something else")
}
