package tui

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

const (
	groupGo     = "Go to"
	groupMove   = "Move"
	groupFind   = "Find"
	groupDo     = "Do"
	groupKeep   = "Copy, open and save"
	groupLogs   = "Logs"
	groupText   = "Text and JSON"
	groupScreen = "Screen"
)

// bindings returns all keys of the UI outside of forms and dialogs, in the order of help.
// Bindings without a function are implemented by the panes.
func (a *app) bindings() keys.Table {
	return slices.Concat(
		a.goKeys().InGroup(groupGo),
		a.moveKeys().InGroup(groupMove),
		a.findKeys().InGroup(groupFind),
		a.doKeys().InGroup(groupDo),
		a.keepKeys().InGroup(groupKeep),
		a.logKeys().InGroup(groupLogs),
		a.textKeys().InGroup(groupText),
		a.screenKeys().InGroup(groupScreen),
	).WithKeys(a.Actions)
}

func (a *app) push(create func(*app) uicontext.Dialog) func() tea.Cmd {
	return func() tea.Cmd { return a.Push(create(a)) }
}

// filterList returns a function that opens the list of values of a field.
func (a *app) filterList(field, title string) func() tea.Cmd {
	return func() tea.Cmd {
		o := dialog.FilterListOptions{Context: a.Context, Rows: a.Panes[a.Open].Rows(), SetFilter: a.SetFilter}
		return a.Push(dialog.NewFilterList(o, field, title))
	}
}

func (a *app) goKeys() keys.Table {
	show := func(pane int) func() tea.Cmd { return func() tea.Cmd { return a.Visit(pane) } }
	detail := keys.DisabledUnless("there is nothing to look at", func() bool { return a.Panes[a.Open].Subject().Blocks != nil })
	return keys.Table{
		{ID: "servers", Long: "Go to Servers", Names: []string{"servers", "srv"}, Run: show(pane.PaneServers)},
		{ID: "tools", Long: "Go to Tools", Names: []string{"tools"}, Run: show(pane.PaneTools)},
		{ID: "prompts", Long: "Go to Prompts", Names: []string{"prompts"}, Run: show(pane.PanePrompts)},
		{ID: "resources", Long: "Go to Resources, with the templates below them", Names: []string{"resources", "res"}, Run: show(pane.PaneResources)},
		{ID: "logs", Long: "Go to Logs: events, traffic, stderr of servers, Goblin", Names: []string{"logs"}, SearchWords: "traffic events stderr errors", Run: show(pane.PaneLogs)},
		{ID: "usage", Long: "Go to Usage: what tools cost, by server, tool and client", Names: []string{"usage", "bill"}, SearchWords: "tokens latency calls errors unused limits", Run: show(pane.PaneUsage)},
		{ID: "clients", Long: "List of clients: requests, errors, subscriptions, age", Names: []string{"clients"}, SearchWords: "sessions who is connected disconnect", Run: a.showClients},
		{ID: "mistakes", Long: "List of mistakes in the edited config", Names: []string{"mistakes"}, SearchWords: "config invalid errors edit line", Run: func() tea.Cmd { return dialog.NewMistakes(a.Context) }},
		{ID: "next", Long: "Next list or the detail panel; else the next pane", SearchWords: "focus", Run: func() tea.Cmd { return a.nextFocus(1) }},
		{ID: "previous", Long: "Previous list or the detail panel; else the pane before", SearchWords: "focus", Run: func() tea.Cmd { return a.nextFocus(-1) }},
		{ID: "enlarge", Hint: "enlarge", Long: "Give the detail panel below a list the whole body", Run: a.Enlarge},
		{ID: "detail", Long: "Go to the detail panel", WhyDisabled: detail, Run: a.FocusDetail},
		{ID: "detail-vi", Long: "Go to the detail panel", WhyDisabled: detail, Run: a.FocusDetail},
		{ID: "back", Hint: "back", Long: "Back: leave the detail panel, clear the filter, close it", SearchWords: "close escape", Run: a.back},
		{ID: "leave", Long: "Leave the detail panel", Run: a.back},
	}
}

