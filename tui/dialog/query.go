package dialog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Query is a dialog that evaluates a JSONPath (RFC 9535, as github.com/ohler55/ojg/jp
// implements it) while the user types. A leading "$." is optional. Slow paths are
// refused, because the JSON is untrusted.
type Query struct {
	uicontext.BaseDialog
	app        *uicontext.Context
	item       string
	data       *Document
	size       int
	Input      textfield.Field
	View       *viewer.View
	theme      *theme.Theme
	savedPath  *string // stored for the next time
	isPrevious bool    // the stored path; typing replaces it

	found    []byte
	count    int
	err      error
	searched string // current or last searched path
	width    int
	busy     bool
	ctx      context.Context
	cancel   context.CancelFunc
}

// NewQuery opens a dialog that searches the first of texts that is JSON. It starts with
// *savedPath and stores the last path there. of names the text.
func NewQuery(a *uicontext.Context, of string, savedPath *string, texts ...[]byte) tea.Cmd {
	var v *Document
	var data []byte
	err := errors.New("no JSON to search")
	for i := 0; i < len(texts) && err != nil; i++ {
		data = texts[i]
		v, err = ReadDocument(data)
	}
	if err != nil {
		return a.Complain("%v", err)
	}
	d := &Query{app: a, item: of, data: v, size: len(data), Input: textfield.New(a.Theme), View: viewer.NewView(a.Theme), theme: a.Theme, savedPath: savedPath, isPrevious: *savedPath != "", searched: "\x00"}
	d.Input.SetValue(*savedPath)
	d.ctx, d.cancel = context.WithCancel(a.Ctx)
	return tea.Batch(a.Push(d), d.search())
}

// One command runs at a time; newer paths follow it.
func (d *Query) search() tea.Cmd {
	w, _ := d.app.DialogSize(d)
	path := d.Input.Value()
	if d.busy || path == d.searched && w == d.width {
		return nil
	}
	d.busy, d.searched, d.width, *d.savedPath = true, path, w, path
	v := d.data
	size := d.size
	lk := d.app.Theme
	ctx := d.ctx
	return func() tea.Msg {
		found, n, err := FindInDocument(v, size, path)
		doc, failed := viewer.Build(ctx, lk, []viewer.Section{{Kind: viewer.JSON, Data: found}}, viewer.Options{Width: w - 2, Depth: uicontext.DefaultDepth})
		return keys.FuncMsg(func() tea.Cmd {
			d.busy, d.err = false, err
			if err == nil && failed == nil {
				d.found, d.count = found, n
				d.View.Show(doc, false)
			}
			return d.search()
		})
	}
}

func (d *Query) Heading() string { return "JSONPath: " + d.item }

func (d *Query) Size(w, h int) (int, int) { return min(w, 140), h }

// Where returns the scroll position.
func (d *Query) Where() string { return uicontext.PositionText(d.View) }

func (d *Query) Typing() bool { return true }

func (d *Query) Lines(w, h int) []string {
	if d.theme != d.app.Theme {
		d.theme = d.app.Theme
		d.View.SetTheme(d.theme)
	}
	lk := d.theme
	d.Input.Width = max(w-5, 1)
	state := lk.Dim.On("  " + termtext.Count(d.count, "value") + ". Examples: $.items[*].name, items[0], ..id, items[?(@.size > 3)].name")
	if d.count > maxFound {
		state = lk.Warn.On(fmt.Sprintf("  first %d of %d values", maxFound, d.count))
	}
	if d.err != nil {
		state = lk.Bad.On("  ! " + d.err.Error())
	}
	path := d.Input.View()
	if d.isPrevious {
		path = lk.Row(lk.Cut(uicontext.SanitizeLine(d.Input.Value()), max(w-25, 1)), true) + lk.Dim.On("  typing replaces it")
	}
	out := []string{" " + lk.Accent.On(lk.Vertical) + " " + path, lk.Cut(state, w), lk.Border.On(strings.Repeat(lk.Horizontal, max(w, 0)))}
	return lk.Lines(append(out, d.View.Lines(w, max(h-len(out), 0))...), w, h)
}

func (d *Query) Keys() keys.Table {
	return slices.Concat(
		keys.Table{{ID: "query.copy", Hint: "copy values", Long: "Copy the values", Run: func() tea.Cmd { return d.app.Copy(string(d.found), "the values") }}},
		keys.Scrolling("query", func() keys.Scroller { return d.View }, "down", "up", "page-down", "page-up"),
		keys.Table{{ID: "query.close", Hint: "close", Long: "Close", Run: func() tea.Cmd {
			d.cancel()
			return d.app.Drop(d)
		}}})
}

func (d *Query) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.View.Scroll, msg)
	key, ok := msg.(tea.KeyMsg)
	if !ok {
		return nil
	}
	if types := key.Type == tea.KeyRunes || key.Type == tea.KeySpace; d.isPrevious && (types || key.Type == tea.KeyBackspace || key.Type == tea.KeyDelete) {
		d.Input.SetValue("")
	}
	d.isPrevious = false
	d.Input.Update(key)
	return d.search()
}

func (d *Query) Background(msg tea.Msg) tea.Cmd {
	if _, ok := msg.(tea.WindowSizeMsg); ok {
		return d.search()
	}
	return nil
}
