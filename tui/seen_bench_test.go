package tui

import (
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

// narrowed returns a screen over 100,000 resources, seen as a profile that lacks half of them.
func narrowed(b *testing.B) *rig {
	r := warehouse(b, 120, 40)
	n := 0
	for e := range r.reg.Load().All(registry.Resource) {
		if n++; n%2 == 0 {
			r.backend.lacks["coding "+e.Listed] = "profile"
		}
	}
	r.app.Context.Profile = "coding"
	return r.changed(registry.AllChanges)
}

// BenchmarkHideKey measures the key that hides dim rows, up to the next frame and up to the
// frame without them.
func BenchmarkHideKey(b *testing.B) {
	for _, part := range []string{"frame", "whole"} {
		b.Run(part, func(b *testing.B) {
			r := narrowed(b)
			v := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'v'}}
			for b.Loop() {
				cmd := r.app.Update(v)
				_ = r.app.View()
				if part == "frame" {
					b.StopTimer()
				}
				r.settled(cmd)
				_ = r.app.View()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkKeyWhileHidden measures a movement key and its frame while half of 100,000 rows are
// hidden.
func BenchmarkKeyWhileHidden(b *testing.B) {
	r := narrowed(b).keys("v")
	require.Equal(b, 50_000, r.app.Panes[pane.PaneResources].Rows().Len())
	down := tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{'j'}}
	for b.Loop() {
		r.app.Update(down)
		_ = r.app.View()
	}
}