func (a *app) moveKeys() keys.Table {
	return keys.Table{
		{ID: "down", Long: "One row down; in the detail panel, one line", Run: a.scroll("down")},
		{ID: "up", Long: "One row up; in the detail panel, one line", Run: a.scroll("up")},
		{ID: "half-down", Long: "Half a page down", Run: a.scroll("half-down")},
		{ID: "half-up", Long: "Half a page up", Run: a.scroll("half-up")},
		{ID: "page-down", Long: "A page down", Run: a.scroll("page-down")},
		{ID: "page-up", Long: "A page up", Run: a.scroll("page-up")},
		{ID: "top", Long: "First row; in the detail panel, first line", Run: a.scroll("top")},
		{ID: "bottom", Long: "Last row; in the detail panel, last line", Run: a.scroll("bottom")},
	}
}

func (a *app) findKeys() keys.Table {
	return keys.Table{
		{ID: "filter", Hint: "filter", Long: "Filter the list; in the detail panel, search in it", Names: []string{"filter", "search"}, SearchWords: "find look for", Run: a.startFilter},
		{ID: "next-match", Hint: "next", Long: "Next match of the search in the detail panel", WhyDisabled: a.whyNotSearched, Run: a.searchStep((*viewer.View).Next)},
		{ID: "previous-match", Long: "Previous match of the search in the detail panel", WhyDisabled: a.whyNotSearched, Run: a.searchStep((*viewer.View).Prev)},
		{ID: "server-facet", Long: "Choose servers from a list with counts", Names: []string{"server"}, SearchWords: "narrow filter by", Run: a.filterList("server", "Servers")},
		{ID: "mime-facet", Long: "Choose MIME types from a list with counts", Names: []string{"mime", "type"}, SearchWords: "narrow filter by type", Run: a.filterList("mime", "MIME types")},
		{ID: "method-facet", Long: "Choose methods of traffic from a list with counts", Names: []string{"method"}, SearchWords: "narrow filter by", Run: a.filterList("method", "Methods")},
		{ID: "sort", Hint: "sort", Long: "Sort by the next column; once more, the other way round", Names: []string{"sort"}, SearchWords: "order reverse turn", Run: func() tea.Cmd { return a.sort(list.Rows.SortNext) }},
		{ID: "sort-column", Long: "Sort by the next column at once; as a click on its head", SearchWords: "order head", Run: func() tea.Cmd { return a.sort(list.Rows.SortNextColumn) }},
	}
}

func (a *app) doKeys() keys.Table {
	return keys.Table{
		{ID: "open", Hint: "open", Long: "Open: show the detail and fetch the content", SearchWords: "read show content", Run: a.FocusDetail},
		{ID: "call", Hint: "call", Long: "Call, get or expand it; of traffic, the recorded call", Names: []string{"call", "get", "expand"}, SearchWords: "run execute invoke try use tool prompt template"},
		{ID: "repeat", Long: "Run the last call once more, with the same arguments", Names: []string{"repeat"}, WhyDisabled: keys.DisabledUnless("nothing was called yet", func() bool { return a.Calls.Last != nil }), SearchWords: "again rerun replay", Run: func() tea.Cmd { return dialog.Again(a.Context, *a.Calls.Last) }},
		{ID: "past", Long: "List of its last calls, with arguments and results", Names: []string{"history", "past"}, WhyDisabled: a.whyNoPastCalls, SearchWords: "history earlier results", Run: a.showPastCalls},
		{ID: "cancel", Hint: "cancel", Long: "Cancel the running call; in Traffic, anybody's request", Names: []string{"cancel"}, WhyDisabled: a.whyNotCancel, SearchWords: "stop abort kill interrupt", Run: a.cancel},
		{ID: "answer", Long: "Answer what a server asks; in Servers, else add a server", Names: []string{"answer"}, WhyDisabled: a.whyNotAnswer, SearchWords: "elicitation sampling reply question new", Run: a.answer},
		{ID: "mark", Long: "Mark the row to subscribe, copy or approve several", Names: []string{"mark"}, SearchWords: "select several tick", Run: a.toggleMark},
		{ID: "subscribe", Hint: "subscribe", Long: "Subscribe to the resource, or end the subscription", Names: []string{"subscribe", "sub"}, SearchWords: "watch follow unsubscribe updates notify"},
		{ID: "subscribed", Long: "Show only subscribed resources, or all again", Names: []string{"subscribed"}, SearchWords: "watched only"},
		{ID: "subscriptions", Long: "List of subscriptions: holders, updates, last change", Names: []string{"subscriptions", "subs"}, SearchWords: "watches who holds", Run: a.ShowSubscriptions},
		{ID: "templates", Hint: "templates", Long: "Go from resources to templates, or back", Names: []string{"templates"}, SearchWords: "expand"},
		{ID: "reload", Hint: "reload", Long: "Fetch the content again; in Servers, restart the server", Names: []string{"reload"}, SearchWords: "refresh restart fetch again read"},
		{ID: "enable", Hint: "enable/disable", Long: "Disable or enable the server: permanently, or temporarily", Names: []string{"toggle"}, SearchWords: "turn off on stop start disable"},
		{ID: "switch", Hint: "off/on", Long: "Turn it off for clients, or on; for those of the view", Names: []string{"off", "on"}, SearchWords: "disable enable hide tool"},
		{ID: "seen", Hint: "hide dim rows", Long: "Hide what clients do not see, or show it dim again", Names: []string{"seen"}, SearchWords: "hide dimmed profile hidden"},
		{ID: "view", Long: "Choose a profile, to see what its clients see", Names: []string{"view", "profile"}, SearchWords: "clients", Run: func() tea.Cmd { return dialog.NewProfileChooser(a.Context) }},
		{ID: "remove", Long: "Remove the server from the config, after asking", Names: []string{"remove"}, SearchWords: "delete"},
		{ID: "log-in", Hint: "log in", Long: "Log in at the server by your browser", WhyDisabled: a.whyNotLogIn, SearchWords: "login oauth sign authenticate", Run: a.logIn},
		{ID: "approve", Hint: "approve", Long: "Approve a tool that changed; in Servers, all of them", Names: []string{"approve"}, SearchWords: "accept trust pin changed"},
	}
}

