package dialog

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/edit"
	"goblin/tui/keys"
)

// Search is a line of text in a dialog that narrows what it lists.
type Search struct {
	Input  edit.Text
	Typed  bool // it has the focus
	Narrow func(text string) tea.Cmd
	Move   func(by int)
}

func (s *Search) Keys() keys.Table {
	return keys.Table{
		{ID: "search.keep", Hint: "keep", Long: "Keep what was typed; keys are keys again", Run: func() tea.Cmd {
			s.Typed = false
			return nil
		}},
		{ID: "search.clear", Hint: "show all", Long: "Show all again", Run: s.Clear},
		{ID: "search.down", Long: "One line down", Run: s.moves(1)},
		{ID: "search.up", Long: "One line up", Run: s.moves(-1)},
	}
}

// Start gives the line the focus.
func (s *Search) Start() tea.Cmd {
	s.Typed = true
	return nil
}

// Clear lists everything again.
func (s *Search) Clear() tea.Cmd {
	s.Typed = false
	s.Input.Set("")
	return s.Narrow("")
}

func (s *Search) moves(by int) func() tea.Cmd {
	return func() tea.Cmd {
		s.Move(by)
		return nil
	}
}

// Update takes a key that is text, if the line has the focus.
func (s *Search) Update(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok && s.Typed && s.Input.Update(key) {
		return s.Narrow(s.Input.Value())
	}
	return nil
}
