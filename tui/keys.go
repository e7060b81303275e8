package tui

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/tui/content"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/view"
)

// bindings are all keys of the screen outside of forms and dialogs. No key may
// stand twice where two places meet. What has no function is up to the panes.
func (a *app) bindings() keys.Table {
	show := func(pane int) func() tea.Cmd { return func() tea.Cmd { return a.Visit(pane) } }
	push := func(create func(*app) dialog.Dialog) func() tea.Cmd {
		return func() tea.Cmd { return a.Push(create(a)) }
	}
	lay := func(create func(*pane.Desk) dialog.Dialog) func() tea.Cmd {
		return func() tea.Cmd { return a.Push(create(a.Desk)) }
	}
	tabs := keys.Unless("only Logs has tabs; 5 goes there", func() bool { return a.Open == pane.PaneLogs })
	detail := keys.Unless("there is nothing to look at", func() bool { return a.Panes[a.Open].Subject().Blocks != nil })
	return append(append(a.lookKeys(), a.textKeys()...), keys.Table{
		{ID: "servers", Keys: []string{"1"}, Long: "Go to Servers", Where: keys.Anywhere, Names: []string{"servers", "srv"}, Run: show(pane.PaneServers)},
		{ID: "tools", Keys: []string{"2"}, Long: "Go to Tools", Where: keys.Anywhere, Names: []string{"tools"}, Run: show(pane.PaneTools)},
		{ID: "prompts", Keys: []string{"3"}, Long: "Go to Prompts", Where: keys.Anywhere, Names: []string{"prompts"}, Run: show(pane.PanePrompts)},
		{ID: "resources", Keys: []string{"4"}, Long: "Go to Resources, with the templates below them", Where: keys.Anywhere, Names: []string{"resources", "res"}, Run: show(pane.PaneResources)},
		{ID: "logs", Keys: []string{"5"}, Long: "Go to Logs: events, traffic, stderr of servers, Goblin", Where: keys.Anywhere, Names: []string{"logs"}, Run: show(pane.PaneLogs)},
		{ID: "clients", Keys: []string{"0"}, Long: "List of clients: requests, errors, subscriptions, age", Where: keys.Anywhere, Names: []string{"clients"}, Run: a.showClients},
		{ID: "next", Keys: []string{"tab"}, Long: "Next list or the detail panel; else the next pane", Where: keys.Anywhere, Run: func() tea.Cmd { return a.nextFocus(1) }},
		{ID: "previous", Keys: []string{"shift+tab"}, Long: "Previous list or the detail panel; else the pane before", Where: keys.Anywhere, Run: func() tea.Cmd { return a.nextFocus(-1) }},

		{ID: "down", Keys: []string{"j", "down"}, Long: "One row down; in the detail panel, one line", Where: keys.Anywhere, Run: a.scroll("down")},
		{ID: "up", Keys: []string{"k", "up"}, Long: "One row up; in the detail panel, one line", Where: keys.Anywhere, Run: a.scroll("up")},
		{ID: "half-down", Keys: []string{"ctrl+d"}, Long: "Half a page down", Where: keys.Anywhere, Run: a.scroll("half-down")},
		{ID: "half-up", Keys: []string{"ctrl+u"}, Long: "Half a page up", Where: keys.Anywhere, Run: a.scroll("half-up")},
		{ID: "page-down", Keys: []string{"ctrl+f", "pgdown"}, Long: "A page down", Where: keys.Anywhere, Run: a.scroll("page-down")},
		{ID: "page-up", Keys: []string{"ctrl+b", "pgup"}, Long: "A page up", Where: keys.Anywhere, Run: a.scroll("page-up")},
		{ID: "top", Keys: []string{"g", "home"}, Long: "First row; in the detail panel, first line", Where: keys.Anywhere, Run: a.scroll("top")},
		{ID: "bottom", Keys: []string{"G", "end"}, Long: "Last row; in the detail panel, last line", Where: keys.Anywhere, Run: a.scroll("bottom")},

		{ID: "open", Keys: []string{"enter"}, Hint: "open", Long: "Open: show the detail and fetch the content", Where: keys.InLists, Run: a.ToDetail},
		{ID: "detail", Keys: []string{"right"}, Long: "Go to the detail panel", Where: keys.InLists, Why: detail, Run: a.ToDetail},
		{ID: "detail-vi", Keys: []string{"l"}, Long: "Go to the detail panel", Where: keys.InLists &^ keys.InServers, Why: detail, Run: a.ToDetail},
		{ID: "back", Keys: []string{"esc", "h", "left"}, Hint: "back", Long: "Back: leave the detail panel, clear the filter, close it", Where: keys.Anywhere, Run: a.back},
		{ID: "filter", Keys: []string{"/"}, Hint: "filter", Long: "Filter the list; in the detail panel, search in it", Where: keys.Anywhere, Names: []string{"filter", "search"}, Run: a.startFilter},
		{ID: "next-match", Keys: []string{"n"}, Hint: "next", Long: "Next match of the search in the detail panel", Where: keys.Anywhere, Why: a.whyNotSearched, Run: a.found((*content.View).Next)},
		{ID: "previous-match", Keys: []string{"N"}, Long: "Previous match of the search in the detail panel", Where: keys.Anywhere, Why: a.whyNotSearched, Run: a.found((*content.View).Prev)},
		{ID: "server-facet", Keys: []string{"f"}, Long: "Choose servers from a list with counts", Where: keys.InCatalog | keys.InServers, Names: []string{"server"}, Run: lay(pane.NewFacet("server", "Servers"))},
		{ID: "mime-facet", Keys: []string{"m"}, Long: "Choose MIME types from a list with counts", Where: keys.InResources, Names: []string{"mime", "type"}, Run: lay(pane.NewFacet("mime", "MIME types"))},
		{ID: "sort", Keys: []string{"o"}, Long: "Next sort order", Where: keys.InLists, Names: []string{"sort"}, Run: a.sort},

		{ID: "mark", Keys: []string{" "}, Long: "Mark the row for s, y and A, or no longer", Where: keys.InCatalog, Names: []string{"mark"}, Run: a.mark},
		{ID: "subscribe", Keys: []string{"s"}, Hint: "subscribe", Long: "Subscribe to the resource, or end the subscription", Where: keys.InResources | keys.InDetail, Names: []string{"subscribe", "sub"}},
		{ID: "subscribed", Keys: []string{"S"}, Long: "Show only subscribed resources, or all again", Where: keys.InResources, Names: []string{"subscribed"}},
		{ID: "subscriptions", Keys: []string{"w"}, Long: "List of subscriptions: holders, updates, last change", Where: keys.Anywhere, Names: []string{"subscriptions", "subs"}, Run: lay(pane.NewWatched)},
		{ID: "templates", Keys: []string{"t"}, Hint: "templates", Long: "Go from resources to templates, or back", Where: keys.InResources, Names: []string{"templates"}},
		{ID: "call", Keys: []string{"c"}, Hint: "call", Long: "Call, get or expand it; of traffic, the recorded call", Where: keys.InCatalog | keys.InLogs | keys.InDetail, Names: []string{"call", "get", "expand"}},
		{ID: "repeat", Keys: []string{"."}, Long: "Run the last call once more, with the same arguments", Where: keys.InCatalog | keys.InDetail, Names: []string{"repeat"}, Why: keys.Unless("nothing was called yet", func() bool { return a.Calls.Last != nil }), Run: func() tea.Cmd { return a.Again(*a.Calls.Last) }},
		{ID: "past", Keys: []string{"H"}, Long: "List of its last calls, with arguments and results", Where: keys.InCatalog | keys.InDetail, Names: []string{"history", "past"}, Why: a.whyNoPast, Run: a.showPast},
		{ID: "cancel", Keys: []string{"X"}, Hint: "cancel", Long: "Cancel the running call; in Traffic, anybody's request", Where: keys.Anywhere, Names: []string{"cancel"}, Why: a.whyNotCancel, Run: a.cancel},
		{ID: "answer", Keys: []string{"a"}, Long: "Answer what a server asks; in Servers, else add a server", Where: keys.Anywhere, Names: []string{"answer"}, Why: a.whyNotAnswer, Run: a.answer},
		{ID: "reload", Keys: []string{"r"}, Hint: "reload", Long: "Fetch the content again; in Servers, restart the server", Where: keys.Anywhere, Names: []string{"reload"}},
		{ID: "enable", Keys: []string{"x"}, Hint: "enable/disable", Long: "Disable or enable the server: for good, or for this host", Where: keys.InServers, Names: []string{"toggle"}},
		{ID: "switch", Keys: []string{"x"}, Hint: "off/on", Long: "Turn it off for clients, or on; for those of the view", Where: keys.InCatalog, Names: []string{"off", "on"}},
		{ID: "view", Keys: []string{"V"}, Long: "Choose a profile, to see what its clients see", Where: keys.InCatalog, Names: []string{"view", "profile"}, Run: func() tea.Cmd { return view.New(a.Common) }},
		{ID: "remove", Keys: []string{"D"}, Long: "Remove the server from the config, after asking", Where: keys.InServers, Names: []string{"remove"}},
		{ID: "log-in", Keys: []string{"l"}, Hint: "log in", Long: "Log in at the server by your browser", Where: keys.InServers | keys.InDetail, Why: a.whyNotLogIn, Run: a.logIn},
		{ID: "approve", Keys: []string{"A"}, Hint: "approve", Long: "Approve a tool that changed; in Servers, all of them", Where: keys.InServers | keys.InTools, Names: []string{"approve"}},

		{ID: "copy", Keys: []string{"y"}, Hint: "copy", Long: "Copy the URI or name; of traffic, the JSON-RPC", Where: keys.Anywhere, Names: []string{"copy"}, Run: a.copyName},
		{ID: "copy-content", Keys: []string{"Y"}, Long: "Copy the content, raw; of traffic, a goblin command", Where: keys.Anywhere, Names: []string{"copy-content"}, Run: a.copyContent},
		{ID: "pager", Keys: []string{"e"}, Long: "Open it in $PAGER, made safe; in Servers, go to its stderr", Where: keys.Anywhere, Names: []string{"pager", "less"}, Run: func() tea.Cmd { return a.OpenIn("pager", a.Content()) }},
		{ID: "editor", Keys: []string{"E"}, Long: "Open it in $EDITOR, made safe", Where: keys.Anywhere, Names: []string{"editor", "edit"}, Run: func() tea.Cmd { return a.OpenIn("editor", a.Content()) }},
		{ID: "save", Keys: []string{"W"}, Long: "Save the content to a file, raw", Where: keys.Anywhere, Names: []string{"save", "write"}, Run: func() tea.Cmd { return a.Save(a.Content()) }},
		{ID: "inspect", Keys: []string{"i"}, Long: "Show the requests about this item; of traffic, the item", Where: keys.Anywhere, Names: []string{"inspect"}, Why: a.whyNotInspect, Run: func() tea.Cmd { return a.Inspect(a.Panes[a.Open].Item()) }},

		{ID: "tab-left", Keys: []string{"["}, Long: "Previous tab of Logs", Where: keys.InLogs | keys.InDetail, Why: tabs},
		{ID: "tab-right", Keys: []string{"]"}, Hint: "tabs", Long: "Next tab of Logs", Where: keys.InLogs | keys.InDetail, Why: tabs},
		{ID: "follow", Keys: []string{"f"}, Hint: "follow", Long: "Follow the end, or stay where the cursor is", Where: keys.InLogs, Names: []string{"follow"}},
		{ID: "method-facet", Keys: []string{"m"}, Long: "Choose methods of traffic from a list with counts", Where: keys.InLogs, Names: []string{"method"}, Run: lay(pane.NewFacet("method", "Methods"))},
		{ID: "level", Keys: []string{"L"}, Long: "Next least level that is shown", Where: keys.InLogs, Names: []string{"level"}},
		{ID: "shown", Keys: []string{"v"}, Hint: "show more", Long: "Show notifications, or hide what screens ask as well", Where: keys.InLogs, Names: []string{"notifications"}},
		{ID: "pause", Keys: []string{" "}, Hint: "pause", Long: "Pause the view or go on; mark a request under way for X", Where: keys.InLogs, Names: []string{"pause"}},

		{ID: "palette", Keys: []string{":", "ctrl+p"}, Hint: "command", Long: "Run any command by its name", Where: keys.Anywhere, Run: push(newPalette)},
		{ID: "help", Keys: []string{"?"}, Hint: "help", Long: "Show the keys that work here", Where: keys.Anywhere, Names: []string{"help", "keys"}, Run: push(newHelp)},
		{ID: "clear", Long: "Forget the content that is kept of the selected item", Where: keys.Anywhere, Names: []string{"clear"}, Run: a.clearKept},
		{ID: "leave", Keys: []string{"q"}, Long: "Leave the detail panel", Where: keys.InDetail, Run: a.back},
		{ID: "interrupt", Keys: []string{"ctrl+c"}, Long: "Quit goblin", Where: keys.InDetail, Run: a.quit},
		{ID: "quit", Keys: []string{"q", "ctrl+c"}, Hint: "quit", Long: "Quit this screen; asks when that ends others' servers", Where: keys.InLists, Names: []string{"quit", "q"}, Run: a.quit},
	}...)
}

