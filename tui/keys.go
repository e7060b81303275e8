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
	"goblin/tui/saved"
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
	groupScreen = "UI"
)

// bindings returns all keys of the UI outside of forms and dialogs, in the order of help.
// Panes implement bindings without a function.
func (a *app) bindings() keys.Table {
	return slices.Concat(
		a.goKeys().InGroup(groupGo),
		a.moveKeys().InGroup(groupMove),
		a.findKeys().InGroup(groupFind),
		a.doKeys().InGroup(groupDo),
		saved.Keys(func() *saved.Pane { return a.Panes[pane.PaneSaved].(*saved.Pane) }).InGroup(groupDo),
		a.keepKeys().InGroup(groupKeep),
		a.logKeys().InGroup(groupLogs),
		a.textKeys().InGroup(groupText),
		a.screenKeys().InGroup(groupScreen),
	).WithKeys(a.Actions)
}

func (a *app) filterList(field, title string) func() tea.Cmd {
	return func() tea.Cmd {
		o := dialog.FilterListOptions{Context: a.Context, Rows: a.Panes[a.Open].Rows(), SetFilter: a.SetFilter}
		return a.Push(dialog.NewFilterList(o, field, title))
	}
}

func (a *app) goKeys() keys.Table {
	show := func(pane int) func() tea.Cmd { return func() tea.Cmd { return a.Visit(pane) } }
	detail := keys.DisabledUnless("no row selected", func() bool { return a.Panes[a.Open].Subject().Blocks != nil })
	return keys.Table{
		{ID: "servers", Long: "Go to Servers", Names: []string{"servers", "srv"}, Run: show(pane.PaneServers)},
		{ID: "tools", Long: "Go to Tools", Names: []string{"tools"}, Run: show(pane.PaneTools)},
		{ID: "prompts", Long: "Go to Prompts", Names: []string{"prompts"}, Run: show(pane.PanePrompts)},
		{ID: "resources", Long: "Go to Resources and templates", Names: []string{"resources", "res"}, Run: show(pane.PaneResources)},
		{ID: "logs", Long: "Go to Logs: events, traffic, time line, stderr", Names: []string{"logs"}, SearchWords: "traffic events stderr errors goblin timeline", Run: show(pane.PaneLogs)},
		{ID: "usage", Long: "Go to Usage: costs by server, tool and client", Names: []string{"usage", "bill"}, SearchWords: "tokens latency calls errors unused limits", Run: show(pane.PaneUsage)},
		{ID: "saved", Long: "Go to Saved: calls as files, with checks", Names: []string{"saved"}, SearchWords: "tests checks requests collection", Run: show(pane.PaneSaved)},
		{ID: "home", Long: "Go to Home: what needs you, and what runs", Names: []string{"home"}, SearchWords: "start overview alerts dashboard", Run: show(pane.PaneHome)},
		{ID: "clients", Long: "List clients with requests, errors and subscriptions", Names: []string{"clients"}, SearchWords: "sessions who is connected disconnect", Run: a.showClients},
		{ID: "mistakes", Hint: "next alert", Long: "Next alert: stopped request, config mistake, and so on", Names: []string{"alert", "mistakes"}, SearchWords: "config invalid errors edit line breakpoint needs me", Run: func() tea.Cmd { return a.home().Next() }},
		{ID: "rules", Long: "List rules and stopped requests", Names: []string{"rules", "breakpoints"}, SearchWords: "stop deny approve faults hits", Run: a.rules.Show},
		{ID: "next", Long: "Next list or detail, or the next pane", SearchWords: "focus", Run: func() tea.Cmd { return a.nextFocus(1) }},
		{ID: "previous", Long: "Previous list or detail, or the previous pane", SearchWords: "focus", Run: func() tea.Cmd { return a.nextFocus(-1) }},
		{ID: "enlarge", Hint: "enlarge", Long: "Maximize the detail below a list", Run: a.Enlarge},
		{ID: "detail", Long: "Go to the detail", WhyDisabled: detail, Run: a.FocusDetail},
		{ID: "detail-vi", Long: "Go to the detail", WhyDisabled: detail, Run: a.FocusDetail},
		{ID: "back", Hint: "back", Long: "Back: leave detail, clear filter, close detail", SearchWords: "close escape", Run: a.back},
		{ID: "leave", Long: "Leave the detail", Run: a.back},
	}
}

