package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/edit"
	"goblin/tui/keys"
)

// entry asks for one line of text.
type entry struct {
	still
	app   *app
	title string
	input edit.Text
	then  func(text string) tea.Cmd
}

func newEntry(a *app, title, text string, then func(string) tea.Cmd) *entry {
	e := &entry{app: a, title: title, input: edit.New(a.look), then: then}
	e.input.Set(text)
	return e
}

func (e *entry) heading() string          { return e.title }
func (e *entry) size(w, _ int) (int, int) { return min(w, 70), 5 }
func (e *entry) typing() bool             { return true }

func (e *entry) lines(w, h int) []string {
	e.input.Width = max(1, w-4)
	return e.app.look.Lines([]string{"", " " + e.input.View()}, w, h)
}

func (e *entry) keys() keys.Table {
	return keys.Table{
		{ID: "go", Keys: []string{"enter"}, Hint: "go", Long: "Do it", Run: e.enter},
		{ID: "close", Keys: []string{"esc", "ctrl+c"}, Hint: "leave it", Long: "Close and do nothing", Run: func() tea.Cmd { return e.app.drop(e) }},
	}
}

func (e *entry) enter() tea.Cmd {
	if e.input.Value() == "" {
		return nil
	}
	e.app.drop(e)
	return e.then(e.input.Value())
}

func (e *entry) update(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok {
		e.input.Update(key)
	}
	return nil
}
