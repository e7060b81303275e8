package tui

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/aymanbagabas/go-osc52/v2"

	"goblin/tui/work"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/gateway/display"
	"goblin/tui/content"
)

// mostCopied is what terminals take by OSC 52 without losing it.
const mostCopied = 1 << 20

// copy gives text to the clipboard of the terminal, wherever that is (OSC 52).
func (a *app) copy(text, what string) tea.Cmd {
	switch {
	case text == "":
		return a.complain("there is nothing to copy")
	case len(text) > mostCopied:
		return a.complain("%s has %s; terminals take %s: e opens it, W saves it", what, size(int64(len(text))), size(mostCopied))
	}
	sequence := osc52.New(text).String()
	if a.term.Getenv("TMUX") != "" {
		// tmux takes the first if set-clipboard is on, and passes the second
		// on if allow-passthrough is.
		sequence += osc52.New(text).Tmux().String()
	}
	term := a.term
	a.say("Copied %s (%s)", what, size(int64(len(text))))
	return func() tea.Msg {
		if _, err := term.Write([]byte(sequence)); err != nil {
			return work.Done(func() tea.Cmd { return a.complain("copy: %v", err) })
		}
		return nil
	}
}

// shown is the content of what the cursor is on.
type shown struct {
	name string // a file name for it
	data []byte
	blob bool
}

// content finds what copying, pagers and files take: the content that is kept
// of the item, else its definition or what the pane shows.
func (a *app) content() shown {
	if p, ok := a.panes[a.open].(interface{ shown() shown }); ok {
		return p.shown()
	}
	it := a.panes[a.open].item()
	name := path.Base(strings.TrimRight(it.name, "/"))
	if inv := kept(a.reg, it); it.ok && inv != nil && inv.Result != nil {
		if inv.Expanded != "" {
			name = path.Base(strings.TrimRight(inv.Expanded, "/"))
		}
		if file, _, data, ok := content.Blob(inv.Result); ok {
			if file != "" {
				name = path.Base(file)
			}
			return shown{name, data, true}
		}
		if text := content.TextOf(inv.Result); text != "" {
			return shown{name, []byte(text), false}
		}
		return shown{name + ".json", pretty(inv.Result), false}
	}
	// The panel may be closed or still at the row before, so its text is no help;
	// what is not fetched yet is short.
	s := a.panes[a.open].subject()
	if s.blocks == nil {
		return shown{}
	}
	doc, err := content.Build(a.ctx, a.look, s.blocks(a.ctx), content.Options{Depth: -1})
	if err != nil {
		return shown{}
	}
	return shown{name + ".txt", []byte(doc.Plain()), false}
}

// pretty indents JSON; what is none stays as it is.
func pretty(raw []byte) []byte {
	var v json.RawMessage = raw
	if out, err := json.MarshalIndent(v, "", "  "); err == nil {
		return out
	}
	return raw
}

func (a *app) copyContent() tea.Cmd {
	c := a.content()
	if c.blob {
		return a.complain("the content is binary; W saves it")
	}
	return a.copy(string(c.data), "the content")
}

// openIn shows the content in the user's pager or editor. Pagers pass escape
// sequences on to the terminal and editors may obey what they open, so they get
// what the screen would show. Copies and saved files are what arrived.
func (a *app) openIn(program string) tea.Cmd {
	c := a.content()
	switch {
	case len(c.data) == 0:
		return a.complain("there is nothing to open; Enter fetches the content")
	case c.blob:
		return a.save()
	}
	ctx, term := a.ctx, a.term
	return func() tea.Msg {
		safe := display.Text
		if json.Valid(c.data) {
			safe = display.JSON
		}
		err := term.Open(ctx, program, c.name, []byte(safe(string(c.data))))
		return work.Done(func() tea.Cmd {
			if err != nil {
				return tea.Batch(tea.ClearScreen, a.complain("open in $%s: %v", strings.ToUpper(program), err))
			}
			return tea.ClearScreen
		})
	}
}

// save asks for a path and writes the content there, where the terminal is.
func (a *app) save() tea.Cmd {
	c := a.content()
	if len(c.data) == 0 {
		return a.complain("there is nothing to save; Enter fetches the content")
	}
	return a.saveTo(c, clean(c.name))
}

func (a *app) saveTo(c shown, path string) tea.Cmd {
	ctx, term := a.ctx, a.term
	return a.push(newEntry(a, "Save "+size(int64(len(c.data)))+" to", path, func(to string) tea.Cmd {
		return func() tea.Msg {
			where, err := term.Save(ctx, to, c.data)
			return work.Done(func() tea.Cmd {
				if err != nil {
					return tea.Batch(a.saveTo(c, to), a.complain("save: %v", err))
				}
				return a.say("Saved %s", where)
			})
		}
	}))
}

// clearKept forgets what is kept of the item.
func (a *app) clearKept() tea.Cmd {
	it := a.panes[a.open].item()
	if !it.ok || !a.reg.Contents().Clear(it.kind, it.server, it.name) {
		return a.complain("nothing is kept of this item")
	}
	return a.say("Forgot what was kept of %s", it.listed)
}

// clearAll forgets everything that is kept.
func (a *app) clearAll() tea.Cmd {
	return a.say("Forgot %s", count(a.reg.Contents().ClearAll(), "kept result"))
}
