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
	id    string
	keys  []string // as Bubble Tea spells them; the first is shown
	short string   // for the footer
	long  string   // for help
	in    place
	names []string // in the palette; the first is shown
}

// show is a key as people write it.
func show(key string) string {
	switch key {
	case " ":
		return "space"
	case "delete":
		return "Del"
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
		{id: "servers", keys: []string{"1"}, long: "Go to Servers", in: anywhere, names: []string{"servers", "srv"}},
		{id: "tools", keys: []string{"2"}, long: "Go to Tools", in: anywhere, names: []string{"tools"}},
		{id: "prompts", keys: []string{"3"}, long: "Go to Prompts", in: anywhere, names: []string{"prompts"}},
		{id: "resources", keys: []string{"4"}, long: "Go to Resources, with the templates below them", in: anywhere, names: []string{"resources", "res"}},
		{id: "logs", keys: []string{"5"}, long: "Go to Logs: events, traffic, stderr of servers, Goblin", in: anywhere, names: []string{"logs"}},
		{id: "next", keys: []string{"tab"}, long: "Next list or the detail panel; else the next pane", in: anywhere},
		{id: "previous", keys: []string{"shift+tab"}, long: "Previous list or the detail panel; else the pane before", in: anywhere},

		{id: "down", keys: []string{"j", "down"}, long: "One row down; in the detail panel, one line", in: anywhere},
		{id: "up", keys: []string{"k", "up"}, long: "One row up; in the detail panel, one line", in: anywhere},
		{id: "half-down", keys: []string{"ctrl+d"}, long: "Half a page down", in: anywhere},
		{id: "half-up", keys: []string{"ctrl+u"}, long: "Half a page up", in: anywhere},
		{id: "page-down", keys: []string{"ctrl+f", "pgdown"}, long: "A page down", in: anywhere},
		{id: "page-up", keys: []string{"ctrl+b", "pgup"}, long: "A page up", in: anywhere},
		{id: "top", keys: []string{"g", "home"}, long: "First row; in the detail panel, first line", in: anywhere},
		{id: "bottom", keys: []string{"G", "end"}, long: "Last row; in the detail panel, last line", in: anywhere},

		{id: "open", keys: []string{"enter"}, short: "open", long: "Open: show the detail and fetch the content", in: inLists},
		{id: "detail", keys: []string{"l", "right"}, long: "Go to the detail panel", in: inLists},
		{id: "back", keys: []string{"esc", "h", "left"}, short: "back", long: "Back: leave the detail panel, clear the filter, close it", in: anywhere},
		{id: "filter", keys: []string{"/"}, short: "filter", long: "Filter the list; in the detail panel, search in it", in: anywhere, names: []string{"filter", "search"}},
		{id: "next-match", keys: []string{"n"}, short: "next", long: "Next match of the search in the detail panel", in: anywhere},
		{id: "previous-match", keys: []string{"N"}, long: "Previous match of the search in the detail panel", in: anywhere},
		{id: "server-facet", keys: []string{"f"}, long: "Choose servers from a list with counts", in: inCatalog | inServers, names: []string{"server"}},
		{id: "mime-facet", keys: []string{"m"}, long: "Choose MIME types from a list with counts", in: inResources, names: []string{"mime", "type"}},
		{id: "sort", keys: []string{"o"}, long: "Next sort order", in: inLists, names: []string{"sort"}},

		{id: "subscribe", keys: []string{"s"}, short: "subscribe", long: "Subscribe to the resource, or end the subscription", in: inResources | inDetail, names: []string{"subscribe", "sub"}},
		{id: "subscribed", keys: []string{"S"}, long: "Show only subscribed resources, or all again", in: inResources, names: []string{"subscribed"}},
		{id: "subscriptions", keys: []string{"w"}, long: "List of subscriptions: holders, updates, last change", in: anywhere, names: []string{"subscriptions", "subs"}},
		{id: "templates", keys: []string{"t"}, short: "templates", long: "Go from resources to templates, or back", in: inResources, names: []string{"templates"}},
		{id: "call", keys: []string{"c"}, short: "call", long: "Call the tool, get the prompt, expand the template", in: inCatalog | inDetail, names: []string{"call", "get", "expand"}},
		{id: "repeat", keys: []string{"."}, long: "Run the last call once more, with the same arguments", in: inCatalog | inDetail, names: []string{"repeat"}},
		{id: "cancel", keys: []string{"X"}, short: "cancel", long: "Cancel the running call", in: anywhere, names: []string{"cancel"}},
		{id: "answer", keys: []string{"a"}, long: "Answer what a server asks", in: anywhere, names: []string{"answer"}},
		{id: "reload", keys: []string{"r"}, short: "reload", long: "Fetch the content again; in Servers, restart the server", in: anywhere, names: []string{"reload"}},
		{id: "enable", keys: []string{"x"}, short: "enable/disable", long: "Disable the server, or enable it, while the host runs", in: inServers, names: []string{"toggle"}},
		{id: "approve", keys: []string{"A"}, short: "approve", long: "Approve a tool that changed; in Servers, all of them", in: inServers | inTools, names: []string{"approve"}},

		{id: "copy", keys: []string{"y"}, short: "copy", long: "Copy the URI or name; of traffic, the JSON-RPC", in: anywhere, names: []string{"copy"}},
		{id: "copy-content", keys: []string{"Y"}, long: "Copy the content, raw; of traffic, a goblin command", in: anywhere, names: []string{"copy-content"}},
		{id: "pager", keys: []string{"e"}, long: "Open it in $PAGER, made safe; in Servers, go to its stderr", in: anywhere, names: []string{"pager", "less"}},
		{id: "editor", keys: []string{"E"}, long: "Open it in $EDITOR, made safe", in: anywhere, names: []string{"editor", "edit"}},
		{id: "save", keys: []string{"W"}, long: "Save the content to a file, raw", in: anywhere, names: []string{"save", "write"}},
		{id: "inspect", keys: []string{"i"}, long: "Show the requests about this item; of traffic, the item", in: anywhere, names: []string{"inspect"}},
		{id: "fold", keys: []string{"-"}, long: "Fold the JSON in the detail panel by one level", in: anywhere, names: []string{"fold"}},
		{id: "unfold", keys: []string{"+", "="}, long: "Unfold the JSON in the detail panel by one level", in: anywhere, names: []string{"unfold"}},

		{id: "tab-left", keys: []string{"["}, long: "Previous tab of Logs", in: inLogs | inDetail},
		{id: "tab-right", keys: []string{"]"}, short: "tabs", long: "Next tab of Logs", in: inLogs | inDetail},
		{id: "follow", keys: []string{"f"}, short: "follow", long: "Follow the end, or stay where the cursor is", in: inLogs, names: []string{"follow"}},
		{id: "method-facet", keys: []string{"m"}, long: "Choose methods of traffic from a list with counts", in: inLogs, names: []string{"method"}},
		{id: "level", keys: []string{"L"}, long: "Next least level that is shown", in: inLogs, names: []string{"level"}},
		{id: "pause", keys: []string{" "}, short: "pause", long: "Pause the view, or go on; the gateway never pauses", in: inLogs, names: []string{"pause"}},

		{id: "place", keys: []string{"P"}, long: "Detail panel: where there is room, beside, below, hidden", in: anywhere, names: []string{"layout"}},
		{id: "larger-detail", keys: []string{"<"}, long: "Make the detail panel larger", in: anywhere},
		{id: "smaller-detail", keys: []string{">"}, long: "Make the detail panel smaller", in: anywhere},
		{id: "mouse", keys: []string{"M"}, long: "Mouse on or off; off lets the terminal select text", in: anywhere, names: []string{"mouse"}},
		{id: "theme", keys: []string{"T"}, long: "Next theme: auto, dark, light, none", in: anywhere, names: []string{"theme"}},
		{id: "palette", keys: []string{":", "ctrl+p"}, short: "command", long: "Run any command by its name", in: anywhere},
		{id: "help", keys: []string{"?"}, short: "help", long: "Show the keys that work here", in: anywhere, names: []string{"help", "keys"}},
		{id: "clear", long: "Forget the content that is kept of the selected item", in: anywhere, names: []string{"clear"}},
		{id: "leave", keys: []string{"q"}, long: "Leave the detail panel", in: inDetail},
		{id: "interrupt", keys: []string{"ctrl+c"}, long: "Quit goblin", in: inDetail},
		{id: "quit", keys: []string{"q", "ctrl+c"}, short: "quit", long: "Quit this screen; asks when that ends others' servers", in: inLists, names: []string{"quit", "q"}},
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
