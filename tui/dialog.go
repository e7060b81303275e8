package tui

import (
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/keys"
	"goblin/tui/look"
)

// dialog is something in front of the panes. The last one of app.dialogs sees
// the input first. It takes itself off the screen with [app.drop].
type dialog interface {
	heading() string
	// size is what it wants with its border, of what there is.
	size(w, h int) (int, int)
	lines(w, h int) []string
	// keys are what keys do now.
	keys() keys.Table
	// update handles other keys and the mouse (in coordinates of lines).
	update(msg tea.Msg) tea.Cmd
	// background handles messages that are no input.
	background(msg tea.Msg) tea.Cmd
	// typing says whether runes are text now.
	typing() bool
}

// still is what dialogs have in common that wait for keys alone.
type still struct{}

func (still) update(tea.Msg) tea.Cmd     { return nil }
func (still) background(tea.Msg) tea.Cmd { return nil }
func (still) typing() bool               { return false }

// press gives input to a dialog.
func press(d dialog, msg tea.Msg) tea.Cmd {
	if key, ok := msg.(tea.KeyMsg); ok {
		if b := d.keys().Find(key, 0); b != nil {
			return b.Run()
		}
	}
	return d.update(msg)
}

// hintsOf are what the footer says of a dialog.
func hintsOf(d dialog) []keys.Hint {
	if d, ok := d.(interface{ hints() []keys.Hint }); ok {
		return d.hints()
	}
	return d.keys().Hints()
}

// dialogKeys are the tables of what stands in front of the panes.
func dialogKeys() []titledKeys {
	return []titledKeys{
		{"Commands (:)", (*palette)(nil).keys()},
		{"Help (?)", (*help)(nil).readKeys()},
		{"Search in help", (*search)(nil).keys()},
		{"Subscriptions (w)", (*watched)(nil).listKeys()},
		{"Filter of subscriptions", (*search)(nil).keys()},
		{"Lists of values (f, m)", (*facet)(nil).keys()},
		{"Request and response", (*exchange)(nil).keys()},
		{"A line of text", (*entry)(nil).keys()},
		{"Yes or no", (*confirm)(nil).keys()},
		{"An address to open", (*urlAsk)(nil).keys()},
		{"A model's answer", (*sampling)(nil).keys()},
		{"Setup", (*setup)(nil).keys()},
	}
}

// titledKeys is a table with its heading in help and KEYS.md.
type titledKeys struct {
	title string
	keys  keys.Table
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
	if m, ok := msg.(tea.MouseMsg); ok {
		m.X, m.Y = m.X-a.front.x, m.Y-a.front.y
		msg = m
	}
	return press(a.dialogs[len(a.dialogs)-1], msg)
}

// drop closes a dialog, wherever it stands.
func (a *app) drop(d dialog) tea.Cmd {
	a.dialogs = slices.DeleteFunc(slices.Clone(a.dialogs), func(o dialog) bool { return o == d })
	return nil
}

// confirm asks before something that cannot be undone.
type confirm struct {
	still
	app   *app
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
	lines = append(lines, "", " "+c.app.look.Key.On("y")+" "+c.yes+"   "+c.app.look.Key.On("n")+" leave it")
	return c.app.look.Lines(lines, w, h)
}

func (c *confirm) keys() keys.Table {
	return keys.Table{
		{ID: "yes", Keys: []string{"y", "Y"}, Long: "Yes", Run: func() tea.Cmd {
			c.app.drop(c)
			return c.then()
		}},
		{ID: "no", Keys: []string{"n", "N", "esc", "q", "ctrl+c"}, Long: "No", Run: c.close},
	}
}

func (c *confirm) close() tea.Cmd { return c.app.drop(c) }

func (c *confirm) hints() []keys.Hint {
	return []keys.Hint{{Key: "y", Does: c.yes}, {Key: "n", Does: "leave it"}}
}
