package tui

import (
	"fmt"
	"strings"

	"goblin/tui/filter"
)

//go:generate go test -run ^TestKeysFileIsCurrent$ . -update

// explained is a key or a piece of text and what it means.
type explained struct{ key, does string }

// grammar is what may be typed into the filter bar.
func grammar() []explained {
	return []explained{
		{"word other", "rows with both words, in any order"},
		{"Word", "an upper-case letter makes that word case-sensitive"},
		{`"two words"`, "one word with a space in it"},
		{"~letters", "these letters in this order; the best match first"},
		{"server:git", "the field contains it; several of a field: any of them"},
		{"mime:text/*", "with a *, the whole value"},
		{"server:=git", "this value and no other"},
		{`mime:""`, "no value"},
		{"sub:yes", "yes or no"},
		{"updated:<5m", "in the last 5 minutes; >1h: longer ago (s, m, h, d)"},
		{"size:>10k", "numbers: < <= > >= =, with k, M, G or Ki, Mi, Gi"},
		{"-word", "rows without it; also -mime:json"},
	}
}

// formKeys work in forms: of tools, prompts, templates and answers.
func formKeys() []explained {
	return []explained{
		{"tab S-tab", "next and previous field; tab takes a completion"},
		{"up down", "the same; in lists and completions, choose"},
		{"enter", "next field; in the last one or on a button, go"},
		{"space", "toggle, or choose from a list"},
		{"left right", "choose among a few values"},
		{"C-space", "ask the server for completions"},
		{"C-j", "make a line of text an area of lines"},
		{"C-s", "go, from any field"},
		{"C-e", "raw JSON with _meta, or the fields again"},
		{"C-r", "the values of the last time"},
		{"esc", "close completions, then the form"},
	}
}

// mouseKeys is what the mouse does.
func mouseKeys() []explained {
	return []explained{
		{"click", "choose a tab, a row, a field or a value"},
		{"double click", "open the row"},
		{"wheel", "scroll what is under it"},
	}
}

// keyNames are a binding's keys as people write them.
func (b *binding) keyNames() string {
	var all []string
	for _, k := range b.keys {
		all = append(all, show(k))
	}
	if len(all) == 0 && len(b.names) > 0 {
		return ":" + b.names[0]
	}
	return strings.Join(all, " ")
}

// placeNames are the places in the order in which they are told.
func placeNames() []struct {
	in   place
	name string
} {
	return []struct {
		in   place
		name string
	}{
		{inServers, "Servers"},
		{inTools, "Tools"},
		{inPrompts, "Prompts"},
		{inResources, "Resources"},
		{inLogs, "Logs"},
		{inDetail, "Detail"},
	}
}

// called is a set of places in words.
func (p place) called() string {
	var all []string
	for _, n := range placeNames() {
		if p&n.in != 0 {
			all = append(all, n.name)
		}
	}
	switch n := len(all); n {
	case 0:
		return "nowhere"
	case 1:
		return all[0]
	default:
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
}

// paneFields are the fields of a pane's filter, by what they are fields of.
type paneFields struct {
	of     string
	fields []filter.Field
}

// filterFields are those of the pane's lists.
func filterFields(p pane) []paneFields {
	if p, ok := p.(*logs); ok {
		return []paneFields{{"Logs", p.at(tabEvents).rows().columns()}, {"Traffic", p.at(tabTraffic).rows().columns()}}
	}
	name, _ := p.tab()
	return []paneFields{{name, p.rows().columns()}}
}

// keysDoc is KEYS.md.
func (a *app) keysDoc() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nThis file is made from the table that the screen itself uses: `go generate ./tui`.\n" +
		"In the screen, `?` shows the keys that work where you are, and why one does not.\n" +
		"C- is Ctrl, S- is Shift. Names are for the command palette (`:`).\n")
	table := func(title string, rows [][3]string) {
		if len(rows) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n| Keys | Does | Names |\n| --- | --- | --- |\n", title)
		for _, r := range rows {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r[0], escaped(r[1]), r[2])
		}
	}
	row := func(k *binding) [3]string {
		var keys, names []string
		for _, key := range k.keys {
			keys = append(keys, code(show(key)))
		}
		for _, n := range k.names {
			names = append(names, code(":"+n))
		}
		return [3]string{strings.Join(keys, " "), k.long, strings.Join(names, " ")}
	}
	in := func(fits func(*binding) bool) (rows [][3]string) {
		for i := range a.keys.all {
			if k := &a.keys.all[i]; fits(k) {
				rows = append(rows, row(k))
			}
		}
		return rows
	}
	everywhere := func(k *binding) bool { return k.in&inLists == inLists }
	table("Everywhere", in(everywhere))
	for _, p := range placeNames() {
		table(p.name, in(func(k *binding) bool { return k.in&p.in != 0 && !everywhere(k) }))
	}
	plain := func(title, of, does string, all []explained) {
		fmt.Fprintf(&b, "\n## %s\n\n| %s | %s |\n| --- | --- |\n", title, of, does)
		for _, e := range all {
			fmt.Fprintf(&b, "| %s | %s |\n", code(e.key), escaped(e.does))
		}
	}
	b.WriteString("\n## More commands\n\n| Command | Does |\n| --- | --- |\n")
	for _, c := range a.moreCommands() {
		fmt.Fprintf(&b, "| %s | %s |\n", code(":"+c.usage()), escaped(c.long))
	}
	plain("Filter", "Text", "Asks for", grammar())
	b.WriteString("\nWords and fields are ANDed. A term that is not understood hides nothing; the bar says what is wrong.\n" +
		"\n| Fields of | Name | Asks for |\n| --- | --- | --- |\n")
	for _, p := range a.panes {
		for _, set := range filterFields(p) {
			for _, f := range set.fields {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", set.of, code(f.Name+":"), escaped(f.Help))
			}
		}
	}
	dialog := func(title string, t acts) {
		fmt.Fprintf(&b, "\n%s\n\n| Keys | Does |\n| --- | --- |\n", title)
		for _, r := range t.rows() {
			fmt.Fprintf(&b, "| %s | %s |\n", r[0], escaped(r[1]))
		}
	}
	dialog("## While the filter is typed", barActs())
	plain("Forms", "Keys", "Does", formKeys())
	b.WriteString("\n## Dialogs\n")
	for _, t := range dialogActs() {
		dialog("### "+t.title, t.acts)
	}
	plain("Mouse", "Mouse", "Does", mouseKeys())
	return b.String()
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