// textKeys are for what the detail panel shows.
func (a *app) textKeys() keys.Table {
	return keys.Table{
		{ID: "fold", Keys: []string{"-"}, Long: "Fold the JSON in the detail panel by one level", Where: keys.Anywhere, Names: []string{"fold"}, Run: func() tea.Cmd { return a.Details[a.Open].Fold(-1) }},
		{ID: "unfold", Keys: []string{"+", "="}, Long: "Unfold the JSON in the detail panel by one level", Where: keys.Anywhere, Names: []string{"unfold"}, Run: func() tea.Cmd { return a.Details[a.Open].Fold(1) }},
		{ID: "fold-node", Keys: []string{"z"}, Long: "Fold the first node of JSON in sight; a click, any node", Where: keys.InDetail, Names: []string{"fold-node"}, Run: func() tea.Cmd { return a.Details[a.Open].Turn(0, true) }},
		{ID: "query", Keys: []string{"|"}, Long: "Filter the JSON by a path, such as items[*].name", Where: keys.Anywhere, Names: []string{"path", "query"}, Run: a.QueryContent},
		{ID: "wrap", Keys: []string{"\\"}, Long: "Wrap long lines in the detail panel, or not", Where: keys.Anywhere, Names: []string{"wrap"}, Run: a.Rewrap},
		{ID: "sideways", Keys: []string{"}", "shift+right"}, Long: "Sideways over long lines of the detail panel", Where: keys.Anywhere, Run: a.sideways(8)},
		{ID: "sideways-back", Keys: []string{"{", "shift+left"}, Long: "And back", Where: keys.Anywhere, Run: a.sideways(-8)},
	}
}

