package uicontext

import (
	"encoding/json"
	"strings"

	"github.com/aymanbagabas/go-osc52/v2"
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/keys"
)

// mostCopied is how much terminals take by OSC 52.
const mostCopied = 1 << 20

// Copy gives text to the clipboard of the terminal, wherever that is (OSC 52).
func (a *Common) Copy(text, what string) tea.Cmd {
	switch {
	case text == "":
		return a.Complain("there is nothing to copy")
	case len(text) > mostCopied:
		return a.Complain("%s has %s; terminals take %s: %s opens it, %s saves it", what, Size(int64(len(text))), Size(mostCopied), a.KeyOf("pager"), a.KeyOf("save"))
	}
	sequence := osc52.New(text).String()
	if a.Term.Getenv("TMUX") != "" {
		// tmux takes the first if set-clipboard is on, and passes the second
		// on if allow-passthrough is.
		sequence += osc52.New(text).Tmux().String()
	}
	a.Say("Copied %s (%s)", what, Size(int64(len(text))))
	return a.Do(func() error {
		_, err := a.Term.Write([]byte(sequence))
		return err
	}, "copy", nil)
}

// Shown is the content of what the cursor is on.
type Shown struct {
	Name string // a file name for it
	Data []byte
	Blob bool
}

// Pretty indents JSON; what is none stays as it is.
func Pretty(raw []byte) []byte {
	var v json.RawMessage = raw
	if out, err := json.MarshalIndent(v, "", "  "); err == nil {
		return out
	}
	return raw
}

// OpenIn shows the content in the user's pager or editor. Pagers pass escape
// sequences on to the terminal and editors may obey what they open, so they get
// what the screen would show. Copies and saved files are what arrived.
func (a *Common) OpenIn(program string, c Shown) tea.Cmd {
	switch {
	case len(c.Data) == 0:
		return a.Complain("there is nothing to open; %s fetches the content", a.KeyOf("open"))
	case c.Blob:
		return a.Save(c)
	}
	ctx, term := a.Ctx, a.Term
	return func() tea.Msg {
		safe := termtext.Text
		if json.Valid(c.Data) {
			safe = termtext.JSON
		}
		err := term.Open(ctx, program, c.Name, []byte(safe(string(c.Data))))
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				return tea.Batch(tea.ClearScreen, a.Complain("open in $%s: %v", strings.ToUpper(program), err))
			}
			return tea.ClearScreen
		})
	}
}

// Save asks for a path and writes the content there, where the terminal is.
func (a *Common) Save(c Shown) tea.Cmd {
	if len(c.Data) == 0 {
		return a.Complain("there is nothing to save; %s fetches the content", a.KeyOf("open"))
	}
	return a.saveTo(c, Clean(c.Name))
}

func (a *Common) saveTo(c Shown, path string) tea.Cmd {
	ctx, term := a.Ctx, a.Term
	return a.Push(NewEntry(a, "Save "+Size(int64(len(c.Data)))+" to", path, func(to string) tea.Cmd {
		return func() tea.Msg {
			where, err := term.Save(ctx, to, c.Data)
			return keys.FuncMsg(func() tea.Cmd {
				if err != nil {
					return tea.Batch(a.saveTo(c, to), a.Complain("save: %v", err))
				}
				return a.Say("Saved %s", where)
			})
		}
	}))
}
