package uicontext

import (
	"encoding/json"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
)

// largest text that terminals accept by OSC 52, in bytes
const maxCopied = 1 << 20

// Copy puts text into the terminal's clipboard (OSC 52). If text could control a terminal
// when the user pastes it, Copy makes its control characters visible.
func (a *Context) Copy(text, what string) tea.Cmd {
	switch {
	case text == "":
		return a.Complain("nothing to copy")
	case len(text) > maxCopied:
		return a.Complain("%s has %s, the clipboard's limit is %s; %s opens it, %s saves it", what, FormatSize(int64(len(text))), FormatSize(maxCopied), a.KeyOf("pager"), a.KeyOf("save"))
	}
	switch {
	case !strings.ContainsFunc(text, isControl):
	case json.Valid([]byte(text)):
		text = termtext.JSON(text)
	default:
		text = termtext.Text(text)
	}
	sequence := osc52.New(text).String()
	if a.Term.Getenv("TMUX") != "" {
		// tmux accepts the first one with set-clipboard, and passes on the second one
		// with allow-passthrough.
		sequence += osc52.New(text).Tmux().String()
	}
	a.Say("Copied %s (%s)", what, FormatSize(int64(len(text))))
	return a.Do(func() error {
		_, err := a.Term.Write([]byte(sequence))
		return err
	}, "copy", nil)
}

// isControl reports whether a terminal interprets a character of pasted text.
func isControl(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) }

// CachedContent is the content of the item under the cursor.
type CachedContent struct {
	Name string // suggested file name
	Data []byte
	Blob bool
}

// Pretty indents JSON and returns invalid JSON unchanged.
func Pretty(raw []byte) []byte {
	var v json.RawMessage = raw
	if out, err := json.MarshalIndent(v, "", "  "); err == nil {
		return out
	}
	return raw
}
