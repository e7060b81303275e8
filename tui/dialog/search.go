package dialog

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Search is a line of text in a dialog that narrows what it lists.
type Search struct {
	Input   textfield.Field
	Focused bool // it has the focus
	Rows    interface {
		list.Rows
		Click(x, y int) (row bool, cmd tea.Cmd)
	}
}

func (s *Search) Keys() keys.Table {
	return append(keys.Table{
		{ID: "search.keep", Hint: "keep", Long: "Keep what was typed; keys are keys again", Run: func() tea.Cmd {
			s.Focused = false
			return nil
		}},
		{ID: "search.clear", Hint: "show all", Long: "Show all again", Run: s.Clear},
	}, keys.Scrolling("search", func() keys.Scroller { return list.Cursor{List: s.Rows} }, "down", "up").WithoutHints()...)
}

// Start gives the line the focus.
func (s *Search) Start() tea.Cmd {
	s.Focused = true
	return nil
}

// Typing reports whether letters are text.
func (s *Search) Typing() bool { return s.Focused }

// line draws the line of text in w cells.
func (s *Search) line(lk *theme.Theme, w int) string {
	s.Input.Width = max(1, w-5)
	return " " + lk.Accent.On("/") + " " + s.Input.View()
}

// Clear lists everything again.
func (s *Search) Clear() tea.Cmd {
	s.Focused = false
	s.Input.SetValue("")
	return s.Rows.Filter("")
}

// FilterKeys returns the keys that filter and sort. place is the prefix of their ids.
func (s *Search) FilterKeys(place string) keys.Table {
	return keys.Table{
		{ID: place + ".filter", Hint: "filter", Long: "Filter the list", Run: s.Start},
		{ID: place + ".sort", Hint: "sort", Long: "Sort by the next column; once more, the other way round", Run: func() tea.Cmd { return s.Rows.SortNext() }},
		{ID: place + ".sort-column", Long: "Sort by the next column at once", Run: func() tea.Cmd { return s.Rows.SortNextColumn() }},
	}
}

// CloseKeys returns the keys that close the dialog by end.
func (s *Search) CloseKeys(place string, end func() tea.Cmd) keys.Table {
	return keys.Table{
		{ID: place + ".back", Hint: "close", Long: "Clear the filter, then close", Run: func() tea.Cmd {
			if s.Input.Value() == "" {
				return end()
			}
			return s.Clear()
		}},
		{ID: place + ".close", Long: "Close", Run: end},
	}
}

// Update takes the mouse, and a key that is text if the line has the focus.
func (s *Search) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok && uicontext.LeftPress(m) {
		if row, cmd := s.Rows.Click(m.X, m.Y); !row {
			return cmd
		}
	}
	uicontext.ScrollWheel(s.Rows.Scroll, msg)
	if key, ok := msg.(tea.KeyMsg); ok && s.Focused && s.Input.Update(key) {
		return s.Rows.Filter(s.Input.Value())
	}
	return nil
}

// RowCount returns the number of rows, after the number of matches if there is a filter.
func RowCount(r list.Rows) string {
	if typed, _ := r.FilterQuery(); typed != "" {
		return uicontext.FormatInt(r.Len()) + "/" + uicontext.FormatInt(r.Total())
	}
	return uicontext.FormatInt(r.Total())
}
