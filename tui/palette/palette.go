package palette

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/sahilm/fuzzy"

	"goblin/registry/keymap"
	"goblin/registry/suggest"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// Dialog is the open palette. Its Input holds the typed line.
type Dialog struct {
	uicontext.BaseDialog
	app          *pane.Layout
	o            Options
	Input        textfield.Field
	list         []choice
	window       list.Window
	note         string // why the last Enter ran nothing
	historyIndex int    // or -1

	source       func() source // built by the first search
	searching    bool          // a search is running
	enterPending bool          // before the results arrived
	gen          int
	cancel       context.CancelFunc
}

// choice is a line of the palette.
type choice struct {
	kind, name, about string
	right             string   // behind the name
	key               string   // or ""
	why               string   // why it is disabled, or ""
	complete          string   // the input after Tab
	names             []string // of an entry, which the input should spell
	cursorOnly        bool
	asks              bool // Enter asks for the argument
	used              used
	run               func() tea.Cmd

	from, fits, score, recency int
}

// New returns a palette.
func New(app *pane.Layout, o Options) *Dialog {
	d := &Dialog{app: app, o: o, Input: textfield.New(app.Theme), historyIndex: -1, cancel: func() {}}
	snap := app.Reg.Load()
	d.source = sync.OnceValue(func() source {
		s := source{entries: dialog.NewEntrySearch(snap)}
		if o.ConfigKeys != nil {
			s.keys = o.ConfigKeys()
		}
		return s
	})
	d.match()
	return d
}

// command returns the command with the longest name that text equals or starts with,
// followed by a space.
func (d *Dialog) command(text string) (c *Command, arg string) {
	longest := -1
	for i := range d.o.Commands {
		for _, name := range d.o.Commands[i].Names {
			rest, ok := cutFolded(text, name)
			if !ok || len(name) < longest {
				continue
			}
			hasArg := strings.TrimSpace(rest) != ""
			takes := d.o.Commands[i].Arg != ""
			// A binding and a command with an argument may share a name.
			if hasArg && (!takes || rest[0] != ' ') || len(name) == longest && takes != (hasArg || strings.HasPrefix(rest, " ")) {
				continue
			}
			longest, c, arg = len(name), &d.o.Commands[i], strings.TrimSpace(rest)
		}
	}
	return c, arg
}

func cutFolded(text, prefix string) (rest string, ok bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

func (d *Dialog) match() tea.Cmd {
	cmd := d.fill()
	d.window.Reset(len(d.list))
	return cmd
}

func (d *Dialog) fill() tea.Cmd {
	d.cancel()
	d.gen++
	d.list = nil
	d.note, d.searching, d.enterPending = "", false, false
	text := strings.TrimLeft(d.Input.Value(), " ")
	if _, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		text = "line " + text
	}
	if c, arg := d.command(text); c != nil && c.Arg != "" && strings.Contains(text, " ") {
		if c.Names[0] != "open" {
			d.arguments(c, arg)
			return nil
		}
		if arg == "" {
			return nil
		}
		return d.search(arg, false, func(f found) {
			for _, e := range f.entries {
				d.list = append(d.list, d.entryChoice(e, false))
			}
			d.window.Reset(len(d.list))
		})
	}
	text = strings.TrimSpace(text)
	p := newPattern(text)
	all := d.commands(&p)
	if text != "" {
		d.sort(all)
		d.list = all
		return d.search(text, true, func(f found) { d.merge(text, f) })
	}
	d.list = d.recent()
	recent := d.list
	all = slices.DeleteFunc(all, func(c choice) bool {
		return slices.ContainsFunc(recent, func(r choice) bool { return r.used.line == c.used.line && r.name == c.name })
	})
	slices.SortStableFunc(all, func(x, y choice) int { return cmp.Compare(x.listRank(), y.listRank()) })
	d.list = append(d.list, all...)
	return nil
}

func (d *Dialog) arguments(c *Command, arg string) {
	var all []string
	if c.Args != nil {
		all = c.Args()
	}
	add := func(value string) { d.list = append(d.list, d.commandChoice(c, value)) }
	if arg == "" {
		for _, v := range all {
			add(v)
		}
		return
	}
	exact := slices.Contains(all, arg)
	if exact || c.Names[0] == "mime" || c.Names[0] == "server" {
		add(arg) // as typed: filters accept parts and globs
	}
	for _, m := range fuzzy.Find(arg, all) {
		if m.Str != arg {
			add(m.Str)
		}
	}
	if len(d.list) == 0 {
		add(arg)
	}
}

