package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/look"
)

// act is what some keys of a dialog do. The dialog's update and hints, the help
// and KEYS.md are made from the same table.
type act struct {
	id   string
	keys []string // as Bubble Tea spells them; the first is shown
	hint string   // in the footer; "" is not told there
	does string
}

type acts []act

// of is what a key does, "" for nothing. Runes that came at once are text, also
// where they spell a key's name.
func (t acts) of(key tea.KeyMsg) string {
	if key.Type == tea.KeyRunes && (len(key.Runes) > 1 || key.Paste) {
		return ""
	}
	name := key.String()
	for i := range t {
		for _, k := range t[i].keys {
			if k == name {
				return t[i].id
			}
		}
	}
	return ""
}

func (t acts) hints() []hint {
	var all []hint
	for _, a := range t {
		if a.hint != "" {
			all = append(all, hint{a.keys[0], a.hint})
		}
	}
	return all
}

// lines are the table as help has it: as many keys as there is room for.
func (t acts) lines() []helpLine {
	var all []helpLine
	for _, a := range t {
		keys := show(a.keys[0])
		for _, k := range a.keys[1:] {
			if next := keys + " " + show(k); look.Width(next) <= keyColumn {
				keys = next
			}
		}
		all = append(all, helpLine{key: keys, does: a.does})
	}
	return all
}

// rows are the table as KEYS.md has it.
func (t acts) rows() [][2]string {
	var all [][2]string
	for _, a := range t {
		var keys []string
		for _, k := range a.keys {
			keys = append(keys, code(show(k)))
		}
		all = append(all, [2]string{strings.Join(keys, " "), a.does})
	}
	return all
}

// and is two tables as one.
func (t acts) and(more ...act) acts { return append(t[:len(t):len(t)], more...) }

// dialogActs are the tables of what stands in front of the panes.
func dialogActs() []struct {
	title string
	acts  acts
} {
	return []struct {
		title string
		acts  acts
	}{
		{"Commands (:)", paletteActs()},
		{"Help (?)", helpActs()},
		{"Search in help", searchActs()},
		{"Subscriptions (w)", watchedActs()},
		{"Filter of subscriptions", searchActs()},
		{"Lists of values (f, m)", facetActs()},
		{"Request and response", exchangeActs()},
		{"A line of text", entryActs()},
		{"Yes or no", confirmActs()},
		{"An address to open", urlActs()},
		{"A model's answer", samplingActs()},
		{"Setup", setupActs()},
	}
}

// scrollActs move a text or a list that has the keys for itself.
func scrollActs() acts {
	return acts{
		{"down", []string{"j", "down"}, "down", "One line down"},
		{"up", []string{"k", "up"}, "up", "One line up"},
		{"half-down", []string{"ctrl+d"}, "", "Half a page down"},
		{"half-up", []string{"ctrl+u"}, "", "Half a page up"},
		{"page-down", []string{"pgdown", "ctrl+f", " "}, "", "A page down"},
		{"page-up", []string{"pgup", "ctrl+b"}, "", "A page up"},
		{"top", []string{"g", "home"}, "", "To the beginning"},
		{"bottom", []string{"G", "end"}, "", "To the end"},
	}
}

// scrolled is what moves when an act of scrollActs is done; false for others.
func scrolled(id string, line func(by int), page func(by float64), end func(bottom bool)) bool {
	switch id {
	case "down":
		line(1)
	case "up":
		line(-1)
	case "half-down":
		page(0.5)
	case "half-up":
		page(-0.5)
	case "page-down":
		page(1)
	case "page-up":
		page(-1)
	case "top", "bottom":
		end(id == "bottom")
	default:
		return false
	}
	return true
}

// barActs work while the filter is typed.
func barActs() acts {
	return acts{
		{"keep", []string{"enter"}, "", "Keep the filter and go back to the list"},
		{"clear", []string{"esc", "ctrl+c"}, "", "Clear the filter"},
		{"earlier", []string{"up"}, "", "The filter before"},
		{"later", []string{"down"}, "", "The filter after"},
		{"half-down", []string{"pgdown", "ctrl+d"}, "", "Half a page down in the list meanwhile"},
		{"half-up", []string{"pgup"}, "", "Half a page up in the list meanwhile"},
	}
}

// searchActs work while a search in a dialog is typed.
func searchActs() acts {
	return acts{
		{"keep", []string{"enter"}, "keep", "Keep what was typed; keys are keys again"},
		{"clear", []string{"esc", "ctrl+c"}, "show all", "Show all again"},
		{"down", []string{"down"}, "", "One line down"},
		{"up", []string{"up"}, "", "One line up"},
	}
}

func helpActs() acts {
	return scrollActs().and(
		act{"search", []string{"/"}, "search", "Search in the help"},
		act{"back", []string{"esc"}, "close", "Show all again, then close"},
		act{"close", []string{"?", "q", "ctrl+c"}, "", "Close"},
	)
}

