package dialog

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Confirm is a dialog that asks before an action that cannot be undone.
type Confirm struct {
	uicontext.BaseDialog
	Screen        *uicontext.Context
	Title         string
	Text          []string
	Body          string // untrusted text, which scrolls
	Diff          bool   // Body is a unified diff
	Yes           string // label of y
	Then          func() tea.Cmd
	Permanent     string // label of g; "" hides that choice
	ThenPermanent func() tea.Cmd

	Always     string // label of a; "" hides that choice
	ThenAlways func() tea.Cmd

	Refuse func() tea.Cmd // runs after n, the refusal; may be nil

	offset int // first visible line of Body
}

func (c *Confirm) Heading() string { return c.Title }

func (c *Confirm) Size(w, h int) (int, int) {
	if c.Body != "" {
		width := min(w, 90)
		around := len(c.question(width-4)) + len(c.choices(width-4)) + 4
		return width, around + len(c.wrapped(width-6, max(h-around, 1)))
	}
	width := 30
	for _, t := range append(c.choices(w), c.Text...) {
		width = max(width, theme.Width(t)+4)
	}
	width = min(width, w, 76)
	return width, len(c.question(width-4)) + len(c.choices(width-4)) + 4
}

// question returns Text in lines of at most w cells.
func (c *Confirm) question(w int) (lines []string) {
	for _, t := range c.Text {
		lines = append(lines, uicontext.WrapText(t, max(w, 1), 1<<20)...)
	}
	return lines
}

// wrapped returns at most most lines of the body. The last one reports how many follow.
func (c *Confirm) wrapped(w, most int) []string {
	if c.Body == "" {
		return nil
	}
	lines := uicontext.WrapText(c.Body, w, 1<<20)
	if c.Diff {
		c.colour(lines)
	}
	if len(lines) <= most {
		return lines
	}
	c.offset = max(min(c.offset, len(lines)-most), 0)
	lines = lines[c.offset:]
	if len(lines) > most {
		left := len(lines) - most + 1
		lines = append(lines[:most-1:most-1], fmt.Sprintf("%s and %d more lines (%s)", c.Screen.Theme.Ellipsis, left, c.Screen.KeyOf("confirm.down")))
	}
	return lines
}

// colour marks added and removed lines. Wrapped ones continue the line above.
func (c *Confirm) colour(lines []string) {
	lk := c.Screen.Theme
	style := lk.Dim
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "+"):
			style = lk.Good
		case strings.HasPrefix(line, "-"):
			style = lk.Bad
		case strings.HasPrefix(line, " "), strings.HasPrefix(line, "@@"):
			style = lk.Dim
		}
		lines[i] = style.On(line)
	}
}

func (c *Confirm) scroll(by int) func() tea.Cmd {
	return func() tea.Cmd {
		c.offset += by
		return nil
	}
}

func (c *Confirm) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(func(by int) { c.offset += by }, msg)
	return nil
}

func (c *Confirm) Lines(w, h int) []string {
	text, choices := c.question(w-2), c.choices(w-2)
	for i, t := range text {
		text[i] = " " + t
	}
	for i, t := range choices {
		choices[i] = " " + t
	}
	room := h - len(text) - len(choices) // for the body and empty lines
	for _, t := range c.wrapped(w-4, max(room-2, 1)) {
		text = append(text, "   "+t)
	}
	if len(text)+len(choices)+2 <= h {
		text = append([]string{""}, text...)
	}
	if text = text[:min(len(text), max(h-len(choices), 0))]; len(text)+len(choices) < h {
		text = append(text, "")
	}
	return c.Screen.Theme.Lines(append(text, choices...), w, h)
}

// Small returns the question without a frame, or nil if it needs more than w by h cells.
func (c *Confirm) Small(w, h int) []string {
	lines := append(uicontext.WrapText(c.Title, max(w, 1), 1<<20), append(c.question(w), c.choices(w)...)...)
	if c.Body != "" || len(lines) > h {
		return nil
	}
	return lines
}

// choices returns the keys and their effects, in lines of at most w cells if possible.
func (c *Confirm) choices(w int) (lines []string) {
	const gap = "   "
	for _, h := range c.Hints() {
		text := c.Screen.Theme.Key.On(keymap.FormatKey(h.Key)) + " " + h.Label
		if n := len(lines); n > 0 && theme.Width(lines[n-1]+gap+text) <= w {
			lines[n-1] += gap + text
		} else {
			lines = append(lines, text)
		}
	}
	return lines
}

func (c *Confirm) Keys() keys.Table {
	run := func(do func() tea.Cmd) func() tea.Cmd {
		return func() tea.Cmd {
			c.Screen.Drop(c)
			return do()
		}
	}
	t := keys.Table{{ID: "confirm.yes", Long: "Yes", Run: run(c.Then)}}
	if c.Permanent != "" {
		t = append(t, keys.Binding{ID: "confirm.good", Long: "Yes, permanently (in the config)", Run: run(c.ThenPermanent)})
	}
	if c.Always != "" {
		t = append(t, keys.Binding{ID: "confirm.always", Long: "Yes, and don't ask again", Run: run(c.ThenAlways)})
	}
	return append(t, keys.Binding{ID: "confirm.no", Long: "No", Run: c.close},
		keys.Binding{ID: "confirm.down", Long: "Scroll the text down", Run: c.scroll(3)},
		keys.Binding{ID: "confirm.up", Long: "Scroll the text up", Run: c.scroll(-3)})
}

func (c *Confirm) close() tea.Cmd {
	cmd := c.Screen.Drop(c)
	if c.Refuse != nil {
		cmd = tea.Batch(cmd, c.Refuse())
	}
	return cmd
}

func (c *Confirm) Hints() []keys.Hint {
	does := map[string]string{"confirm.yes": c.Yes, "confirm.good": c.Permanent, "confirm.always": c.Always, "confirm.no": "back"}
	t := c.Keys().WithKeys(c.Screen.Actions)
	for i := range t {
		t[i].Hint = does[t[i].ID]
	}
	return t.Hints()
}
