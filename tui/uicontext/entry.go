package uicontext

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/textfield"
)

// Entry asks for one line of text.
type Entry struct {
	Still
	app   *Common
	title string
	Input textfield.Text
	then  func(text string) tea.Cmd
}

// NewEntry asks for a line, which begins as text.
func NewEntry(a *Common, title, text string, then func(string) tea.Cmd) *Entry {
	e := &Entry{app: a, title: title, Input: textfield.New(a.Look), then: then}
	e.Input.Set(text)
	return e
}

func (e *Entry) Heading() string          { return e.title }
func (e *Entry) Size(w, _ int) (int, int) { return min(w, 70), 5 }
func (e *Entry) Typing() bool             { return true }

func (e *Entry) Lines(w, h int) []string {
	e.Input.Width = max(1, w-4)
	return e.app.Look.Lines([]string{"", " " + e.Input.View()}, w, h)
}

func (e *Entry) Keys() keys.Table {
	return keys.Table{
		{ID: "line.go", Hint: "go", Long: "Do it", Run: e.enter},
		{ID: "line.close", Hint: "leave it", Long: "Close and do nothing", Run: func() tea.Cmd { return e.app.Drop(e) }},
	}
}

func (e *Entry) enter() tea.Cmd {
	if e.Input.Value() == "" {
		return nil
	}
	e.app.Drop(e)
	return e.then(e.Input.Value())
}

func (e *Entry) Update(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok {
		e.Input.Update(key)
	}
	return nil
}
