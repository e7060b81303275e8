package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/edit"
	"goblin/tui/keys"
)

// search is a line of text in a dialog that narrows what it lists.
type search struct {
	input  edit.Text
	typed  bool // it has the focus
	narrow func(text string) tea.Cmd
	move   func(by int)
}

func (s *search) keys() keys.Table {
	return keys.Table{
		{ID: "keep", Keys: []string{"enter"}, Hint: "keep", Long: "Keep what was typed; keys are keys again", Run: func() tea.Cmd {
			s.typed = false
			return nil
		}},
		{ID: "clear", Keys: []string{"esc", "ctrl+c"}, Hint: "show all", Long: "Show all again", Run: s.clear},
		{ID: "down", Keys: []string{"down"}, Long: "One line down", Run: s.moves(1)},
		{ID: "up", Keys: []string{"up"}, Long: "One line up", Run: s.moves(-1)},
	}
}

func (s *search) start() tea.Cmd {
	s.typed = true
	return nil
}

func (s *search) clear() tea.Cmd {
	s.typed = false
	s.input.Set("")
	return s.narrow("")
}

func (s *search) moves(by int) func() tea.Cmd {
	return func() tea.Cmd {
		s.move(by)
		return nil
	}
}

// update takes a key that is text, if the line has the focus.
func (s *search) update(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok && s.typed && s.input.Update(key) {
		return s.narrow(s.input.Value())
	}
	return nil
}
