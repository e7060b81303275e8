package tui

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
	"goblin/tui/breakpoints"
	"goblin/tui/compare"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

//go:generate go test -run ^TestKeysFileIsCurrent$ . -update

type help struct {
	uicontext.BaseDialog
	app    *app
	title  string
	all    []helpLine
	found  []helpLine
	input  textfield.Field
	window list.Window
}

type helpLine struct {
	heading          string
	key, effect, why string
	searchText       string // lower case
}

func newHelp(a *app) uicontext.Dialog {
	d := &help{app: a, input: textfield.New(a.Theme)}
	focus := a.focus()
	d.title = "Help: " + a.focusName()
	add := func(heading string, lines []helpLine) {
		if len(lines) == 0 {
			return
		}
		d.all = append(d.all, helpLine{heading: heading})
		for _, l := range lines {
			l.searchText = strings.ToLower(heading + " " + l.key + " " + l.effect + " " + l.why + " " + l.searchText)
			d.all = append(d.all, l)
		}
	}
	groups := make(map[string][]helpLine)
	for i := range a.keys {
		if b := &a.keys[i]; b.Where&focus != 0 {
			also := strings.Join(b.Names, " ") + " " + b.ID + " " + b.SearchWords
			groups[b.Group] = append(groups[b.Group], helpLine{key: helpKeys(b), effect: b.Long, why: uicontext.SanitizeLine(a.whyDisabled(b)), searchText: also})
		}
	}
	for _, name := range groupOrder(focus) {
		add(name, groups[name])
	}
	add("Filter ("+a.KeyOf("filter")+")", helpLines(grammar()))
	var fields []helpLine
	for _, f := range a.Panes[a.Open].Rows().FilterFields() {
		fields = append(fields, helpLine{key: f.Label(), effect: f.Help})
	}
	name, _ := a.Panes[a.Open].Tab()
	add("Fields of "+name, fields)
	for _, t := range a.dialogKeys() {
		add(t.title, helpLines(t.keys))
	}
	add("Mouse", helpLines(mouseKeys()))
	d.found = d.all
	return d
}

func groupOrder(in keymap.Place) []string {
	if in == keymap.InLogs {
		return []string{groupLogs, groupFind, groupDo, groupKeep, groupText, groupGo, groupMove, groupScreen}
	}
	if in == keymap.InDetail {
		return []string{groupText, groupDo, groupKeep, groupFind, groupGo, groupMove, groupLogs, groupScreen}
	}
	return []string{groupDo, groupFind, groupKeep, groupText, groupGo, groupMove, groupLogs, groupScreen}
}

func helpLines(t keys.Table) []helpLine {
	out := make([]helpLine, 0, len(t))
	for i := range t {
		out = append(out, helpLine{key: helpKeys(&t[i]), effect: t[i].Long, searchText: t[i].ID})
	}
	return out
}

func helpKeys(b *keys.Binding) string {
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

func (a *app) focusName() string {
	name, _ := a.Panes[a.Open].Tab()
	if a.Inside {
		return "Detail of " + name
	}
	return name
}

func (d *help) Heading() string { return d.title }

func (d *help) Size(w, h int) (int, int) { return min(w, 100), min(h, len(d.all)+4) }

const keyColumn = 15

func (d *help) Lines(w, h int) []string {
	lk := d.app.Theme
	out := d.draw(w)
	d.window.Resize(len(out), h-1)
	from, to := d.window.Visible()
	shown := lk.Lines(out[from:to], w, d.window.PageSize())
	if h <= 1 {
		return shown
	}
	return append(shown, d.lastLine(w))
}

func (d *help) lastLine(w int) string {
	lk := d.app.Theme
	where := ""
	if _, to := d.window.Visible(); d.window.Len() > d.window.PageSize() {
		where = lk.Dim.On(uicontext.FormatCount(to) + "/" + uicontext.FormatCount(d.window.Len()) + " ")
	}
	hint := ""
	if d.input.Value() == "" {
		hint = lk.Dim.On("type to search")
	}
	d.input.Width = max(1, w-20-theme.Width(hint))
	return lk.Sides(" "+lk.Accent.On("/")+" "+d.input.View()+hint, where, w)
}

func (d *help) draw(w int) []string {
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
		line := "  " + lk.Key.On(lk.Fit(l.key, keyColumn)) + " " + l.effect
		if l.why == "" {
			out = append(out, line)
			continue
		}
		why := "(" + l.why + ")"
		if theme.Width(line)+2+theme.Width(why) <= w {
			out = append(out, line+"  "+lk.Dim.On(why))
			continue
		}
		out = append(out, line)
		for _, part := range uicontext.WrapText(why, max(w-keyColumn-3, 1), 3) {
			out = append(out, theme.Spaces(keyColumn+3)+lk.Dim.On(part))
		}
	}
	return out
}

