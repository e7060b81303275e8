package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/look"
)

// help lists the keys that work where the focus was, and why one does not.
type help struct {
	app    *app
	title  string
	all    []helpLine
	found  []helpLine // of all, what the search leaves
	input  field
	typed  bool // the search has the focus
	off    int
	height int // of the list when it was last drawn
}

// helpLine is a heading, or a key with what it does.
type helpLine struct {
	heading        string
	key, does, why string
	low            string // what a search looks in
}

func newHelp(a *app) dialog {
	d := &help{app: a, input: newField(a.look), height: 1}
	focus := a.focus()
	d.title = "Help: " + a.focusName()
	add := func(heading string, lines []helpLine) {
		if len(lines) == 0 {
			return
		}
		d.all = append(d.all, helpLine{heading: heading})
		for _, l := range lines {
			l.low = strings.ToLower(heading + " " + l.key + " " + l.does + " " + l.why)
			d.all = append(d.all, l)
		}
	}
	var here, everywhere []helpLine
	for i := range a.keys.all {
		b := &a.keys.all[i]
		if b.in&focus == 0 {
			continue
		}
		l := helpLine{key: b.keyNames(), does: b.long, why: clean(a.why(b.id))}
		if b.in&anywhere == anywhere || b.in == inLists {
			everywhere = append(everywhere, l)
		} else {
			here = append(here, l)
		}
	}
	add(a.focusName(), here)
	add("Everywhere", everywhere)
	add("Filter (/)", helpLines(grammar()))
	var fields []helpLine
	for _, f := range a.panes[a.open].rows().columns() {
		fields = append(fields, helpLine{key: f.Name + ":", does: f.Help})
	}
	name, _ := a.panes[a.open].tab()
	add("Fields of "+name, fields)
	add("While the filter is typed", barActs().lines())
	add("Forms", helpLines(formKeys()))
	for _, t := range dialogActs() {
		add(t.title, t.acts.lines())
	}
	add("Mouse", helpLines(mouseKeys()))
	d.found = d.all
	return d
}

func helpLines(all []explained) []helpLine {
	out := make([]helpLine, 0, len(all))
	for _, e := range all {
		out = append(out, helpLine{key: e.key, does: e.does})
	}
	return out
}

// focusName says where keys work now.
func (a *app) focusName() string {
	name, _ := a.panes[a.open].tab()
	if a.inside {
		return "Detail of " + name
	}
	return name
}

func (d *help) heading() string { return d.title }

func (d *help) size(w, h int) (int, int) { return min(w, 100), min(h, len(d.all)+4) }

// keyColumn is how wide the keys are shown.
const keyColumn = 15

func (d *help) lines(w, h int) []string {
	lk := d.app.look
	out := d.draw(w)
	d.height = max(h-1, 1)
	d.off = max(0, min(d.off, len(out)-d.height))
	shown := lk.Lines(out[d.off:min(len(out), d.off+d.height)], w, d.height)
	if h <= 1 {
		return shown
	}
	return append(shown, d.last(w, len(out)))
}

// last is the line of the search, or of how far down the list is.
func (d *help) last(w, total int) string {
	lk := d.app.look
	where := ""
	if total > d.height {
		where = lk.Dim.On(grouped(min(d.off+d.height, total)) + "/" + grouped(total) + " ")
	}
	switch {
	case d.typed:
		d.input.Width = max(1, w-20)
		return lk.Sides(" "+lk.Accent.On("/")+" "+d.input.View(), where, w)
	case d.input.Value() != "":
		return lk.Sides(" / "+clean(d.input.Value())+"  "+lk.Dim.On("esc shows all again"), where, w)
	}
	return lk.Sides(" "+lk.Dim.On("/ searches, esc closes"), where, w)
}

func (d *help) draw(w int) []string {
	lk := d.app.look
	var out []string
	if len(d.found) == 0 {
		return []string{"", " Nothing here says " + clean(d.input.Value()) + "."}
	}
	for _, l := range d.found {
		if l.heading != "" {
			if len(out) > 0 {
				out = append(out, "")
			}
			out = append(out, " "+lk.Heading.On(l.heading))
			continue
		}
		line := "  " + lk.Key.On(lk.Fit(l.key, keyColumn)) + " " + l.does
		if l.why == "" {
			out = append(out, line)
			continue
		}
		why := lk.Dim.On("(" + l.why + ")")
		if look.Width(line)+2+look.Width(why) <= w {
			out = append(out, line+"  "+why)
		} else {
			out = append(out, line, look.Blank(keyColumn+3)+why)
		}
	}
	return out
}

// search leaves the lines with all words, and the headings above them.
func (d *help) search() {
	d.off = 0
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
		if containsAll(l.low, words) {
			if heading.heading != "" {
				d.found = append(d.found, heading)
				heading = helpLine{}
			}
			d.found = append(d.found, l)
		}
	}
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func (d *help) update(msg tea.Msg) (tea.Cmd, bool) {
	switch msg := msg.(type) {
	case tea.MouseMsg:
		switch msg.Button {
		case tea.MouseButtonWheelUp:
			d.off = max(0, d.off-3)
		case tea.MouseButtonWheelDown:
			d.off += 3
		}
		return nil, false
	case tea.KeyMsg:
		if d.typed {
			return d.typeKey(msg), false
		}
		return nil, d.key(msg)
	}
	return nil, false
}

// key handles keys outside of the search; true closes.
func (d *help) key(msg tea.KeyMsg) bool {
	id := helpActs().of(msg)
	scrolled(id, func(by int) { d.off += by }, func(by float64) { d.off += int(by * float64(d.height)) }, func(bottom bool) {
		d.off = 0
		if bottom {
			d.off = 1 << 20
		}
	})
	switch id {
	case "search":
		d.typed = true
	case "back":
		if d.input.Value() == "" {
			return true
		}
		d.input.Set("")
		d.search()
	case "close":
		return true
	}
	d.off = max(0, d.off) // drawing knows the other end
	return false
}

func (d *help) typeKey(msg tea.KeyMsg) tea.Cmd {
	switch searchActs().of(msg) {
	case "clear":
		d.input.Set("")
		d.search()
		d.typed = false
		return nil
	case "keep":
		d.typed = false
		return nil
	case "down":
		d.off++
		return nil
	case "up":
		d.off = max(0, d.off-1)
		return nil
	}
	if d.input.Update(msg) {
		d.search()
	}
	return nil
}

func (d *help) background(tea.Msg) tea.Cmd { return nil }
func (d *help) typing() bool               { return d.typed }

func (d *help) hints() []hint {
	if d.typed {
		return searchActs().hints()
	}
	return helpActs().hints()
}
