package dialog

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Search is a text field in a dialog that filters its list.
type Search struct {
	Input   textfield.Field
	Focused bool
	Rows    interface {
		list.Rows
		Click(x, y int) (row bool, cmd tea.Cmd)
	}
}

func (s *Search) Keys() keys.Table {
	return append(keys.Table{
		{ID: "search.keep", Hint: "done", Long: "Keep the filter and leave the field", Run: func() tea.Cmd {
			s.Focused = false
			return nil
		}},
		{ID: "search.clear", Hint: "clear", Long: "Clear the filter", Run: s.Clear},
	}, keys.Scrolling("search", func() keys.Scroller { return list.Cursor{List: s.Rows} }, "down", "up")...)
}

// Start focuses the text field.
func (s *Search) Start() tea.Cmd {
	s.Focused = true
	return nil
}

func (s *Search) Typing() bool { return s.Focused }

func (s *Search) line(lk *theme.Theme, w int) string {
	s.Input.Width = max(1, w-5)
	return " " + lk.Accent.On("/") + " " + s.Input.View()
}

// Clear removes the filter.
func (s *Search) Clear() tea.Cmd {
	s.Focused = false
	s.Input.SetValue("")
	return s.Rows.Filter("")
}

// FilterKeys returns the keys that filter and sort. place is the prefix of their ids.
func (s *Search) FilterKeys(place string) keys.Table {
	return keys.Table{
		{ID: place + ".filter", Hint: "filter", Long: "Filter the list", Run: s.Start},
		{ID: place + ".sort", Hint: "sort", Long: "Sort: next column / reverse", Run: func() tea.Cmd { return s.Rows.SortNext() }},
		{ID: place + ".sort-column", Long: "Sort: next column, without reversing", Run: func() tea.Cmd { return s.Rows.SortNextColumn() }},
	}
}

// CloseKeys returns the keys that close the dialog by calling end.
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

// RowCount returns the number of rows, or matches/total if there is a filter.
func RowCount(r list.Rows) string {
	if typed, _ := r.FilterQuery(); typed != "" {
		return uicontext.FormatInt(r.Len()) + "/" + uicontext.FormatInt(r.Total())
	}
	return uicontext.FormatInt(r.Total())
}
