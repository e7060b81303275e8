// Package help is the list of keys with its search, and the setup page.
//
// It must not know the key table: the UI supplies the sections.
package help

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Section is a part of the help. A section without lines is hidden.
type Section struct {
	Title string
	Lines []Line
}

// Line is a key with its effect, and why it is disabled or "".
type Line struct {
	Key, Effect, Why string
	SearchText       string // found by the search, but hidden
}

// Dialog is the open help. Its Input holds the search.
type Dialog struct {
	uicontext.BaseDialog
	app    *uicontext.Context
	title  string
	all    []row
	found  []row
	Input  textfield.Field
	window list.Window

	drawn      []string // by draw, at drawnWidth in drawnTheme
	drawnWidth int
	drawnTheme *theme.Theme
}

type row struct {
	heading string
	Line
}

// New returns a help of sections.
func New(a *uicontext.Context, title string, sections []Section) *Dialog {
	d := &Dialog{app: a, title: title, Input: textfield.New(a.Theme)}
	for _, s := range sections {
		if len(s.Lines) == 0 {
			continue
		}
		d.all = append(d.all, row{heading: s.Title})
		for _, l := range s.Lines {
			l.SearchText = strings.ToLower(s.Title + " " + l.Key + " " + l.Effect + " " + l.Why + " " + l.SearchText)
			d.all = append(d.all, row{Line: l})
		}
	}
	d.found = d.all
	return d
}

// Lines returns the lines of a table.
func Lines(t keys.Table) []Line {
	out := make([]Line, 0, len(t))
	for i := range t {
		out = append(out, Line{Key: KeyText(&t[i]), Effect: t[i].Long, SearchText: t[i].ID})
	}
	return out
}

// KeyText returns the keys of a binding, or its command.
func KeyText(b *keys.Binding) string {
	if len(b.Keys) == 0 {
		if len(b.Names) == 0 && strings.Contains(b.ID, ".") { // not in the palette
			return "(no key)"
		}
		return ":" + append(slices.Clone(b.Names), b.ID)[0]
	}
	text := keymap.FormatKey(b.Keys[0])
	for _, k := range b.Keys[1:] {
		if next := text + " " + keymap.FormatKey(k); theme.Width(next) <= keyColumn {
			text = next
		}
	}
	return text
}

func (d *Dialog) Heading() string { return d.title }

func (d *Dialog) Size(w, h int) (int, int) { return min(w, 100), min(h, len(d.all)+4) }

// keyColumn and narrowKeyColumn are widths in cells.
const (
	keyColumn       = 15
	narrowKeyColumn = 6
)

func (d *Dialog) Lines(w, h int) []string {
	lk := d.app.Theme
	if d.drawn == nil || d.drawnWidth != w || d.drawnTheme != lk {
		d.drawn, d.drawnWidth, d.drawnTheme = d.draw(w), w, lk
	}
	out := d.drawn
	d.window.Resize(len(out), h-1)
	from, to := d.window.Visible()
	shown := lk.Lines(out[from:to], w, d.window.PageSize())
	if h <= 1 {
		return shown
	}
	return append(shown, d.lastLine(w))
}

func (d *Dialog) lastLine(w int) string {
	lk := d.app.Theme
	where := ""
	if _, to := d.window.Visible(); d.window.Len() > d.window.PageSize() {
		where = lk.Dim.On(uicontext.FormatCount(to) + "/" + uicontext.FormatCount(d.window.Len()) + " ")
	}
	hint := ""
	if d.Input.Value() == "" {
		hint = lk.Dim.On("type to search")
	}
	d.Input.Width = max(1, w-20-theme.Width(hint))
	return lk.Sides(" "+lk.Accent.On("/")+" "+d.Input.View()+hint, where, w)
}

func (d *Dialog) draw(w int) []string {
	lk := d.app.Theme
	var out []string
	if len(d.found) == 0 {
		return []string{"", " No matching keys."}
	}
	for _, l := range d.found {
		if l.heading != "" {
			if len(out) > 0 {
				out = append(out, "")
			}
			out = append(out, " "+lk.Heading.On(l.heading))
			continue
		}
		out = append(out, d.drawLine(l.Line, w)...)
	}
	return out
}

// drawLine wraps the effect. In a narrow window a long key has a line of its own.
func (d *Dialog) drawLine(l Line, w int) []string {
	lk := d.app.Theme
	column := keyColumn
	if w < 60 {
		column = narrowKeyColumn
	}
	indent, room := theme.Spaces(column+3), max(w-column-3, 1)
	var out []string
	key := "  " + lk.Key.On(lk.Fit(l.Key, column)) + " "
	if theme.Width(l.Key) > column {
		out, key = []string{"  " + lk.Key.On(l.Key)}, indent
	}
	for _, part := range uicontext.WrapText(l.Effect, room, 4) {
		out, key = append(out, key+part), indent
	}
	if l.Why == "" {
		return out
	}
	why := "(" + l.Why + ")"
	if last := out[len(out)-1]; theme.Width(last)+2+theme.Width(why) <= w {
		out[len(out)-1] = last + "  " + lk.Dim.On(why)
		return out
	}
	for _, part := range uicontext.WrapText(why, room, 4) {
		out = append(out, indent+lk.Dim.On(part))
	}
	return out
}

func (d *Dialog) search() {
	d.window.Top()
	d.drawn = nil
	words := strings.Fields(strings.ToLower(d.Input.Value()))
	if len(words) == 0 {
		d.found = d.all
		return
	}
	d.found = nil
	var heading row
	for _, l := range d.all {
		if l.heading != "" {
			heading = l
			continue
		}
		if uicontext.ContainsAll(l.SearchText, words) {
			if heading.heading != "" {
				d.found = append(d.found, heading)
				heading = row{}
			}
			d.found = append(d.found, l)
		}
	}
}