// Disabled choices come last, commands about the cursor before them.
func (c *choice) listRank() int {
	switch {
	case c.why != "":
		return 2
	case c.cursorOnly:
		return 1
	}
	return 0
}

func (d *Dialog) nearest(text string) string {
	text, _, _ = strings.Cut(text, " ")
	f := suggest.New(text)
	for i := range d.o.Commands {
		for _, name := range d.o.Commands[i].Names {
			f.Add(name, name)
		}
	}
	return append(f.Best(), "")[0]
}

func (d *Dialog) Heading() string { return "Command" }

func (d *Dialog) Size(w, h int) (int, int) { return min(w, 92), min(h, 20) }

func (d *Dialog) Lines(w, h int) []string {
	lk := d.app.Theme
	d.Input.Width = max(1, w-6)
	out := []string{" " + lk.Accent.On(":") + " " + d.Input.View(), " " + d.message()}
	rows := d.window.Lines(lk, h-len(out), func(i int) string { return d.row(&d.list[i], w-2) })
	return lk.Lines(append(out, rows...), w, h)
}

func (d *Dialog) message() string {
	lk := d.app.Theme
	text := strings.TrimSpace(d.Input.Value())
	c, arg := d.command(d.Input.Value())
	switch {
	case d.note != "":
		return lk.Bad.On("! " + d.note)
	case d.searching:
		return lk.Dim.On("searching" + lk.Ellipsis)
	case len(d.list) > 0:
		return ""
	case c != nil && c.Arg != "" && arg == "":
		return lk.Dim.On(c.Usage() + ": " + c.Long)
	case c != nil && c.Names[0] == "open":
		return "No entry named " + uicontext.SanitizeLine(arg) + "."
	case text != "":
		return d.unknown(text)
	}
	return ""
}

func (d *Dialog) unknown(text string) string {
	message := "unknown command: " + uicontext.SanitizeLine(text)
	if near := d.nearest(text); near != "" {
		message += "; did you mean " + near + "? (tab)"
	}
	return message
}

// kindWidth is the width of the longest kind.
const kindWidth = 8

func (d *Dialog) row(c *choice, w int) string {
	lk := d.app.Theme
	kind := ""
	if w >= 50 {
		kind = lk.Dim.On(lk.Fit(c.kind, kindWidth)) + " "
		w -= kindWidth + 1
	}
	if c.right != "" {
		right := lk.Fit(c.right, min(theme.Width(c.right), 16))
		return kind + lk.Middle(c.name, max(w-theme.Width(right)-2, 0)) + " " + lk.Dim.On(right) + " "
	}
	key := keymap.FormatKey(c.key)
	name := uicontext.SanitizeLine(c.name)
	column := max(18, min(theme.Width(name), w/2))
	room := max(w-column-2-theme.Width(key)-2, 0)
	text, style := uicontext.SanitizeLine(c.about), theme.Style("")
	if c.why != "" {
		style = lk.Dim
		why := "(" + uicontext.SanitizeLine(c.why) + ")"
		if theme.Width(text)+2+theme.Width(why) > room {
			text = why
		} else {
			text += "  " + why
		}
	}
	return kind + style.On(lk.Fit(name, column)+"  "+lk.Fit(text, room)) + " " + lk.Key.On(key) + " "
}

func (d *Dialog) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.MouseMsg:
		if d.window.Mouse(msg, 2) {
			return d.enter()
		}
	case tea.KeyMsg:
		if d.Input.Update(msg) {
			d.historyIndex = -1
			return d.match()
		}
	}
	return nil
}

