package tui

import "strings"

// place is where a key works: a set of panes and other focuses.
type place uint16

const (
	inServers place = 1 << iota
	inTools
	inPrompts
	inResources
	inLogs
	inDetail // the detail panel has the focus

	inLists   = inServers | inTools | inPrompts | inResources | inLogs
	inCatalog = inTools | inPrompts | inResources
	anywhere  = inLists | inDetail
)

// binding names an intent once: footer, help, palette and KEYS.md are made
// from it.
type binding struct {
	id      string
	keys    []string // as Bubble Tea spells them; the first is shown
	short   string   // for the footer
	long    string   // for help
	in      place
	names   []string // in the palette; the first is shown
	dangers bool     // asks before it does something that hurts
}

// show is a key as people write it.
func show(key string) string {
	switch key {
	case " ":
		return "space"
	case "up", "down", "left", "right":
		return map[string]string{"up": "↑", "down": "↓", "left": "←", "right": "→"}[key]
	case "pgdown":
		return "PgDn"
	case "pgup":
		return "PgUp"
	}
	if rest, ok := strings.CutPrefix(key, "ctrl+"); ok {
		return "C-" + rest
	}
	if rest, ok := strings.CutPrefix(key, "shift+"); ok {
		return "S-" + rest
	}
	return key
}

