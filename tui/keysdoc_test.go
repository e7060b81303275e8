package tui

import (
	"fmt"
	"strings"

	"goblin/registry/keymap"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
)

// paneFields are the fields of a pane's filter, by what they are fields of.
type paneFields struct {
	of     string
	fields []list.Field
}

// filterFields are those of the pane's lists.
func filterFields(p pane.Pane) []paneFields {
	if p, ok := p.(*pane.Logs); ok {
		return []paneFields{{"Logs", p.TabList(pane.TabEvents).Rows().FilterFields()}, {"Traffic", p.TabList(pane.TabTraffic).Rows().FilterFields()}}
	}
	name, _ := p.Tab()
	return []paneFields{{name, p.Rows().FilterFields()}}
}

// keysDoc is KEYS.md.
func (a *app) keysDoc() string {
	var b strings.Builder
	b.WriteString("# Keys\n\nThis file is made from the table that the screen itself uses: `go generate ./tui`.\n" +
		"In the screen, `?` shows the keys that work where you are, and why one does not.\n" +
		"C- is Ctrl, S- is Shift. Names are for the command palette (`:`). By its action, a key is\n" +
		"changed in the config, see [`tui.keys`](../gateway/config/README.md#keys-of-the-ui).\n")
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
		section("## "+title, "Keys | Does | Action | Names", 4)
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
	section("## More commands", "Command | Does", 2)
	for _, c := range a.moreCommands() {
		fmt.Fprintf(&b, "| %s | %s |\n", inCode(":"+c.usage()), escaped(c.long))
	}
	plain("## Filter", "Text | Asks for", grammar())
	section("Words and fields are ANDed. A term that is not understood hides nothing; the bar says what is wrong.", "Fields of | Name | Asks for", 3)
	for _, p := range a.Panes {
		for _, set := range filterFields(p) {
			for _, f := range set.fields {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", set.of, inCode(f.Name+":"), escaped(f.Help))
			}
		}
	}
	b.WriteString("\n## Forms and dialogs\n\nIn all of them, C-c stays whatever the config says. Where one types, characters are text, and no\nkeys of actions but those that stand here.\n")
	for _, t := range a.dialogKeys() {
		section("### "+t.title, "Keys | Does | Action", 3)
		for i := range t.keys {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", codes("", t.keys[i].Keys), escaped(t.keys[i].Long), t.keys[i].ID)
		}
	}
	plain("## Mouse", "Mouse | Does", mouseKeys())
	return b.String()
}

// codes are keys or names, each as code.
func codes(before string, all []string) string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = inCode(before + keymap.FormatKey(s))
	}
	return strings.Join(out, " ")
}

// inCode is text as Markdown shows it literally in a table.
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
