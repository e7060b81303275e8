package pane

import (
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/dialog"
)

// OnlyMatches hides the lines of the detail without matches, or shows them again. It
// calls search to start a search if there is none.
func (a *Layout) OnlyMatches(search func() tea.Cmd) tea.Cmd {
	v := a.Details[a.Open].View
	only := v.ToggleOnlyMatches()
	switch _, n := v.MatchIndex(); {
	case n == 0:
		if !only {
			v.ToggleOnlyMatches()
		}
		return search()
	case only:
		return a.Say("Only matching lines; %s shows all", a.KeyOf("only-matches"))
	}
	return a.Say("All lines")
}

// AskLine asks for the number of a line.
func (a *Layout) AskLine() tea.Cmd {
	title := "Go to row"
	if a.Inside {
		title = "Go to line"
	}
	return a.Push(dialog.NewTextPrompt(a.Context, title, "", a.GoToLine))
}

// GoToLine goes to a line of the detail if that has the focus, otherwise to a row.
func (a *Layout) GoToLine(number string) tea.Cmd {
	n, err := strconv.Atoi(strings.TrimSpace(number))
	rows := a.Panes[a.Open].Rows()
	_, last := a.rowNumber()
	switch {
	case err != nil || n < 1:
		return a.Complain("a line is a number, such as 4712")
	case a.Inside && !a.Details[a.Open].View.GoToLine(n):
		return a.Complain("there is no line %d", n)
	case !a.Inside && n > last:
		return a.Complain("there is no row %d; the last one is %d", n, last)
	case !a.Inside:
		rows.MoveTo(n - 1 + rows.HeadRows())
		a.CursorMoved()
	}
	return nil
}