func (a *app) moveKeys() keys.Table {
	return keys.Table{
		{ID: "down", Long: "One row down (detail: one line down)", Run: a.scroll("down")},
		{ID: "up", Long: "One row up (detail: one line up)", Run: a.scroll("up")},
		{ID: "half-down", Long: "Half a page down", Run: a.scroll("half-down")},
		{ID: "half-up", Long: "Half a page up", Run: a.scroll("half-up")},
		{ID: "page-down", Long: "A page down", Run: a.scroll("page-down")},
		{ID: "page-up", Long: "A page up", Run: a.scroll("page-up")},
		{ID: "top", Long: "First row (detail: first line)", Run: a.scroll("top")},
		{ID: "bottom", Long: "Last row (detail: last line)", Run: a.scroll("bottom")},
		{ID: "next-row", Hint: "next row", Long: "Detail: show the next row", Run: func() tea.Cmd { return a.NextRow(1) }},
		{ID: "previous-row", Long: "Detail: show the previous row", Run: func() tea.Cmd { return a.NextRow(-1) }},
		{ID: "line", Long: "Go to a line by number (lists: go to a row)", Names: []string{"line"}, SearchWords: "jump number", Run: a.AskLine},
	}
}

func (a *app) findKeys() keys.Table {
	return keys.Table{
		{ID: "filter", Hint: "filter", Long: "Filter the list (detail: search the text)", Names: []string{"filter", "search"}, SearchWords: "find look for", Run: a.startFilter},
		{ID: "next-match", Hint: "next", Long: "Next match in the detail", WhyDisabled: a.whyNotSearched, Run: a.searchStep((*viewer.View).Next)},
		{ID: "previous-match", Long: "Previous match in the detail", WhyDisabled: a.whyNotSearched, Run: a.searchStep((*viewer.View).Prev)},
		{ID: "only-matches", Hint: "only matches", Long: "Detail: show only lines that match the search", Names: []string{"only-matches"}, SearchWords: "grep filter lines", Run: func() tea.Cmd { return a.OnlyMatches(a.startFilter) }},
		{ID: "server-facet", Long: "Filter by server", Names: []string{"server"}, SearchWords: "narrow filter by", Run: a.filterList("server", "Servers")},
		{ID: "mime-facet", Long: "Filter by MIME type", Names: []string{"mime", "type"}, SearchWords: "narrow filter by type", Run: a.filterList("mime", "MIME types")},
		{ID: "method-facet", Long: "Filter traffic by method", Names: []string{"method"}, SearchWords: "narrow filter by", Run: a.filterList("method", "Methods")},
		{ID: "sort", Hint: "sort", Long: "Sort: next column / reverse (time line: next grouping)", Names: []string{"sort"}, SearchWords: "order reverse turn", Run: func() tea.Cmd { return a.sort(list.Rows.SortNext) }},
		{ID: "sort-column", Long: "Sort: next column, without reversing", SearchWords: "order head", Run: func() tea.Cmd { return a.sort(list.Rows.SortNextColumn) }},
	}
}

