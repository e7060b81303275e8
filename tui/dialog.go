package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/look"
)

// dialog is something in front of the panes. The last one of app.dialogs sees
// the input first.
type dialog interface {
	heading() string
	// size is what it wants with its border, of what there is.
	size(w, h int) (int, int)
	lines(w, h int) []string
	// update handles a key or a click (in coordinates of lines); closed takes
	// it off the screen.
	update(msg tea.Msg) (cmd tea.Cmd, closed bool)
	// background handles messages that are no input.
	background(msg tea.Msg) tea.Cmd
	// typing says whether runes are text now.
	typing() bool
	hints() []hint
}

func (a *app) push(d dialog) tea.Cmd {
	a.dialogs = append(a.dialogs, d)
	if d, ok := d.(interface{ begin() tea.Cmd }); ok {
		return d.begin()
	}
	return nil
}

// toDialog hands input to the dialog in front.
func (a *app) toDialog(msg tea.Msg) tea.Cmd {
	d := a.dialogs[len(a.dialogs)-1]
	if m, ok := msg.(tea.MouseMsg); ok {
		m.X, m.Y = m.X-a.front.x, m.Y-a.front.y
		msg = m
	}
	cmd, closed := d.update(msg)
	if closed {
		a.drop(d)
	}
	return cmd
}

// drop closes a dialog, wherever it stands.
func (a *app) drop(d dialog) {
	for i := range a.dialogs {
		if a.dialogs[i] == d {
			a.dialogs = append(a.dialogs[:i:i], a.dialogs[i+1:]...)
			return
		}
	}
}

// confirm asks before something that cannot be undone.
type confirm struct {
	look  *look.Look
	title string
	text  []string
	body  string // foreign text that is shown as far as there is room
	yes   string // what y does
	then  func() tea.Cmd
}

func (c *confirm) heading() string { return c.title }

func (c *confirm) size(w, h int) (int, int) {
	width := 30
	for _, t := range c.text {
		width = max(width, look.Width(t)+4)
	}
	if c.body == "" {
		return min(width, w, 76), len(c.text) + 5
	}
	return min(w, 90), len(c.text) + 5 + len(c.wrapped(min(w, 90)-6, max(h-len(c.text)-5, 1)))
}

// wrapped is the body in lines. If it is longer, the last one says so.
func (c *confirm) wrapped(w, most int) []string {
	if c.body == "" {
		return nil
	}
	lines := wrapText(c.body, w, 1<<20)
	if len(lines) > most {
		left := len(lines) - most + 1
		lines = append(lines[:most-1:most-1], fmt.Sprintf("… and %d lines more", left))
	}
	return lines
}

func (c *confirm) lines(w, h int) []string {
	lines := []string{""}
	for _, t := range c.text {
		lines = append(lines, " "+t)
	}
	for _, t := range c.wrapped(w-4, max(h-len(c.text)-3, 1)) {
		lines = append(lines, "   "+t)
	}
	lines = append(lines, "", " "+c.look.Key.On("y")+" "+c.yes+"   "+c.look.Key.On("n")+" leave it")
	return c.look.Lines(lines, w, h)
}

func (c *confirm) update(msg tea.Msg) (tea.Cmd, bool) {
	key, ok := msg.(tea.KeyMsg)
	if !ok {
		return nil, false
	}
	switch confirmActs().of(key) {
	case "yes":
		return c.then(), true
	case "no":
		return nil, true
	}
	return nil, false
}

func (c *confirm) background(tea.Msg) tea.Cmd { return nil }
func (c *confirm) typing() bool               { return false }
func (c *confirm) hints() []hint              { return []hint{{"y", c.yes}, {"n", "leave it"}} }
