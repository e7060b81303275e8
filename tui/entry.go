package tui

import tea "github.com/charmbracelet/bubbletea"

// entry asks for one line of text.
type entry struct {
	app   *app
	title string
	input field
	then  func(text string) tea.Cmd
}

func newEntry(a *app, title, text string, then func(string) tea.Cmd) *entry {
	e := &entry{app: a, title: title, input: newField(a.look), then: then}
	e.input.Set(text)
	return e
}

func (e *entry) heading() string            { return e.title }
func (e *entry) size(w, _ int) (int, int)   { return min(w, 70), 5 }
func (e *entry) background(tea.Msg) tea.Cmd { return nil }
func (e *entry) typing() bool               { return true }
func (e *entry) hints() []hint              { return entryActs().hints() }

func (e *entry) lines(w, h int) []string {
	e.input.Width = max(1, w-4)
	return e.app.look.Lines([]string{"", " " + e.input.View()}, w, h)
}

func (e *entry) update(msg tea.Msg) (tea.Cmd, bool) {
	key, ok := msg.(tea.KeyMsg)
	if !ok {
		return nil, false
	}
	switch entryActs().of(key) {
	case "close":
		return nil, true
	case "go":
		if e.input.Value() == "" {
			return nil, false
		}
		return e.then(e.input.Value()), true
	}
	e.input.Update(key)
	return nil, false
}
