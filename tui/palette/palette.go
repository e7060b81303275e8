package palette

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/sahilm/fuzzy"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/query"
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
	all          []Command
	history      *History
	Input        textfield.Field
	list         []choice
	window       list.Window
	note         string // why the last Enter ran nothing
	historyIndex int    // or -1

	entries      *dialog.EntrySearch // of "open", nil until built
	searching    bool                // a search is running
	enterPending bool                // before the results arrived
	gen          int
	cancel       context.CancelFunc
}

type choice struct {
	command *Command
	arg     string
	entry   *registry.Entry // result of "open"
	name    string          // as shown and as completed by Tab
	why     string
}

// New returns a palette of commands. It adds those that it runs to the history.
func New(app *pane.Layout, all []Command, history *History) *Dialog {
	d := &Dialog{app: app, all: all, history: history, Input: textfield.New(app.Theme), historyIndex: -1, cancel: func() {}}
	d.match()
	return d
}

// command returns the command with the longest name that text equals or starts with,
// followed by a space.
func (d *Dialog) command(text string) (c *Command, arg string) {
	longest := -1
	for i := range d.all {
		for _, name := range d.all[i].Names {
			rest, ok := cutFolded(text, name)
			if !ok || len(name) < longest {
				continue
			}
			hasArg := strings.TrimSpace(rest) != ""
			takes := d.all[i].Arg != ""
			// A binding and a command with an argument may share a name.
			if hasArg && (!takes || rest[0] != ' ') || len(name) == longest && takes != (hasArg || strings.HasPrefix(rest, " ")) {
				continue
			}
			longest, c, arg = len(name), &d.all[i], strings.TrimSpace(rest)
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
		if c.Names[0] == "open" {
			return d.search(c, arg)
		}
		d.arguments(c, arg)
		return nil
	}
	text = strings.TrimSpace(text)
	d.list = d.rankCommands(text)
	if text == "" {
		slices.SortStableFunc(d.list, func(x, y choice) int { return cmp.Compare(x.listRank(), y.listRank()) })
	}
	return nil
}

func (d *Dialog) arguments(c *Command, arg string) {
	var all []string
	if c.Args != nil {
		all = c.Args()
	}
	add := func(value string) {
		d.list = append(d.list, choice{command: c, arg: value, name: c.Names[0] + " " + value, why: c.whyNot(value)})
	}
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
	case c.command.CursorOnly:
		return 1
	}
	return 0
}

// There may be very many entries.
func (d *Dialog) search(c *Command, text string) tea.Cmd {
	if text == "" {
		return nil
	}
	d.searching = true
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.cancel = cancel
	gen, where, snap, now := d.gen, d.entries, d.app.Reg.Load(), d.app.Now()
	return func() tea.Msg {
		defer cancel()
		if where == nil {
			where = dialog.NewEntrySearch(snap)
		}
		found := where.Search(ctx, text, now)
		return keys.FuncMsg(func() tea.Cmd {
			d.entries = where
			if gen != d.gen {
				return nil
			}
			d.searching = false
			for _, e := range found {
				d.list = append(d.list, choice{command: c, arg: e.Listed, entry: e, name: uicontext.SanitizeLine(e.Listed)})
			}
			d.window.Reset(len(d.list))
			if d.enterPending && len(d.list) > 0 {
				return d.enter()
			}
			return nil
		})
	}
}

// Quality of a match, best first.
const (
	fitsName = iota
	fitsStart
	fitsLetters
	fitsWords
)

// rankCommands returns the commands that match a text. Names come first, then prefixes,
// letters in order, and words of descriptions. Within a rank, enabled commands come
// first.
func (d *Dialog) rankCommands(text string) []choice {
	type hit struct {
		choice
		fits, score int
	}
	var hits []hit
	low := strings.ToLower(text)
	letters := strings.ReplaceAll(low, " ", "")
	words := strings.Fields(low)
	for i := range d.all {
		c := &d.all[i]
		best := hit{fits: fitsWords + 1}
		for _, m := range fuzzy.Find(letters, c.Names) {
			h := hit{fits: fitsLetters, score: m.Score}
			switch {
			case m.Str == low:
				h.fits = fitsName
			case strings.HasPrefix(m.Str, low):
				h.fits = fitsStart
			}
			if h.fits < best.fits || h.fits == best.fits && h.score > best.score {
				best = h
			}
		}
		if explained := strings.ToLower(c.Long); best.fits > fitsWords && uicontext.ContainsAll(explained, words) {
			best.fits = fitsWords
			for _, m := range fuzzy.Find(letters, []string{explained}) {
				best.score = m.Score
			}
		}
		if best.fits <= fitsWords {
			best.choice = choice{command: c, name: c.Usage(), why: c.whyNot("")}
			hits = append(hits, best)
		}
	}
	if text != "" {
		slices.SortStableFunc(hits, func(x, y hit) int {
			return cmp.Or(cmp.Compare(x.fits, y.fits), cmp.Compare(min(len(x.why), 1), min(len(y.why), 1)), cmp.Compare(y.score, x.score))
		})
	}
	out := make([]choice, len(hits))
	for i, h := range hits {
		out[i] = h.choice
	}
	return out
}

