package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/dialog"
)

func (a *app) copyContent() tea.Cmd {
	c := a.Content()
	if c.Blob {
		return a.Complain("the content is binary; W saves it")
	}
	return a.Copy(string(c.Data), "the content")
}

// clearKept forgets what is kept of the item.
func (a *app) clearKept() tea.Cmd {
	it := a.Panes[a.Open].Item()
	if !it.Ok || !a.Reg.Contents().Clear(it.Kind, it.Server, it.Name) {
		return a.Complain("nothing is kept of this item")
	}
	return a.Say("Forgot what was kept of %s", it.Listed)
}

// clearAll forgets everything that is kept.
func (a *app) clearAll() tea.Cmd {
	return a.Say("Forgot %s", dialog.Count(a.Reg.Contents().ClearAll(), "kept result"))
}