func (a *app) keepKeys() keys.Table {
	return keys.Table{
		{ID: "copy", Hint: "copy", Long: "Copy the URI or name; of traffic, the JSON-RPC", Names: []string{"copy"}, SearchWords: "yank clipboard", Run: a.copyName},
		{ID: "copy-content", Long: "Copy the content, raw; of traffic, a goblin command", Names: []string{"copy-content"}, SearchWords: "yank clipboard curl result text", Run: a.copyContent},
		{ID: "pager", Long: "Open it in $PAGER, made safe; in Servers, go to its stderr", Names: []string{"pager", "less"}, SearchWords: "less view read whole stderr", Run: func() tea.Cmd { return dialog.OpenIn(a.Context, "pager", a.Content()) }},
		{ID: "editor", Long: "Open it in $EDITOR, made safe", Names: []string{"editor", "edit"}, SearchWords: "vim view open", Run: func() tea.Cmd { return dialog.OpenIn(a.Context, "editor", a.Content()) }},
		{ID: "save", Long: "Save the content to a file, raw", Names: []string{"save", "write"}, SearchWords: "write download export file", Run: func() tea.Cmd { return dialog.Save(a.Context, a.Content()) }},
		{ID: "inspect", Long: "Show the requests about this item; of traffic, the item", Names: []string{"inspect"}, WhyDisabled: a.whyNotInspect, SearchWords: "traffic requests json-rpc debug log", Run: func() tea.Cmd { return a.Inspect(a.Panes[a.Open].Item()) }},
		{ID: "clear", Long: "Forget the content that is kept of the selected item", Names: []string{"clear"}, SearchWords: "cache", Run: a.clearCached},
	}
}

func (a *app) logKeys() keys.Table {
	tabs := keys.DisabledUnless("only Logs and Usage have tabs; "+a.KeyOf("logs")+" and "+a.KeyOf("usage")+" go there", func() bool { return a.Open == pane.PaneLogs || a.Open == pane.PaneUsage })
	return keys.Table{
		{ID: "tab-left", Long: "Previous tab of Logs or Usage", WhyDisabled: tabs},
		{ID: "tab-right", Hint: "tabs", Long: "Next tab of Logs or Usage", WhyDisabled: tabs},
		{ID: "follow", Hint: "follow", Long: "Follow the end, or stay where the cursor is", Names: []string{"follow"}, SearchWords: "tail"},
		{ID: "level", Long: "Next least level that is shown", Names: []string{"level"}, SearchWords: "severity debug errors warnings"},
		{ID: "shown", Hint: "show all", Long: "Show notifications too, or only what clients ask", Names: []string{"notifications"}, SearchWords: "hide noise notifications"},
		{ID: "pause", Hint: "pause", Long: "Pause the view or go on; mark a request to cancel it", Names: []string{"pause"}, SearchWords: "freeze stop"},
	}
}

