package tui

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
)

const maxHistory = 50

// startFilter focuses the bar: for a search if the detail has the focus, otherwise for
// the filter.
func (a *app) startFilter() tea.Cmd {
	a.filtering, a.searching = true, a.Inside
	text := ""
	if !a.searching {
		text, _ = a.Panes[a.Open].Rows().FilterQuery()
	}
	a.bar.SetValue(text)
	a.barSelected = text != "" // typing replaces it
	a.resizeBar()
	return nil
}

func (a *app) filterKeys() keys.Table {
	half := func(by int) func() tea.Cmd {
		return func() tea.Cmd {
			r := a.Panes[a.Open].Rows()
			r.Move(by * r.PageSize() / 2)
			return nil
		}
	}
	walk := func(back bool) func() tea.Cmd { return func() tea.Cmd { return a.walkHistory(back) } }
	return keys.Table{
		{ID: "filter.keep", Hint: "keep", Long: "Keep the filter and return to the list", Run: a.acceptFilter},
		{ID: "filter.clear", Hint: "clear", Long: "Clear the filter", Run: a.clearFilter},
		{ID: "filter.earlier", Hint: "earlier", Long: "Previous filter", Run: walk(true)},
		{ID: "filter.later", Long: "Next filter", Run: walk(false)},
		{ID: "filter.half-down", Long: "Scroll the list half a page down", Run: half(1)},
		{ID: "filter.half-up", Long: "Scroll the list half a page up", Run: half(-1)},
	}
}

func (a *app) acceptFilter() tea.Cmd {
	a.endFilter()
	text := strings.TrimSpace(a.bar.Value())
	if text != "" && !a.searching {
		a.history = appendHistory(a.history, text)
	}
	if _, n := a.Details[a.Open].View.MatchIndex(); text != "" && a.searching && n == 0 {
		return a.Complain("no matches for %s", text)
	}
	return nil
}

func (a *app) clearFilter() tea.Cmd {
	a.endFilter()
	if a.searching {
		v := a.Details[a.Open].View
		v.Search("")
		if v.HidesOthers() {
			v.ToggleOnlyMatches()
		}
		return nil
	}
	return a.SetFilter("")
}

func appendHistory(history []string, line string) []string {
	history = append(slices.DeleteFunc(history, func(h string) bool { return h == line }), line)
	return history[max(0, len(history)-maxHistory):]
}

// The list follows every key.
func (a *app) typeFilter(msg tea.KeyMsg) tea.Cmd {
	if b := a.filterKeys().WithKeys(a.Actions).Find(msg, 0); b != nil {
		return b.Run()
	}
	a.resizeBar()
	if a.barSelected && (msg.Type == tea.KeyRunes || msg.Type == tea.KeySpace || msg.Type == tea.KeyBackspace || msg.Type == tea.KeyDelete) {
		a.bar.SetValue("")
		if msg.Type != tea.KeyRunes {
			a.barSelected = false
			return a.Panes[a.Open].Rows().Filter("")
		}
	}
	a.barSelected = false
	if !a.bar.Update(msg) {
		return nil
	}
	if a.searching {
		a.Details[a.Open].View.Search(a.bar.Value())
		return nil
	}
	return a.Panes[a.Open].Rows().Filter(a.bar.Value())
}

func (a *app) resizeBar() { a.bar.Width = max(a.W-40, 16) }

func (a *app) endFilter() { a.filtering, a.barSelected = false, false }

func (a *app) walkHistory(back bool) tea.Cmd {
	if a.searching || len(a.history) == 0 {
		return nil
	}
	i := slices.Index(a.history, a.bar.Value())
	switch {
	case i < 0 && back:
		i = len(a.history) - 1
	case i < 0:
		return nil
	case back:
		i = max(0, i-1)
	default:
		i++
	}
	if i == len(a.history) {
		return a.SetFilter("")
	}
	return a.SetFilter(a.history[i])
}