func watchedActs() acts {
	return append(acts{
		{"visit", []string{"enter"}, "go there", "Go to the resource"},
		{"toggle", []string{"s"}, "begin or end yours", "Begin or end a subscription of your own"},
		{"filter", []string{"/"}, "filter", "Filter the list"},
		{"sort", []string{"o"}, "sort", "Next sort order"},
		{"copy", []string{"y"}, "copy", "Copy the URI"},
		{"back", []string{"esc"}, "close", "Clear the filter, then close"},
		{"close", []string{"w", "q", "ctrl+c"}, "", "Close"},
	}, quietly(scrollActs())...)
}

// quietly is a table without hints.
func quietly(t acts) acts {
	for i := range t {
		t[i].hint = ""
	}
	return t
}

func exchangeActs() acts {
	all := scrollActs()
	all[0].hint, all[1].hint = "scroll", ""
	return all.and(
		act{"other", []string{"tab", "shift+tab", "l", "right"}, "other side", "Scroll the other of request and response"},
		act{"copy", []string{"y"}, "copy JSON-RPC", "Copy the JSON-RPC"},
		act{"command", []string{"Y"}, "copy command", "Copy a goblin command that asks the same"},
		act{"item", []string{"i"}, "item", "Go to the item that it is about"},
		act{"pager", []string{"e"}, "open in $PAGER", "Open it in $PAGER"},
		act{"editor", []string{"E"}, "", "Open it in $EDITOR"},
		act{"save", []string{"W"}, "", "Save it to a file"},
		act{"close", []string{"esc", "enter", "q", "h", "left", "ctrl+c"}, "back", "Close"},
	)
}

func setupActs() acts {
	return scrollActs().and(
		act{"entry", []string{"y"}, "copy the client's entry", "Copy what a client's config has to say"},
		act{"example", []string{"Y"}, "copy the example config", "Copy the example of a config"},
		act{"close", []string{"esc", "enter", "q", "ctrl+c"}, "close", "Close"},
	)
}

func paletteActs() acts {
	return acts{
		{"run", []string{"enter"}, "run", "Run the command under the cursor"},
		{"complete", []string{"tab"}, "complete", "Write out the command under the cursor"},
		{"up", []string{"up"}, "choose or earlier", "One line up; on the empty line, the command before"},
		{"down", []string{"down"}, "", "One line down, or the command after"},
		{"row-up", []string{"ctrl+p", "shift+tab"}, "", "One line up"},
		{"row-down", []string{"ctrl+n"}, "", "One line down"},
		{"page-up", []string{"pgup"}, "", "A page up"},
		{"page-down", []string{"pgdown"}, "", "A page down"},
		{"earlier", []string{"ctrl+up"}, "", "The command that was run before"},
		{"later", []string{"ctrl+down"}, "", "The command that was run after"},
		{"close", []string{"esc", "ctrl+c"}, "close", "Close"},
	}
}

func facetActs() acts {
	return acts{
		{"tick", []string{" "}, "tick", "Tick the value, or untick it"},
		{"apply", []string{"enter"}, "apply", "Apply; what was typed means the first value"},
		{"none", []string{"delete", "ctrl+x"}, "untick all", "Untick all of them"},
		{"close", []string{"esc", "ctrl+c"}, "leave", "Close and change nothing"},
		{"up", []string{"up", "ctrl+p"}, "", "One line up"},
		{"down", []string{"down", "ctrl+n"}, "", "One line down"},
		{"page-up", []string{"pgup"}, "", "A page up"},
		{"page-down", []string{"pgdown"}, "", "A page down"},
	}
}

func entryActs() acts {
	return acts{
		{"go", []string{"enter"}, "go", "Do it"},
		{"close", []string{"esc", "ctrl+c"}, "leave it", "Close and do nothing"},
	}
}

// confirmActs are those of [confirm].
func confirmActs() acts {
	return acts{
		{"yes", []string{"y", "Y"}, "", "Yes"},
		{"no", []string{"n", "N", "esc", "q", "ctrl+c"}, "", "No"},
	}
}

func urlActs() acts {
	return acts{
		{"copy", []string{"y", "o"}, "copy the address", "Copy the address: Goblin opens none"},
		{"accept", []string{"enter"}, "accept", "Accept, once the address was copied"},
		{"decline", []string{"d"}, "decline", "Decline"},
		{"cancel", []string{"esc", "q", "ctrl+c"}, "cancel", "Cancel: the question was not answered"},
	}
}

func samplingActs() acts {
	return acts{
		{"send", []string{"ctrl+s"}, "send your answer", "Send your answer"},
		{"page-down", []string{"pgdown"}, "read on", "A page down in what is asked"},
		{"page-up", []string{"pgup"}, "back", "A page up in what is asked"},
		{"reject", []string{"esc", "ctrl+c"}, "reject", "Reject; asks again when you wrote something"},
	}
}
