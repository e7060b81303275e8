package uicontext

import (
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
)

// MaxPastedLine is the maximum paste into a field of one line, in characters.
const MaxPastedLine = 10_000

// Paste sends pasted text to a field by key. It refuses text without a field, which would
// be keys otherwise, and text that is too long for the field.
func (c *Context) Paste(msg tea.KeyMsg, typing bool, key func(tea.KeyMsg) tea.Cmd) tea.Cmd {
	if !typing {
		return c.Complain("Not pasted: no text field has the focus; / and : open one")
	}
	limit := MaxPastedLine
	if n := len(c.Dialogs); n > 0 {
		if d, ok := c.Dialogs[n-1].(interface{ PasteLimit() int }); ok {
			limit = d.PasteLimit()
		}
	}
	if n := len(msg.Runes); n > limit {
		return c.Complain("Not pasted: %s characters; this field takes at most %s", termtext.FormatCount(n), termtext.FormatCount(limit))
	}
	return key(msg)
}
