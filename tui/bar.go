package tui

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

const maxHistory = 50

// startFilter gives the bar the focus, for a search when the detail panel has
// it.
func (a *app) startFilter() tea.Cmd {
	a.filtering, a.searching = true, a.inside
	text := ""
	if !a.searching {
		text, _ = a.panes[a.open].rows().filtered()
		if text != "" { // what is typed now is a word of its own
			text += " "
		}
	}
	a.bar.Set(text)
	a.fitBar()
	return nil
}

// typeFilter is a key in the bar: the list follows each one.
func (a *app) typeFilter(msg tea.KeyMsg) tea.Cmd {
	switch id := barActs().of(msg); id {
	case "keep":
		a.endFilter()
		if a.searching {
			return nil
		}
		text := strings.TrimSpace(a.bar.Value())
		if text != "" {
			a.history = slices.DeleteFunc(a.history, func(h string) bool { return h == text })
			a.history = append(a.history, text)
			a.history = a.history[max(0, len(a.history)-maxHistory):]
		}
		return nil
	case "clear":
		a.endFilter()
		if a.searching {
			a.details[a.open].view.Search("")
			return nil
		}
		return a.setFilter("")
	case "earlier", "later":
		if a.searching {
			return nil
		}
		return a.earlier(id == "earlier")
	case "half-down":
		a.panes[a.open].rows().move(a.panes[a.open].rows().window() / 2)
		return nil
	case "half-up":
		a.panes[a.open].rows().move(-a.panes[a.open].rows().window() / 2)
		return nil
	}
	a.fitBar()
	if !a.bar.Update(msg) {
		return nil
	}
	if a.searching {
		a.details[a.open].view.Search(a.bar.Value())
		return nil
	}
	return a.panes[a.open].rows().filter(a.bar.Value())
}

// fitBar leaves room beside the bar for what was found.
func (a *app) fitBar() { a.bar.Width = max(a.w-40, 16) }

func (a *app) endFilter() { a.filtering = false }

// setFilter filters the open pane by a text, as if it were typed.
func (a *app) setFilter(text string) tea.Cmd {
	a.bar.Set(text)
	return a.panes[a.open].rows().filter(text)
}

// earlier walks the filters that were kept.
func (a *app) earlier(back bool) tea.Cmd {
	if len(a.history) == 0 {
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
		return a.setFilter("")
	}
	return a.setFilter(a.history[i])
}