func (a *app) doKeys() keys.Table {
	return keys.Table{
		{ID: "open", Hint: "open", Long: "Show detail and content (Servers: start or diagnose)", SearchWords: "read show content", Run: a.FocusDetail},
		{ID: "call", Hint: "call", Long: "Call, get or expand (traffic: call again)", Names: []string{"call", "get", "expand"}, SearchWords: "run execute invoke try use tool prompt template"},
		{ID: "repeat", Long: "Repeat the last call with the same arguments", Names: []string{"repeat"}, WhyDisabled: keys.DisabledUnless("no calls yet", func() bool { return a.Calls.Last != nil }), SearchWords: "again rerun replay", Run: func() tea.Cmd { return dialog.Again(a.Context, *a.Calls.Last) }},
		{ID: "past", Long: "List past calls (Resources: list reads and updates)", Names: []string{"history", "past"}, WhyDisabled: a.whyNoPastCalls, SearchWords: "history earlier results", Run: a.showPastCalls},
		{ID: "cancel", Hint: "cancel", Long: "Cancel the running call (traffic: cancel the request)", Names: []string{"cancel"}, WhyDisabled: a.whyNotCancel, SearchWords: "stop abort kill interrupt", Run: a.cancel},
		{ID: "answer", Hint: "answer", Long: "Answer a server's request (Servers: add a server)", Names: []string{"answer"}, WhyDisabled: a.whyNotAnswer, SearchWords: "elicitation sampling reply question new", Run: a.answer},
		{ID: "break", Hint: "break", Long: "Add a rule for such requests, or show it", Names: []string{"break"}, WhyDisabled: func() string { return a.ruleTarget().Reason }, SearchWords: "breakpoint stop deny delay fail fault rule", Run: func() tea.Cmd { return a.rules.Add(a.ruleTarget()) }},
		{ID: "compare", Hint: "compare", Long: "Mark the call for a comparison; on another: compare", Names: []string{"compare", "diff"}, WhyDisabled: a.whyNotCompare, SearchWords: "difference mark two calls"},
		{ID: "compare-definition", Long: "Mark the definition; on another: compare", Names: []string{"compare-definition"}, SearchWords: "difference two tools prompts"},
		{ID: "mark", Hint: "mark", Long: "Mark rows to subscribe, copy or approve together", Names: []string{"mark"}, SearchWords: "select several tick", Run: a.toggleMark},
		{ID: "mark-all", Hint: "mark all", Long: "Mark all rows of the filtered list, or unmark them", Names: []string{"mark-all"}, WhyDisabled: a.whyNotMarkAll, SearchWords: "select everything several tick unmark", Run: a.toggleMarks},
		{ID: "subscribe", Hint: "subscribe", Long: "Subscribe to the resource, or unsubscribe", Names: []string{"subscribe", "sub"}, SearchWords: "watch follow unsubscribe updates notify"},
		{ID: "subscribed", Long: "Show subscribed resources only, or all", Names: []string{"subscribed"}, SearchWords: "watched only"},
		{ID: "subscriptions", Long: "List subscriptions with holders and updates", Names: []string{"subscriptions", "subs"}, SearchWords: "watches who holds", Run: a.ShowSubscriptions},
		{ID: "templates", Hint: "templates", Long: "Switch between resources and templates", Names: []string{"templates"}, SearchWords: "expand"},
		{ID: "reload", Hint: "reload", Long: "Fetch the content again (Servers: restart the server)", Names: []string{"reload"}, SearchWords: "refresh restart fetch again read"},
		{ID: "enable", Hint: "enable/disable", Long: "Disable or enable the server", Names: []string{"toggle"}, SearchWords: "off on turn stop start disable"},
		{ID: "switch", Hint: "disable/enable", Long: "Disable or enable it for clients (of the chosen profile)", Names: []string{"off", "on"}, SearchWords: "disable enable hide tool"},
		{ID: "seen", Hint: "hide dim rows", Long: "Hide or show entries that clients don't see", Names: []string{"seen"}, SearchWords: "hide dimmed profile hidden"},
		{ID: "view", Long: "Choose a profile to see what its clients see", Names: []string{"view", "profile"}, SearchWords: "clients", Run: func() tea.Cmd { return dialog.NewProfileChooser(a.Context) }},
		{ID: "remove", Long: "Remove the server (Saved: delete the call)", Names: []string{"remove"}, SearchWords: "delete"},
		{ID: "edit-server", Hint: "edit", Long: "Edit the server's entry in the config by a form", Names: []string{"edit-server"}, WhyDisabled: func() string { return a.servers().WhyNotEdit(a.CursorServer()) }, SearchWords: "change variable env args url header timeout configure", Run: func() tea.Cmd { return a.servers().Edit(a.CursorServer()) }},
		{ID: "config", Long: "Edit the config in $EDITOR, at the server's line", Names: []string{"config"}, WhyDisabled: func() string { return a.servers().NoEditReason() }, SearchWords: "edit file yaml settings reload", Run: func() tea.Cmd { return dialog.EditConfig(a.Context, a.CursorServer()) }},
		{ID: "log-in", Hint: "log in", Long: "Log in to the server in your browser", WhyDisabled: a.whyNotLogIn, SearchWords: "login oauth sign authenticate", Run: a.logIn},
		{ID: "approve", Hint: "approve", Long: "Approve a changed tool (Saved: accept the answer)", Names: []string{"approve"}, SearchWords: "accept trust pin changed"},
	}
}

