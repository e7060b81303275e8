package tui

import (
	"fmt"
	"strings"

	"goblin/registry/keymap"
	"goblin/tui/help"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
)

// paneFields are the filter fields of one list of a pane.
type paneFields struct {
	of     string
	fields []list.Field
}

func filterFields(p pane.Pane) []paneFields {
	if p, ok := p.(*pane.Logs); ok {
		return []paneFields{{"Logs", p.TabList(pane.TabEvents).Rows().FilterFields()}, {"Traffic", p.TabList(pane.TabTraffic).Rows().FilterFields()}}
	}
	name, _ := p.Tab()
	return []paneFields{{name, p.Rows().FilterFields()}}
}

// keysDoc returns the content of KEYS.md.
func (a *app) keysDoc() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nThis file is generated from the UI's key table: `go generate ./tui`.\n" +
		"In the UI, `?` shows the keys available here, and why a key is disabled.\n" +
		"C- is Ctrl, S- is Shift. Names are for the command palette (`:`). To change a key, use its\n" +
		"action in the config, see [`tui.keys`](../gateway/config/README.md#keys-of-the-ui).\n")
	section := func(title, columns string, rows int) {
		fmt.Fprintf(&b, "\n%s\n\n| %s |\n|%s\n", title, columns, strings.Repeat(" --- |", rows))
	}
	plain := func(title, columns string, t keys.Table) {
		section(title, columns, 2)
		for i := range t {
			fmt.Fprintf(&b, "| %s | %s |\n", codes("", t[i].Keys), escaped(t[i].Long))
		}
	}
	everywhere := func(k *keys.Binding) bool { return k.Where&keymap.InLists == keymap.InLists }
	table := func(title string, fits func(*keys.Binding) bool) {
		section("## "+title, "Keys | Effect | Action | Names", 4)
		for i := range a.keys {
			if k := &a.keys[i]; fits(k) {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", codes("", k.Keys), escaped(k.Long), k.ID, codes(":", k.Names))
			}
		}
	}
	table("Everywhere", everywhere)
	for _, p := range keymap.Places() {
		table(p.String(), func(k *keys.Binding) bool { return k.Where&p != 0 && !everywhere(k) })
	}
	section("## More commands", "Command | Effect", 2)
	for _, c := range a.moreCommands() {
		fmt.Fprintf(&b, "| %s | %s |\n", inCode(":"+c.Usage()), escaped(c.Long))
	}
	plain("## Filter", "Text | Matches", help.Grammar())
	section("Words and fields are ANDed. An invalid term hides nothing; the bar shows the problem.", "Fields of | Name | Matches", 3)
	for _, p := range a.Panes {
		for _, set := range filterFields(p) {
			for _, f := range set.fields {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", set.of, inCode(f.Label()), escaped(f.Help))
			}
		}
	}
	b.WriteString("\n## Forms and dialogs\n\nC-c closes an open dialog, and otherwise quits. While you type, characters are text, and only\nthe keys listed here run actions.\n")
	for _, t := range a.dialogKeys() {
		section("### "+t.title, "Keys | Effect | Action", 3)
		for i := range t.keys {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", codes("", t.keys[i].Keys), escaped(t.keys[i].Long), t.keys[i].ID)
		}
	}
	plain("## Mouse", "Mouse | Effect", help.MouseKeys())
	return b.String()
}

// codes formats keys or names, each as code.
func codes(before string, all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = inCode(before + keymap.FormatKey(s))
	}
	return strings.Join(out, " ")
}

// inCode escapes text that Markdown shows literally in a table.
func inCode(s string) string {
	s = strings.ReplaceAll(s, "|", `\|`)
	if strings.Contains(s, "`") {
		return "`` " + s + " ``"
	}
	return "`" + s + "`"
}

func escaped(s string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, ">", `\>`, "*", `\*`, "_", `\_`).Replace(s)
}