func (d *Dialog) Keys() keys.Table {
	move := func(by int) func() tea.Cmd { return func() tea.Cmd { return d.upDown(by) } }
	row := func(by int) func() tea.Cmd { return func() tea.Cmd { d.window.Move(by); return nil } }
	walk := func(by int) func() tea.Cmd { return func() tea.Cmd { return d.walkHistory(by) } }
	return slices.Concat(keys.Table{
		{ID: "palette.run", Hint: "run", Long: "Run the command under the cursor", Run: d.enter},
		{ID: "palette.complete", Hint: "complete", Long: "Complete the command under the cursor", Run: d.complete},
		{ID: "palette.up", Hint: "choose, history", Long: "One line up; without input, the previous command", Run: move(-1)},
		{ID: "palette.down", Long: "One line down, or the next command", Run: move(1)},
		{ID: "palette.row-up", Long: "One line up", Run: row(-1)},
		{ID: "palette.row-down", Long: "One line down", Run: row(1)},
	}, keys.Scrolling("palette", func() keys.Scroller { return list.Cursor{List: &d.window} }, "page-up", "page-down"), keys.Table{
		{ID: "palette.earlier", Long: "Previous command of the history", Run: walk(-1)},
		{ID: "palette.later", Long: "Next command of the history", Run: walk(1)},
		{ID: "palette.close", Hint: "close", Long: "Close", Run: d.close},
	})
}

func (d *Dialog) upDown(by int) tea.Cmd {
	if d.historyIndex >= 0 || by < 0 && d.Input.Value() == "" && d.window.Cursor() == 0 {
		return d.walkHistory(by)
	}
	d.window.Move(by)
	return nil
}

func (d *Dialog) close() tea.Cmd {
	d.cancel()
	d.gen++ // drops the answer of a running search
	return d.app.Drop(d)
}

func (d *Dialog) setInput(text string) tea.Cmd {
	d.Input.SetValue(text)
	return d.match()
}

func (d *Dialog) walkHistory(by int) tea.Cmd {
	n := len(d.o.History.used)
	if n == 0 {
		return nil
	}
	at := d.historyIndex + by
	if d.historyIndex < 0 {
		if by > 0 {
			return nil
		}
		at = n - 1
	}
	if at >= n {
		d.historyIndex = -1
		return d.setInput("")
	}
	d.historyIndex = max(0, at)
	return d.setInput(d.o.History.used[d.historyIndex].line)
}

func (d *Dialog) complete() tea.Cmd {
	if len(d.list) == 0 {
		if near := d.nearest(d.Input.Value()); near != "" && !d.searching {
			return d.setInput(near)
		}
		return nil
	}
	return d.setInput(d.list[d.window.Cursor()].complete)
}

// isCertain reports whether Enter can run the choice before the search ends.
func (d *Dialog) isCertain() bool {
	at := d.window.Cursor()
	return at > 0 || at < len(d.list) && d.list[at].fits == fitsName && d.list[at].from == fromCommands
}

func (d *Dialog) enter() tea.Cmd {
	if d.searching && !d.isCertain() {
		d.enterPending = true
		return nil
	}
	d.enterPending = false
	if len(d.list) == 0 {
		c, arg := d.command(d.Input.Value())
		switch text := strings.TrimSpace(d.Input.Value()); {
		case text == "":
		case c == nil:
			d.note = d.unknown(text)
		case arg == "":
			d.note = c.Usage() + ": " + c.Long
		}
		return nil
	}
	c := d.list[d.window.Cursor()]
	if c.why != "" {
		d.note = uicontext.SanitizeLine(c.why)
		return nil
	}
	if c.names != nil && d.window.Cursor() == 0 && d.note == "" && !d.isMeant(&c) {
		d.note = "no entry named " + uicontext.SanitizeLine(d.typedName()) + "; press " + d.app.KeyOf("palette.run") + " again for " + c.name
		return nil
	}
	if c.asks {
		return d.setInput(c.complete)
	}
	d.close()
	d.o.History.add(c.used)
	return tea.Batch(d.o.Leave(), c.run())
}

// isMeant reports whether the input may spell an entry, so that Enter uses it at once.
func (d *Dialog) isMeant(c *choice) bool {
	text := d.typedName()
	return text == "" || spells(text, c.names...)
}

// typedName returns the input without the command "open".
func (d *Dialog) typedName() string {
	text := strings.TrimSpace(d.Input.Value())
	if c, arg := d.command(text); c != nil && c.Names[0] == "open" && arg != "" {
		return arg
	}
	return text
}

func (d *Dialog) Typing() bool { return true }