func (a *app) keepKeys() keys.Table {
	return keys.Table{
		{ID: "copy", Hint: "copy", Long: "Copy the URI or name (traffic: copy the JSON-RPC)", Names: []string{"copy"}, SearchWords: "yank clipboard", Run: a.copyName},
		{ID: "copy-content", Long: "Copy the raw content (traffic: copy as command or program)", Names: []string{"copy-content"}, SearchWords: "yank clipboard curl typescript python command result text", Run: a.copyContent},
		{ID: "pager", Long: "Open in $PAGER without escape codes (Servers: show stderr)", Names: []string{"pager", "less"}, SearchWords: "less view read whole stderr", Run: func() tea.Cmd { return dialog.OpenIn(a.Context, "pager", a.Content()) }},
		{ID: "editor", Long: "Open in $EDITOR without escape codes", Names: []string{"editor", "edit"}, SearchWords: "vim view open", Run: func() tea.Cmd { return dialog.OpenIn(a.Context, "editor", a.Content()) }},
		{ID: "save", Long: "Save the raw content to a file", Names: []string{"save", "write"}, SearchWords: "write download export file", Run: func() tea.Cmd { return dialog.Save(a.Context, a.Content()) }},
		{ID: "inspect", Long: "Show requests about the item (traffic: show the item)", Names: []string{"inspect"}, WhyDisabled: a.whyNotInspect, SearchWords: "traffic requests json-rpc debug log", Run: func() tea.Cmd { return a.Inspect(a.Panes[a.Open].Item()) }},
		{ID: "clear", Long: "Remove the cached content of the item", Names: []string{"clear"}, SearchWords: "cache", Run: a.clearCached},
	}
}

func (a *app) logKeys() keys.Table {
	tabs := keys.DisabledUnless("only Logs ("+a.KeyOf("logs")+") and Usage ("+a.KeyOf("usage")+") have tabs", func() bool { return a.Open == pane.PaneLogs || a.Open == pane.PaneUsage })
	return keys.Table{
		{ID: "tab-left", Long: "Previous tab of Logs, Usage or the detail", WhyDisabled: tabs},
		{ID: "tab-right", Hint: "tabs", Long: "Next tab of Logs, Usage or the detail", WhyDisabled: tabs},
		{ID: "follow", Hint: "follow", Long: "Follow new records, or stop following", Names: []string{"follow"}, SearchWords: "tail"},
		{ID: "level", Long: "Minimum log level", Names: []string{"level"}, SearchWords: "severity debug errors warnings"},
		{ID: "shown", Hint: "show all", Long: "Show notifications, or clients' requests only", Names: []string{"notifications"}, SearchWords: "hide noise notifications"},
		{ID: "pause", Hint: "pause", Long: "Pause or continue; mark a running request", Names: []string{"pause"}, SearchWords: "freeze stop"},
		{ID: "fit", Hint: "fit", Long: "Time line: show the whole call, then all calls", Names: []string{"fit"}, SearchWords: "zoom timeline axis whole"},
		{ID: "range", Hint: "range", Long: "Time line: mark a start, then an end: filters all tabs", Names: []string{"range"}, SearchWords: "select between time from until"},
	}
}

