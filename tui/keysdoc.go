package tui

import (
	"fmt"
	"strings"

	"goblin/tui/ask"
	"goblin/tui/dialog"
	"goblin/tui/filter"
	"goblin/tui/keys"
	"goblin/tui/pane"
)

//go:generate go test -run ^TestKeysFileIsCurrent$ . -update

// grammar is what may be typed into the filter bar.
func grammar() keys.Table {
	return keys.Table{
		{Keys: []string{"word other"}, Long: "rows with both words, in any order"},
		{Keys: []string{"Word"}, Long: "an upper-case letter makes that word case-sensitive"},
		{Keys: []string{`"two words"`}, Long: "one word with a space in it"},
		{Keys: []string{"~letters"}, Long: "these letters in this order; the best match first"},
		{Keys: []string{"server:git"}, Long: "the field contains it; several of a field: any of them"},
		{Keys: []string{"mime:text/*"}, Long: "with a *, the whole value"},
		{Keys: []string{"server:=git"}, Long: "this value and no other"},
		{Keys: []string{`mime:""`}, Long: "no value"},
		{Keys: []string{"sub:yes"}, Long: "yes or no"},
		{Keys: []string{"updated:<5m"}, Long: "in the last 5 minutes; >1h: longer ago (s, m, h, d)"},
		{Keys: []string{"size:>10k"}, Long: "numbers: < <= > >= =, with k, M, G or Ki, Mi, Gi"},
		{Keys: []string{"-word"}, Long: "rows without it; also -mime:json"},
	}
}

// formKeys work in forms: of tools, prompts, templates and answers.
func formKeys() keys.Table {
	return keys.Table{
		{Keys: []string{"tab S-tab"}, Long: "next and previous field; tab takes a completion"},
		{Keys: []string{"up down"}, Long: "the same; in lists and completions, choose"},
		{Keys: []string{"enter"}, Long: "next field; in the last one or on a button, go"},
		{Keys: []string{"space"}, Long: "toggle, or choose from a list"},
		{Keys: []string{"left right"}, Long: "choose among a few values"},
		{Keys: []string{"C-space"}, Long: "ask the server for completions"},
		{Keys: []string{"C-j"}, Long: "make a line of text an area of lines"},
		{Keys: []string{"C-s"}, Long: "go, from any field"},
		{Keys: []string{"C-e"}, Long: "raw JSON with _meta, or the fields again"},
		{Keys: []string{"C-r"}, Long: "the values of the last time"},
		{Keys: []string{"esc"}, Long: "close completions, then the form"},
	}
}

// mouseKeys is what the mouse does.
func mouseKeys() keys.Table {
	return keys.Table{
		{Keys: []string{"click"}, Long: "choose a tab, a row, a field or a value"},
		{Keys: []string{"double click"}, Long: "open the row"},
		{Keys: []string{"wheel"}, Long: "scroll what is under it"},
	}
}

// paneFields are the fields of a pane's filter, by what they are fields of.
type paneFields struct {
	of     string
	fields []filter.Field
}

// filterFields are those of the pane's lists.
func filterFields(p pane.Pane) []paneFields {
	if p, ok := p.(*pane.Logs); ok {
		return []paneFields{{"Logs", p.At(pane.TabEvents).Rows().Columns()}, {"Traffic", p.At(pane.TabTraffic).Rows().Columns()}}
	}
	name, _ := p.Tab()
	return []paneFields{{name, p.Rows().Columns()}}
}

// keysDoc is KEYS.md.
func (a *app) keysDoc() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nThis file is made from the table that the screen itself uses: `go generate ./tui`.\n" +
		"In the screen, `?` shows the keys that work where you are, and why one does not.\n" +
		"C- is Ctrl, S- is Shift. Names are for the command palette (`:`).\n")
	section := func(title, columns string, rows int) {
		fmt.Fprintf(&b, "\n%s\n\n| %s |\n|%s\n", title, columns, strings.Repeat(" --- |", rows))
	}
	plain := func(title, columns string, t keys.Table) {
		section(title, columns, 2)
		for i := range t {
			fmt.Fprintf(&b, "| %s | %s |\n", codes("", t[i].Keys), escaped(t[i].Long))
		}
	}
	everywhere := func(k *keys.Binding) bool { return k.Where&keys.InLists == keys.InLists }
	table := func(title string, fits func(*keys.Binding) bool) {
		section("## "+title, "Keys | Does | Names", 3)
		for i := range a.keys {
			if k := &a.keys[i]; fits(k) {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", codes("", k.Keys), escaped(k.Long), codes(":", k.Names))
			}
		}
	}
	table("Everywhere", everywhere)
	for _, p := range keys.Places() {
		table(p.String(), func(k *keys.Binding) bool { return k.Where&p != 0 && !everywhere(k) })
	}
	section("## More commands", "Command | Does", 2)
	for _, c := range a.moreCommands() {
		fmt.Fprintf(&b, "| %s | %s |\n", code(":"+c.usage()), escaped(c.long))
	}
	plain("## Filter", "Text | Asks for", grammar())
	section("Words and fields are ANDed. A term that is not understood hides nothing; the bar says what is wrong.", "Fields of | Name | Asks for", 3)
	for _, p := range a.Panes {
		for _, set := range filterFields(p) {
			for _, f := range set.fields {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", set.of, code(f.Name+":"), escaped(f.Help))
			}
		}
	}
	plain("## While the filter is typed", "Keys | Does", a.filterKeys())
	plain("## Forms", "Keys | Does", formKeys())
	b.WriteString("\n## Dialogs\n")
	for _, t := range dialogKeys() {
		plain("### "+t.title, "Keys | Does", t.keys)
	}
	plain("## Mouse", "Mouse | Does", mouseKeys())
	return b.String()
}

// codes are keys or names, each as code.
func codes(before string, all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = code(before + keys.Show(s))
	}
	return strings.Join(out, " ")
}

// code is text as Markdown shows it literally in a table.
func code(s string) string {
	s = strings.ReplaceAll(s, "|", `\|`)
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

func escaped(s string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`).Replace(s)
}

// dialogKeys are the tables of what stands in front of the panes.
func dialogKeys() []titledKeys {
	return []titledKeys{
		{"Commands (:)", (*palette)(nil).Keys()},
		{"Help (?)", (*help)(nil).readKeys()},
		{"Search in help", (*dialog.Search)(nil).Keys()},
		{"Subscriptions (w)", (*pane.Watched)(nil).ListKeys()},
		{"Filter of subscriptions", (*dialog.Search)(nil).Keys()},
		{"Lists of values (f, m)", (*pane.Facet)(nil).Keys()},
		{"Request and response", (*pane.Exchange)(nil).Keys()},
		{"A line of text", (*dialog.Entry)(nil).Keys()},
		{"Yes or no", (*dialog.Confirm)(nil).Keys()},
		{"An address to open", (*ask.URL)(nil).Keys()},
		{"A model's answer", (*ask.Sampling)(nil).Keys()},
		{"Setup", (*setup)(nil).Keys()},
	}
}

// titledKeys is a table with its heading in help and KEYS.md.
type titledKeys struct {
	title string
	keys  keys.Table
}
