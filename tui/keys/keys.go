// Package keys maps keys to actions and generates help and footer.
//
// Keys, footer, help, palette and KEYS.md are made from the same rows.
//
// It owns the rows' form and how keys are found and shown; which actions there are,
// and on which keys and where, is goblin/registry/keymap's. It knows no pane,
// no dialog and no catalog: what a row does is a function of the table's maker.
// Everything belongs to the goroutine of one screen's Update and View.
package keys

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
)

// Binding is one thing that can be done. Group, Names and SearchWords are for the keys of panes
// only.
type Binding struct {
	ID          string
	Keys        []string // as Bubble Tea spells them; the first is shown. See [Table.WithKeys]
	Hint        string   // in the footer; "" is not shown there
	Long        string   // in help and KEYS.md
	Where       keymap.Place
	Group       string         // its heading in help
	Names       []string       // in the palette; the first is shown
	SearchWords string         // other words for what it does, for who looks for it
	WhyDisabled func() string  // why it cannot be done now; nil and "": it can
	Run         func() tea.Cmd // nil: each pane does something else
}

// Handler is what a pane does for a binding that the table leaves to the panes.
type Handler struct {
	WhyDisabled func() string
	Run         func() tea.Cmd
	Label       func() string // in the footer, where that is not always the same
}

// DisabledUnless returns a WhyDisabled function that returns why unless ok returns true.
func DisabledUnless(why string, ok func() bool) func() string {
	return func() string {
		if ok() {
			return ""
		}
		return why
	}
}

// AlwaysDisabled returns a WhyDisabled function that always returns why.
func AlwaysDisabled(why string) func() string { return func() string { return why } }

// Table is a list of bindings.
type Table []Binding

// WithKeys sets the keys and places of the bindings from the actions with their ids.
func (t Table) WithKeys(actions keymap.Map) Table {
	for i := range t {
		a := actions[t[i].ID]
		t[i].Keys, t[i].Where = a.Keys, a.Where
	}
	return t
}

// KeyName returns the name of a key as bindings spell it. It returns "" for text that
// arrived at once, even if the text is the name of a key.
func KeyName(key tea.KeyMsg) string {
	switch {
	case key.Type == tea.KeyRunes && (len(key.Runes) > 1 || key.Paste):
		return ""
	case key.Type == tea.KeySpace:
		return " "
	}
	return key.String()
}

// InGroup sets the group of all bindings.
func (t Table) InGroup(group string) Table {
	for i := range t {
		t[i].Group = group
	}
	return t
}

// Find returns what a key does in a place, nil for nothing; the place 0 is a
// dialog's only one.
func (t Table) Find(key tea.KeyMsg, in keymap.Place) *Binding {
	name := KeyName(key)
	if name == "" {
		return nil
	}
	for i := range t {
		if b := &t[i]; b.Where&in == in && slices.Contains(b.Keys, name) {
			return b
		}
	}
	return nil
}

// Hint is a key and a few words on what it does, for the footer.
type Hint struct{ Key, Label string }

// Hints are those of the bindings that have one.
func (t Table) Hints() []Hint {
	var all []Hint
	for i := range t {
		if t[i].Hint != "" && len(t[i].Keys) > 0 {
			all = append(all, Hint{t[i].Keys[0], t[i].Hint})
		}
	}
	return all
}

// Scroller is a text or a list that moves.
type Scroller interface {
	Scroll(lines int)
	Page(pages float64)
	Top()
	Bottom()
}

// moves are the movements of a text or list, by the last part of their bindings' ids.
var moves = []struct {
	name, hint, long string
	do               func(Scroller)
}{
	{"down", "down", "One line down", func(s Scroller) { s.Scroll(1) }},
	{"up", "up", "One line up", func(s Scroller) { s.Scroll(-1) }},
	{"half-down", "", "Half a page down", func(s Scroller) { s.Page(0.5) }},
	{"half-up", "", "Half a page up", func(s Scroller) { s.Page(-0.5) }},
	{"page-down", "", "A page down", func(s Scroller) { s.Page(1) }},
	{"page-up", "", "A page up", func(s Scroller) { s.Page(-1) }},
	{"top", "", "To the beginning", Scroller.Top},
	{"bottom", "", "To the end", Scroller.Bottom},
}

// Scroll moves s by the name of a movement.
func Scroll(s Scroller, name string) {
	for _, m := range moves {
		if m.name == name {
			m.do(s)
		}
	}
}

// Scrolling returns the bindings place.down, place.up and so on of a text or list: those
// that are named, or all. get returns the text or list that moves now.
func Scrolling(place string, get func() Scroller, names ...string) Table {
	if len(names) == 0 {
		for _, m := range moves {
			names = append(names, m.name)
		}
	}
	t := make(Table, len(names))
	for _, m := range moves {
		if i := slices.Index(names, m.name); i >= 0 {
			t[i] = Binding{ID: place + "." + m.name, Hint: m.hint, Long: m.long, Run: func() tea.Cmd { m.do(get()); return nil }}
		}
	}
	return t
}

// WithoutHints removes the hints of all bindings.
func (t Table) WithoutHints() Table {
	for i := range t {
		t[i].Hint = ""
	}
	return t
}