func (a *app) textKeys() keys.Table {
	return keys.Table{
		{ID: "fold", Long: "Fold the JSON by one level (time line: zoom out)", Names: []string{"fold"}, SearchWords: "collapse", Run: func() tea.Cmd { return a.Details[a.Open].Fold(-1) }},
		{ID: "unfold", Hint: "unfold", Long: "Unfold the JSON by one level (time line: zoom in)", Names: []string{"unfold"}, SearchWords: "expand", Run: func() tea.Cmd { return a.Details[a.Open].Fold(1) }},
		{ID: "fold-node", Long: "Fold the first visible JSON node (click: any node)", Names: []string{"fold-node"}, SearchWords: "collapse", Run: func() tea.Cmd { return a.Details[a.Open].ToggleNode(0, true) }},
		{ID: "query", Long: "Filter JSON by a path, such as items[*].name", Names: []string{"path", "query"}, SearchWords: "jq jsonpath select", Run: a.QueryContent},
		{ID: "wrap", Long: "Toggle line wrapping in the detail", Names: []string{"wrap"}, SearchWords: "long lines break", Run: a.Rewrap},
		{ID: "sideways", Long: "Scroll long lines right (time line: show later)", SearchWords: "scroll horizontally right", Run: a.scrollSideways(8)},
		{ID: "sideways-back", Hint: "scroll", Long: "Scroll long lines left (time line: show earlier)", SearchWords: "scroll horizontally left", Run: a.scrollSideways(-8)},
	}
}

func (a *app) screenKeys() keys.Table {
	return keys.Table{
		{ID: "palette", Hint: "command", Long: "Run a command, or open anything by name", SearchWords: "run actions", Run: a.showPalette},
		{ID: "help", Hint: "help", Long: "Show the keys available here", Names: []string{"help", "keys"}, SearchWords: "keys shortcuts bindings what can I do", Run: a.showHelp},
		{ID: "place", Long: "Detail: auto, beside, below, hidden", Names: []string{"layout"}, SearchWords: "layout split preview side", Run: a.nextDetailPlace},
		{ID: "widen", Hint: "full width", Long: "Maximize the list or the detail", Names: []string{"wide", "zoom"}, SearchWords: "full width whole hide panel maximize", Run: a.Zoom},
		{ID: "larger-detail", Long: "Make the detail larger", SearchWords: "resize width split", Run: a.resize(-5)},
		{ID: "smaller-detail", Long: "Make the detail smaller", SearchWords: "resize width split", Run: a.resize(5)},
		{ID: "mouse", Long: "Toggle the mouse (disable it to select text)", Names: []string{"mouse"}, SearchWords: "select terminal clipboard", Run: a.toggleMouse},
		{ID: "theme", Long: "Next theme: auto, dark, light, none", Names: []string{"theme"}, SearchWords: "colours colors dark light", Run: a.nextTheme},
		{ID: "quit", Hint: "quit", Long: "Quit (confirm if servers stop)", Names: []string{"quit", "q"}, SearchWords: "exit close leave", Run: a.quit},
		{ID: "interrupt", Long: "Quit (cannot be remapped)", SearchWords: "exit close", Run: a.quit},
	}
}

// The answer key adds a server while no request is open.
func (a *app) answerAddsServer() bool {
	return a.Open == pane.PaneServers && a.questions.Questions.Len() == 0
}

func (a *app) whyNotAnswer() string {
	switch {
	case a.answerAddsServer():
		return a.servers().NoEditReason()
	case a.questions.Questions.Len() == 0:
		return "no open requests from servers"
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
	if strings.Contains(id, ".") { // not in the palette
		return "no key"
	}
	return ":" + id
}

func (a *app) keysOf(ids ...string) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = a.KeyOf(id)
	}
	return strings.Join(all, " ")
}
