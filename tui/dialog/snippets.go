package dialog

import (
	"encoding/json"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"goblin/registry"
	"goblin/registry/export"
	"goblin/registry/rawjson"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Snippets is a dialog that copies a request as a command, as JSON-RPC or as a program.
type Snippets struct {
	uicontext.ListDialog
	app   *uicontext.Context
	Table *list.Table[export.Snippet]
}

// NewSnippets opens the snippets of a request, which needs its complete params. first are
// shown before them.
func NewSnippets(a *uicontext.Context, rec *registry.TrafficRecord, first ...export.Snippet) tea.Cmd {
	rows := append(first, export.Snippets(rec, a.Endpoint)...)
	d := &Snippets{app: a}
	name := func(s export.Snippet) string { return s.Language }
	d.Table = list.New(a.Ctx, a.Now, name, name, func([]export.Snippet) []list.Field { return nil })
	d.Table.SetColumns(
		list.Column[export.Snippet]{Name: "copy as", NeededWidth: 14, Unsorted: true, Show: func(s export.Snippet, _ int) (string, theme.Style) {
			if s.Text == "" {
				return s.Language, a.Theme.Dim
			}
			return s.Language, ""
		}},
		list.Column[export.Snippet]{Name: "text", MinWidth: 20, Fills: true, Unsorted: true, Show: func(s export.Snippet, _ int) (string, theme.Style) {
			if s.Text == "" {
				return "not possible: " + uicontext.SanitizeLine(s.Why), a.Theme.Dim
			}
			return uicontext.SanitizeLine(uicontext.CutText(strings.ReplaceAll(s.Text, "\n", " "), 400)), a.Theme.Dim
		}})
	fill := d.Table.Refresh(len(rows), func() []export.Snippet { return rows }, func() tea.Cmd { return nil })
	for i := range rows {
		if rows[i].Text != "" {
			d.Table.MoveTo(i)
			break
		}
	}
	return tea.Batch(fill, a.Push(d))
}

// maxPreview is the maximum length of a line that is shown, in bytes.
const maxPreview = 4000

func (d *Snippets) Heading() string { return "Copy the request" }

func (d *Snippets) Size(w, h int) (int, int) { return min(w, 110), min(h, 28) }

func (d *Snippets) Lines(w, h int) []string {
	lk := d.app.Theme
	above := min(d.Table.Total()+1, max(h/2, 1))
	out := append(d.Table.Grid(lk, w, above, true), lk.Rule(lk.Horizontal, "", "", lk.Horizontal, w, lk.Border))
	if s, ok := d.Table.Selected(); ok {
		for line := range strings.Lines(s.Text) {
			if len(out) >= h {
				break
			}
			text := uicontext.SanitizeLine(uicontext.CutText(strings.TrimSuffix(line, "\n"), maxPreview))
			for part := range strings.SplitSeq(ansi.Hardwrap(text, max(w-2, 1), true), "\n") {
				out = append(out, " "+part)
			}
		}
	}
	return lk.Lines(out, w, h)
}

func (d *Snippets) Keys() keys.Table {
	move := func(by int) func() tea.Cmd {
		return func() tea.Cmd {
			d.Table.Move(by)
			return nil
		}
	}
	return keys.Table{
		{ID: "snippets.down", Long: "Next language", Run: move(1)},
		{ID: "snippets.up", Long: "Previous language", Run: move(-1)},
		{ID: "snippets.copy", Hint: "copy", Long: "Copy the text", Run: d.Table.WithSelected(d.copy)},
		{ID: "snippets.save", Hint: "save", Long: "Save the text to a file", Run: d.Table.WithSelected(d.save)},
		{ID: "snippets.close", Hint: "close", Long: "Close", Run: func() tea.Cmd { return d.app.Drop(d) }},
	}
}

func (d *Snippets) copy(s export.Snippet) tea.Cmd {
	if s.Text == "" {
		return d.app.Complain("no %s: %s", s.Language, s.Why)
	}
	return tea.Batch(d.app.Drop(d), d.app.Copy(s.Text, "the "+s.Language))
}

func (d *Snippets) save(s export.Snippet) tea.Cmd {
	if s.Text == "" {
		return d.app.Complain("no %s: %s", s.Language, s.Why)
	}
	return tea.Batch(d.app.Drop(d), Save(d.app, uicontext.CachedContent{Name: "request" + s.Extension(), Data: []byte(s.Text)}))
}

func (d *Snippets) Update(msg tea.Msg) tea.Cmd {
	if m, ok := msg.(tea.MouseMsg); ok && uicontext.LeftPress(m) {
		row, cmd := d.Table.Click(m.X, m.Y)
		if s, ok := d.Table.Selected(); ok && row {
			return d.copy(s)
		}
		return cmd
	}
	return nil
}

// requestOf returns the request of a past call, as a client sends it, but without the
// config's secrets.
func requestOf(a *uicontext.Context, it uicontext.Item, inv *registry.Invocation) *registry.TrafficRecord {
	rec := &registry.TrafficRecord{Method: "resources/read", Name: it.Listed}
	key := "uri"
	switch inv.Kind {
	case registry.Template:
		rec.Name = inv.Expanded
	case registry.Tool:
		rec.Method, key = "tools/call", "name"
	case registry.Prompt:
		rec.Method, key = "prompts/get", "name"
	}
	params := map[string]json.RawMessage{key: rawjson.Quote(rec.Name)}
	if key == "name" && len(inv.Params) > 0 {
		params["arguments"] = redacted(a, inv.Params)
	}
	if len(inv.Meta) > 0 {
		params["_meta"] = redacted(a, inv.Meta)
	}
	rec.Request, _ = json.Marshal(params) // all parts were sent
	rec.RequestSize = len(rec.Request)
	return rec
}