func (a *app) textKeys() keys.Table {
	return keys.Table{
		{ID: "fold", Long: "Fold the JSON in the detail panel by one level", Names: []string{"fold"}, SearchWords: "collapse", Run: func() tea.Cmd { return a.Details[a.Open].Fold(-1) }},
		{ID: "unfold", Long: "Unfold the JSON in the detail panel by one level", Names: []string{"unfold"}, SearchWords: "expand", Run: func() tea.Cmd { return a.Details[a.Open].Fold(1) }},
		{ID: "fold-node", Long: "Fold the first node of JSON in sight; a click, any node", Names: []string{"fold-node"}, SearchWords: "collapse", Run: func() tea.Cmd { return a.Details[a.Open].ToggleNode(0, true) }},
		{ID: "query", Long: "Filter the JSON by a path, such as items[*].name", Names: []string{"path", "query"}, SearchWords: "jq jsonpath select", Run: a.QueryContent},
		{ID: "wrap", Long: "Wrap long lines in the detail panel, or not", Names: []string{"wrap"}, SearchWords: "long lines break", Run: a.Rewrap},
		{ID: "sideways", Long: "Sideways over long lines of the detail panel", SearchWords: "scroll horizontally right", Run: a.scrollSideways(8)},
		{ID: "sideways-back", Long: "And back", SearchWords: "scroll horizontally left", Run: a.scrollSideways(-8)},
	}
}

func (a *app) screenKeys() keys.Table {
	return keys.Table{
		{ID: "palette", Hint: "command", Long: "Run any command by its name", SearchWords: "run actions", Run: a.push(newPalette)},
		{ID: "help", Hint: "help", Long: "Show the keys that work here", Names: []string{"help", "keys"}, SearchWords: "keys shortcuts bindings what can I do", Run: a.push(newHelp)},
		{ID: "place", Long: "Detail panel: where there is room, beside, below, hidden", Names: []string{"layout"}, SearchWords: "layout split preview side", Run: a.nextDetailPlace},
		{ID: "widen", Hint: "full width", Long: "Zoom the focused part: list at full width, or the detail", Names: []string{"wide", "zoom"}, SearchWords: "full width whole hide panel maximize", Run: a.Zoom},
		{ID: "larger-detail", Long: "Make the detail panel larger", SearchWords: "resize width split", Run: a.resize(-5)},
		{ID: "smaller-detail", Long: "Make the detail panel smaller", SearchWords: "resize width split", Run: a.resize(5)},
		{ID: "mouse", Long: "Mouse on or off; off lets the terminal select text", Names: []string{"mouse"}, SearchWords: "select terminal clipboard", Run: a.toggleMouse},
		{ID: "theme", Long: "Next theme: auto, dark, light, none", Names: []string{"theme"}, SearchWords: "colours colors dark light", Run: a.nextTheme},
		{ID: "quit", Hint: "quit", Long: "Quit this screen; asks when that ends others' servers", Names: []string{"quit", "q"}, SearchWords: "exit close leave", Run: a.quit},
		{ID: "interrupt", Long: "Quit goblin; this key stays whatever the config says", SearchWords: "exit close", Run: a.quit},
	}
}

// answerAddsServer reports whether the answer key adds a server, which it does while no
// request is open.
func (a *app) answerAddsServer() bool {
	return a.Open == pane.PaneServers && a.questions.Questions.Len() == 0
}

func (a *app) whyNotAnswer() string {
	switch {
	case a.answerAddsServer():
		return a.servers().NoEditReason()
	case a.questions.Questions.Len() == 0:
		return "no server asks anything"
	}
	return ""
}

func (a *app) answer() tea.Cmd {
	if a.answerAddsServer() {
		return a.servers().Add()
	}
	return a.questions.Answer()
}

func (a *app) servers() *pane.Servers { return a.Panes[pane.PaneServers].(*pane.Servers) }

func (a *app) binding(id string) *keys.Binding {
	return &a.keys[slices.IndexFunc(a.keys, func(b keys.Binding) bool { return b.ID == id })]
}

// keyOf returns an action's key as displayed, or its palette command if it has no key.
func (a *app) keyOf(id string) string {
	if all := a.Actions[id].Keys; len(all) > 0 {
		return keymap.FormatKey(all[0])
	}
	for i := range a.keys {
		if b := &a.keys[i]; b.ID == id && len(b.Names) > 0 {
			return ":" + b.Names[0]
		}
	}
	if strings.Contains(id, ".") { // a dialog's keys are not in the palette
		return "no key"
	}
	return ":" + id
}

// keysOf returns the keys of actions, separated by spaces.
func (a *app) keysOf(ids ...string) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = a.KeyOf(id)
	}
	return strings.Join(all, " ")
}
