// Package keys maps keys to actions and generates help and footer.
//
// Keys, footer, help, palette and KEYS.md are generated from the same bindings. Package
// registry/keymap owns the actions with their keys and places. This package must not
// depend on panes, dialogs or the catalog: the owner of a table supplies the functions.
// All methods must run on the UI's Update goroutine.
package keys

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"goblin/registry/keymap"
)

// Binding is an action with its keys. Only keys of panes have Group, Names and
// SearchWords.
type Binding struct {
	ID          string
	Keys        []string // Bubble Tea's spelling, shown one first. See [Table.WithKeys]
	Hint        string   // in the footer; "" hides it there
	Long        string   // in help and KEYS.md
	Where       keymap.Place
	Group       string         // heading in help
	Names       []string       // in the palette, shown one first
	SearchWords string         // synonyms for the search in help
	WhyDisabled func() string  // nil or "" if enabled
	Run         func() tea.Cmd // nil if each pane has its own function
}

// Handler is a pane's implementation of a binding without Run.
type Handler struct {
	WhyDisabled func() string
	Run         func() tea.Cmd
	Label       func() string // in the footer, if it varies
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

// KeyName returns the name of a key as bindings spell it. It returns "" for pasted text,
// even if the text is the name of a key.
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

// Find returns the binding of a key in a place, or nil. Place 0 is a dialog.
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

// Hint is a key with its effect, for the footer.
type Hint struct{ Key, Label string }

// Hints returns the footer hints of all bindings that have one.
func (t Table) Hints() []Hint {
	var all []Hint
	for i := range t {
		if t[i].Hint != "" && len(t[i].Keys) > 0 {
			all = append(all, Hint{t[i].Keys[0], t[i].Hint})
		}
	}
	return all
}

// Text returns the hint without styles.
func (h Hint) Text() string { return keymap.FormatKey(h.Key) + " " + h.Label }

// FitHints removes hints from the end until the others fit into w cells. Those of Esc and
// C-s stay, since they leave a dialog.
func FitHints(all []Hint, w int) []Hint {
	all = slices.Clone(all)
	used := -2
	for _, h := range all {
		used += ansi.StringWidth(h.Text()) + 2
	}
	for i := len(all) - 1; i >= 0 && used > w; i-- {
		if key := all[i].Key; key != "esc" && key != "ctrl+s" {
			used -= ansi.StringWidth(all[i].Text()) + 2
			all = slices.Delete(all, i, i+1)
		}
	}
	return all
}

// Scroller is a scrollable text or list.
type Scroller interface {
	Scroll(lines int)
	Page(pages float64)
	Top()
	Bottom()
}

// by the last part of their bindings' ids
var moves = []struct {
	name, long string
	do         func(Scroller)
}{
	{"down", "One line down", func(s Scroller) { s.Scroll(1) }},
	{"up", "One line up", func(s Scroller) { s.Scroll(-1) }},
	{"half-down", "Half a page down", func(s Scroller) { s.Page(0.5) }},
	{"half-up", "Half a page up", func(s Scroller) { s.Page(-0.5) }},
	{"page-down", "A page down", func(s Scroller) { s.Page(1) }},
	{"page-up", "A page up", func(s Scroller) { s.Page(-1) }},
	{"top", "Go to the start", Scroller.Top},
	{"bottom", "Go to the end", Scroller.Bottom},
}

// Scroll moves s by the name of a movement.
func Scroll(s Scroller, name string) {
	for _, m := range moves {
		if m.name == name {
			m.do(s)
		}
	}
}

// Scrolling returns the bindings place.down, place.up and so on: the named ones, or all.
// get returns the text or list to scroll.
func Scrolling(place string, get func() Scroller, names ...string) Table {
	if len(names) == 0 {
		for _, m := range moves {
			names = append(names, m.name)
		}
	}
	t := make(Table, len(names))
	for _, m := range moves {
		if i := slices.Index(names, m.name); i >= 0 {
			t[i] = Binding{ID: place + "." + m.name, Long: m.long, Run: func() tea.Cmd { m.do(get()); return nil }}
		}
	}
	return t
}