// lookKeys change how the screen looks.
func (a *app) lookKeys() keys.Table {
	return keys.Table{
		{ID: "place", Keys: []string{"P"}, Long: "Detail panel: where there is room, beside, below, hidden", Where: keys.Anywhere, Names: []string{"layout"}, Run: a.nextPlace},
		{ID: "larger-detail", Keys: []string{"<"}, Long: "Make the detail panel larger", Where: keys.Anywhere, Run: a.resize(-5)},
		{ID: "smaller-detail", Keys: []string{">"}, Long: "Make the detail panel smaller", Where: keys.Anywhere, Run: a.resize(5)},
		{ID: "mouse", Keys: []string{"M"}, Long: "Mouse on or off; off lets the terminal select text", Where: keys.Anywhere, Names: []string{"mouse"}, Run: a.toggleMouse},
		{ID: "theme", Keys: []string{"T"}, Long: "Next theme: auto, dark, light, none", Where: keys.Anywhere, Names: []string{"theme"}, Run: a.nextTheme},
	}
}

// adds reports whether a adds a server: nobody asks anything.
func (a *app) adds() bool { return a.Open == pane.PaneServers && a.asks.Questions.Len() == 0 }

func (a *app) whyNotAnswer() string {
	switch {
	case a.adds():
		return a.servers().WhyNoEdit()
	case a.asks.Questions.Len() == 0:
		return "no server asks anything"
	}
	return ""
}

func (a *app) answer() tea.Cmd {
	if a.adds() {
		return a.servers().Add()
	}
	return a.asks.Answer()
}

func (a *app) servers() *pane.Servers { return a.Panes[pane.PaneServers].(*pane.Servers) }

// binding is the one with an id.
func (a *app) binding(id string) *keys.Binding {
	return &a.keys[slices.IndexFunc(a.keys, func(b keys.Binding) bool { return b.ID == id })]
}