func (d *help) search() {
	d.window.Top()
	words := strings.Fields(strings.ToLower(d.input.Value()))
	if len(words) == 0 {
		d.found = d.all
		return
	}
	d.found = nil
	var heading helpLine
	for _, l := range d.all {
		if l.heading != "" {
			heading = l
			continue
		}
		if uicontext.ContainsAll(l.searchText, words) {
			if heading.heading != "" {
				d.found = append(d.found, heading)
				heading = helpLine{}
			}
			d.found = append(d.found, l)
		}
	}
}

// Keys contains no letters, because they are typed into the search.
func (d *help) Keys() keys.Table {
	return append(keys.Scrolling("help", func() keys.Scroller { return &d.window }),
		keys.Binding{ID: "help.back", Hint: "close", Long: "Clear the search, then close", Run: d.back},
		keys.Binding{ID: "help.close", Long: "Close", Run: d.close})
}

func (d *help) Hints() []keys.Hint {
	return append(d.Keys().WithKeys(d.app.Actions).Hints(), keys.Hint{Key: "a-z", Label: "search"})
}

func (d *help) close() tea.Cmd { return d.app.Drop(d) }

func (d *help) back() tea.Cmd {
	if d.input.Value() == "" {
		return d.close()
	}
	d.input.SetValue("")
	d.search()
	return nil
}

func (d *help) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.window.Scroll, msg)
	key, ok := msg.(tea.KeyMsg)
	if ok && d.input.Value() == "" && key.Type == tea.KeyRunes && key.Runes[0] == '/' {
		key.Runes = key.Runes[1:] // "/" from habit
	}
	if ok && (key.Type != tea.KeyRunes || len(key.Runes) > 0) && d.input.Update(key) {
		d.search()
	}
	return nil
}

func (d *help) Typing() bool { return true }

func grammar() keys.Table {
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

func formKeys() keys.Table {
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

func mouseKeys() keys.Table {
	return keys.Table{
		{Keys: []string{"click"}, Long: "choose a tab, a row, a field or a value"},
		{Keys: []string{"double click"}, Long: "open the row"},
		{Keys: []string{"wheel"}, Long: "scroll the part under the mouse"},
	}
}

func (a *app) dialogKeys() []titledKeys {
	by := func(title, action string) string { return title + " (" + a.KeyOf(action) + ")" }
	all := []titledKeys{
		{"Filter bar", a.filterKeys()},
		{"Forms", formKeys()},
		{by("Commands", "palette"), (*palette)(nil).Keys()},
		{by("Help", "help"), (*help)(nil).Keys()},
		{by("Clients", "clients"), new(dialog.Clients).ListKeys()},
		{by("Subscriptions", "subscriptions"), new(dialog.Subscriptions).ListKeys()},
		{"Filter of a dialog", (*dialog.Search)(nil).Keys()},
		{"Lists of values", (*dialog.FilterList)(nil).Keys()},
		{"Request and response", (*pane.Exchange)(nil).Keys()},
		{by("Last calls", "past"), new(dialog.PastCalls).Keys()},
		{by("Comparison", "compare"), compare.Keys()},
		{by("Breakpoints", "rules"), breakpoints.Keys()},
		{by("Copy as", "copy-content"), new(dialog.Snippets).Keys()},
		{by("Profiles", "view"), (*dialog.ProfileChooser)(nil).Keys()},
		{by("JSON path", "query"), (*dialog.Query)(nil).Keys()},
		{"Text input", (*dialog.TextPrompt)(nil).Keys()},
		{"Confirmations", (&dialog.Confirm{Permanent: "permanently", Always: "do not ask again"}).Keys()},
		{"URL requests", (*dialog.URLQuestion)(nil).Keys()},
		{"Sampling requests", (*dialog.SamplingQuestion)(nil).Keys()},
		{by("Log in", "log-in"), pane.LoginKeys()},
		{by("Config mistakes", "mistakes"), dialog.MistakesKeys()},
		{"Setup", (*setup)(nil).Keys()},
	}
	for i := range all {
		all[i].keys.WithKeys(a.Actions)
	}
	return all
}

type titledKeys struct {
	title string
	keys  keys.Table
}