// bindings are all keys of the screen outside of forms and dialogs. No key may
// stand twice where two places meet.
func bindings() []binding {
	return []binding{
		{id: "servers", keys: []string{"1"}, long: "Servers", in: anywhere, names: []string{"servers", "srv"}},
		{id: "tools", keys: []string{"2"}, long: "Tools", in: anywhere, names: []string{"tools"}},
		{id: "prompts", keys: []string{"3"}, long: "Prompts", in: anywhere, names: []string{"prompts"}},
		{id: "resources", keys: []string{"4"}, long: "Resources and templates", in: anywhere, names: []string{"resources", "res"}},
		{id: "logs", keys: []string{"5"}, long: "Logs and traffic", in: anywhere, names: []string{"logs"}},
		{id: "next", keys: []string{"tab"}, long: "Next pane", in: anywhere},
		{id: "previous", keys: []string{"shift+tab"}, long: "Previous pane", in: anywhere},

		{id: "down", keys: []string{"j", "down"}, long: "Down", in: anywhere},
		{id: "up", keys: []string{"k", "up"}, long: "Up", in: anywhere},
		{id: "half-down", keys: []string{"ctrl+d"}, long: "Half a page down", in: anywhere},
		{id: "half-up", keys: []string{"ctrl+u"}, long: "Half a page up", in: anywhere},
		{id: "page-down", keys: []string{"ctrl+f", "pgdown"}, long: "A page down", in: anywhere},
		{id: "page-up", keys: []string{"ctrl+b", "pgup"}, long: "A page up", in: anywhere},
		{id: "top", keys: []string{"g", "home"}, long: "First row", in: anywhere},
		{id: "bottom", keys: []string{"G", "end"}, long: "Last row", in: anywhere},

		{id: "open", keys: []string{"enter"}, short: "open", long: "Open: show the detail and fetch the content", in: inLists},
		{id: "detail", keys: []string{"l", "right"}, long: "Go to the detail panel", in: inLists},
		{id: "back", keys: []string{"esc", "h", "left"}, short: "back", long: "Back: clear the filter, leave the detail panel, close it", in: anywhere},
		{id: "filter", keys: []string{"/"}, short: "filter", long: "Filter the list; in the detail panel: search", in: anywhere, names: []string{"filter"}},
		{id: "next-match", keys: []string{"n"}, short: "next", long: "Next match in the detail panel", in: anywhere},
		{id: "previous-match", keys: []string{"N"}, long: "Previous match in the detail panel", in: anywhere},
		{id: "server-facet", keys: []string{"f"}, long: "Choose servers", in: inCatalog | inServers},
		{id: "mime-facet", keys: []string{"m"}, long: "Choose MIME types", in: inResources, names: []string{"mime"}},
		{id: "sort", keys: []string{"o"}, long: "Next sort order", in: inLists, names: []string{"sort"}},

		{id: "subscribe", keys: []string{"s"}, short: "subscribe", long: "Subscribe to the resource, or end that", in: inResources | inDetail, names: []string{"subscribe"}},
		{id: "subscribed", keys: []string{"S"}, long: "Only subscribed resources, or all again", in: inResources},
		{id: "subscriptions", keys: []string{"w"}, long: "List of subscriptions: who holds them, updates", in: anywhere, names: []string{"subscriptions", "subs"}},
		{id: "templates", keys: []string{"t"}, short: "templates", long: "Between resources and templates", in: inResources, names: []string{"templates"}},
		{id: "call", keys: []string{"c"}, short: "call", long: "Call the tool, get the prompt, expand the template", in: inCatalog | inDetail, names: []string{"call", "get", "expand"}},
		{id: "repeat", keys: []string{"."}, long: "The last call once more", in: inCatalog | inDetail, names: []string{"repeat"}},
		{id: "cancel", keys: []string{"X"}, long: "Cancel the running call", in: anywhere, names: []string{"cancel"}},
		{id: "answer", keys: []string{"a"}, long: "Answer what a server asks", in: anywhere, names: []string{"answer"}},
		{id: "reload", keys: []string{"r"}, short: "reload", long: "Fetch the content again; in Servers: restart the server", in: anywhere, names: []string{"reload", "restart"}, dangers: true},
		{id: "enable", keys: []string{"x"}, short: "enable/disable", long: "Disable the server, or enable it, as long as the host runs", in: inServers, names: []string{"enable", "disable"}, dangers: true},

		{id: "copy", keys: []string{"y"}, short: "copy", long: "Copy the URI or name; of traffic: the JSON-RPC", in: anywhere, names: []string{"copy"}},
		{id: "copy-content", keys: []string{"Y"}, long: "Copy the content; of traffic: as a goblin command", in: anywhere, names: []string{"copy-content"}},
		{id: "pager", keys: []string{"e"}, long: "Open the content in $PAGER; in Servers: what the server printed", in: anywhere, names: []string{"pager", "less"}},
		{id: "editor", keys: []string{"E"}, long: "Open the content in $EDITOR", in: anywhere, names: []string{"editor", "edit"}},
		{id: "save", keys: []string{"W"}, long: "Save the content to a file", in: anywhere, names: []string{"save", "write"}},
		{id: "inspect", keys: []string{"i"}, long: "Requests about this item; of traffic: the item", in: anywhere, names: []string{"inspect", "traffic"}},
		{id: "fold", keys: []string{"-"}, long: "Fold JSON", in: anywhere},
		{id: "unfold", keys: []string{"+", "="}, long: "Unfold JSON", in: anywhere},

		{id: "tab-left", keys: []string{"["}, long: "Previous tab of Logs", in: inLogs | inDetail},
		{id: "tab-right", keys: []string{"]"}, short: "tabs", long: "Next tab of Logs", in: inLogs | inDetail},
		{id: "follow", keys: []string{"f"}, short: "follow", long: "Follow the end", in: inLogs},
		{id: "method-facet", keys: []string{"m"}, long: "Choose methods", in: inLogs},
		{id: "level", keys: []string{"L"}, long: "Least level that is shown", in: inLogs},
		{id: "pause", keys: []string{" "}, short: "pause", long: "Pause the view; the gateway goes on", in: inLogs, names: []string{"pause"}},

		{id: "place", keys: []string{"P"}, long: "Detail panel: beside, below, hidden", in: anywhere, names: []string{"layout"}},
		{id: "narrower", keys: []string{"<"}, long: "Detail panel: larger", in: anywhere},
		{id: "wider", keys: []string{">"}, long: "Detail panel: smaller", in: anywhere},
		{id: "mouse", keys: []string{"M"}, long: "Mouse on or off; off gives the terminal's own selection back", in: anywhere, names: []string{"mouse"}},
		{id: "theme", keys: []string{"T"}, long: "Next theme", in: anywhere, names: []string{"theme"}},
		{id: "palette", keys: []string{":", "ctrl+p"}, short: "command", long: "Command palette", in: anywhere},
		{id: "help", keys: []string{"?"}, short: "help", long: "Help", in: anywhere, names: []string{"help", "keys"}},
		{id: "clear", long: "Forget the kept content of the selected item; \"clear all\": of all", in: anywhere, names: []string{"clear"}},
		{id: "quit", keys: []string{"q", "ctrl+c"}, short: "quit", long: "Quit", in: anywhere, names: []string{"quit", "q"}},
	}
}

// keymap finds bindings by key and id.
type keymap struct {
	all  []binding
	byID map[string]*binding
}

func newKeymap() *keymap {
	m := &keymap{all: bindings(), byID: make(map[string]*binding)}
	for i := range m.all {
		m.byID[m.all[i].id] = &m.all[i]
	}
	return m
}

// find gives what a key means in a place.
func (m *keymap) find(key string, in place) *binding {
	for i := range m.all {
		b := &m.all[i]
		if b.in&in == 0 {
			continue
		}
		for _, k := range b.keys {
			if k == key {
				return b
			}
		}
	}
	return nil
}
