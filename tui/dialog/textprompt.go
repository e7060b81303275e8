package dialog

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/textfield"
	"goblin/tui/uicontext"
)

// TextPrompt is a dialog that asks for one line of text.
type TextPrompt struct {
	uicontext.BaseDialog
	app   *uicontext.Context
	title string
	Input textfield.Field
	then  func(text string) tea.Cmd
	// Optional allows an empty text.
	Optional bool
}

// NewTextPrompt returns a dialog that starts with text and passes the result to then.
func NewTextPrompt(a *uicontext.Context, title, text string, then func(string) tea.Cmd) *TextPrompt {
	e := &TextPrompt{app: a, title: title, Input: textfield.New(a.Theme), then: then}
	e.Input.SetValue(text)
	return e
}

func (e *TextPrompt) Heading() string          { return e.title }
func (e *TextPrompt) Size(w, _ int) (int, int) { return min(w, 70), 5 }
func (e *TextPrompt) Typing() bool             { return true }

func (e *TextPrompt) Lines(w, h int) []string {
	e.Input.Width = max(1, w-4)
	return e.app.Theme.Lines([]string{"", " " + e.Input.View()}, w, h)
}

func (e *TextPrompt) Keys() keys.Table {
	return keys.Table{
		{ID: "line.go", Hint: "ok", Long: "Confirm", Run: e.enter},
		{ID: "line.close", Hint: "back", Long: "Close without changes", Run: func() tea.Cmd { return e.app.Drop(e) }},
	}
}

func (e *TextPrompt) enter() tea.Cmd {
	if e.Input.Value() == "" && !e.Optional {
		return nil
	}
	e.app.Drop(e)
	return e.then(e.Input.Value())
}

func (e *TextPrompt) Update(msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok {
		e.Input.Update(key)
	}
	return nil
}