// Keys contains no letters, because they are typed into the search.
func (d *Dialog) Keys() keys.Table {
	return append(keys.Scrolling("help", func() keys.Scroller { return &d.window }),
		keys.Binding{ID: "help.back", Hint: "close", Long: "Clear the search, then close", Run: d.back},
		keys.Binding{ID: "help.close", Long: "Close", Run: d.close})
}

func (d *Dialog) Hints() []keys.Hint {
	return append([]keys.Hint{
		{Key: "a-z", Label: "search"},
		{Key: d.app.KeyOf("help.up") + " " + d.app.KeyOf("help.down"), Label: "scroll"},
	}, d.Keys().WithKeys(d.app.Actions).Hints()...)
}

func (d *Dialog) close() tea.Cmd { return d.app.Drop(d) }

func (d *Dialog) back() tea.Cmd {
	if d.Input.Value() == "" {
		return d.close()
	}
	d.Input.SetValue("")
	d.search()
	return nil
}

func (d *Dialog) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.window.Scroll, msg)
	key, ok := msg.(tea.KeyMsg)
	if ok && d.Input.Value() == "" && key.Type == tea.KeyRunes && key.Runes[0] == '/' {
		key.Runes = key.Runes[1:] // "/" from habit
	}
	if ok && (key.Type != tea.KeyRunes || len(key.Runes) > 0) && d.Input.Update(key) {
		d.search()
	}
	return nil
}

func (d *Dialog) Typing() bool { return true }

// Grammar describes the terms of a filter.
func Grammar() keys.Table {
	return keys.Table{
		{Keys: []string{"word other"}, Long: "rows with both words, in any order"},
		{Keys: []string{"Word"}, Long: "an upper-case letter makes that word case-sensitive"},
		{Keys: []string{`"two words"`}, Long: "one word with a space in it"},
		{Keys: []string{"~letters"}, Long: "these letters in this order; the best match first"},
		{Keys: []string{"server:git"}, Long: "the field contains it; repeat a field for alternatives"},
		{Keys: []string{"mime:text/*"}, Long: "with a *: matches the whole value"},
		{Keys: []string{"server:=git"}, Long: "exactly this value"},
		{Keys: []string{`mime:""`}, Long: "no value"},
		{Keys: []string{"sub:yes"}, Long: "yes or no"},
		{Keys: []string{"updated:<5m"}, Long: "in the last 5 minutes; >1h: longer ago (s, m, h, d)"},
		{Keys: []string{"size:>10k"}, Long: "numbers: < <= > >= =, with k, M, G or Ki, Mi, Gi"},
		{Keys: []string{"ms:>1s"}, Long: "durations in ms, or with s, m, h, d"},
		{Keys: []string{"since:10m"}, Long: "at most 10 minutes ago; also since a time or a date"},
		{Keys: []string{"at:02:06..02:07"}, Long: "in this range, to the end of 02:07; a side may be missing or have a date"},
		{Keys: []string{"arg.path:src"}, Long: "the argument path of a call contains it; arg.a.b: is below a"},
		{Keys: []string{"-word"}, Long: "rows without it; also -mime:json"},
	}
}

// FormKeys describes the keys of forms.
func FormKeys() keys.Table {
	return keys.Table{
		{ID: "form.next", Long: "Next field, or accept the completion"},
		{ID: "form.previous", Long: "Previous field"},
		{ID: "form.down", Long: "Next field, value or completion"},
		{ID: "form.up", Long: "Previous field, value or completion"},
		{ID: "form.enter", Long: "Next field; submit from the last one or a button"},
		{ID: "form.toggle", Long: "Toggle, choose from a list, fill in an object, add an item"},
		{ID: "form.left", Long: "Previous value, or close an object"},
		{ID: "form.right", Long: "Next value, or fill in an object"},
		{ID: "form.empty", Long: "Clear the value, or omit the object"},
		{ID: "form.complete", Long: "Ask the server for completions"},
		{ID: "form.lines", Long: "Switch to several lines, as pasting lines does"},
		{ID: "form.submit", Long: "Submit from any field"},
		{ID: "form.save-call", Long: "Save the call as a file"},
		{ID: "form.raw", Long: "Switch between fields and raw JSON with _meta"},
		{ID: "form.last", Long: "Restore the last values"},
		{ID: "form.add", Long: "Insert a list item below"},
		{ID: "form.remove", Long: "Remove the list item"},
		{ID: "form.move-up", Long: "Move the item or line up"},
		{ID: "form.move-down", Long: "Move the item or line down"},
		{ID: "form.members", Long: "Raw JSON: insert all members of the schema"},
		{ID: "form.schema-down", Long: "Scroll the schema down"},
		{ID: "form.schema-up", Long: "Scroll the schema up"},
		{ID: "form.cancel", Long: "Close completions, then the form"},
	}
}

// MouseKeys describes the mouse.
func MouseKeys() keys.Table {
	return keys.Table{
		{Keys: []string{"click"}, Long: "choose a tab, a row, a field or a value"},
		{Keys: []string{"double click"}, Long: "open the row"},
		{Keys: []string{"right click"}, Long: "open the actions of the row"},
		{Keys: []string{"header click"}, Long: "go to what is counted there"},
		{Keys: []string{"drag"}, Long: "move the border between list and detail"},
		{Keys: []string{"wheel"}, Long: "scroll the part under the mouse"},
	}
}
