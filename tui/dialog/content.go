package dialog

import (
	"encoding/json"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// OpenIn opens the content in the user's pager or editor. They get sanitized text because
// they may act on escape sequences. Copies and saved files keep the original bytes.
func OpenIn(a *uicontext.Context, program string, c uicontext.CachedContent) tea.Cmd {
	switch {
	case len(c.Data) == 0:
		return a.Complain("nothing to open yet; %s fetches the content", a.KeyOf("open"))
	case c.Blob:
		return Save(a, c)
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

// Save asks for a path and writes the content there, on the terminal's machine.
func Save(a *uicontext.Context, c uicontext.CachedContent) tea.Cmd {
	if len(c.Data) == 0 {
		return a.Complain("nothing to save yet; %s fetches the content", a.KeyOf("open"))
	}
	return saveTo(a, c, uicontext.SanitizeLine(c.Name))
}

func saveTo(a *uicontext.Context, c uicontext.CachedContent, path string) tea.Cmd {
	ctx, term := a.Ctx, a.Term
	return a.Push(NewTextPrompt(a, "Save "+uicontext.FormatSize(int64(len(c.Data)))+" to", path, func(to string) tea.Cmd {
		return func() tea.Msg {
			where, err := term.Save(ctx, to, c.Data)
			return keys.FuncMsg(func() tea.Cmd {
				if err != nil {
					return tea.Batch(saveTo(a, c, to), a.Complain("save: %v", err))
				}
				return a.Say("Saved %s", where)
			})
		}
	}))
}