func (d *Dialog) nearest(text string) string {
	text, _, _ = strings.Cut(text, " ")
	f := suggest.New(text)
	for i := range d.all {
		for _, name := range d.all[i].Names {
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

func (d *Dialog) row(c *choice, w int) string {
	lk := d.app.Theme
	if c.entry != nil {
		kind := lk.Fit(c.entry.Kind.String(), 9)
		server := uicontext.SanitizeLine(c.entry.Server)
		server = lk.Fit(server, min(theme.Width(server), 16))
		return lk.Dim.On(kind) + " " + lk.Middle(c.name, max(w-theme.Width(server)-12, 0)) + " " + lk.Dim.On(server) + " "
	}
	key := ""
	if len(c.command.Keys) > 0 {
		key = keymap.FormatKey(c.command.Keys[0])
	}
	name := uicontext.SanitizeLine(c.name)
	column := max(18, min(theme.Width(name), w/2))
	room := max(w-column-2-theme.Width(key)-2, 0)
	text := c.command.Long
	if c.command.About != nil {
		text = cmp.Or(c.command.About(c.arg), text)
	}
	style := theme.Style("")
	if c.why != "" {
		style = lk.Dim
		why := "(" + uicontext.SanitizeLine(c.why) + ")"
		if theme.Width(text)+2+theme.Width(why) > room {
			text = why
		} else {
			text += "  " + why
		}
	}
	return style.On(lk.Fit(name, column)+"  "+lk.Fit(text, room)) + " " + lk.Key.On(key) + " "
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
	return d.app.Drop(d)
}

func (d *Dialog) setInput(text string) tea.Cmd {
	d.Input.SetValue(text)
	return d.match()
}

func (d *Dialog) walkHistory(by int) tea.Cmd {
	n := len(d.history.lines)
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
	return d.setInput(d.history.lines[d.historyIndex])
}

func (d *Dialog) complete() tea.Cmd {
	if len(d.list) == 0 {
		if near := d.nearest(d.Input.Value()); near != "" && !d.searching {
			return d.setInput(near)
		}
		return nil
	}
	c := &d.list[d.window.Cursor()]
	switch {
	case c.entry != nil:
		return d.setInput("open " + c.name)
	case c.arg == "" && c.command.Arg != "":
		return d.setInput(c.command.Names[0] + " ")
	case c.arg == "":
		return d.setInput(c.command.Names[0])
	}
	return d.setInput(c.name)
}

func (d *Dialog) enter() tea.Cmd {
	if len(d.list) == 0 {
		c, arg := d.command(d.Input.Value())
		switch text := strings.TrimSpace(d.Input.Value()); {
		case d.searching:
			d.enterPending = true
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
	if _, arg := d.command(d.Input.Value()); c.entry != nil && d.window.Cursor() == 0 && d.note == "" && !query.SpellsName(arg, c.entry.Listed) && !query.SpellsName(arg, c.entry.Label) {
		d.note = "no entry named " + uicontext.SanitizeLine(arg) + "; press " + d.app.KeyOf("palette.run") + " again for " + c.name
		return nil
	}
	if c.command.Arg != "" && c.arg == "" && !c.command.ArgOptional {
		return d.setInput(c.command.Names[0] + " ")
	}
	d.close()
	d.history.add(strings.TrimSpace(c.command.Names[0] + " " + c.arg))
	if c.entry != nil {
		d.app.Opened = true
		return d.app.GoToListed(c.entry.Kind, c.entry.Listed)
	}
	return c.command.Run(c.arg)
}

func (d *Dialog) Typing() bool { return true }
