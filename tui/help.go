package tui

import (
	"slices"
	"strings"
	"unicode"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/keymap"
	"goblin/tui/addserver"
	"goblin/tui/approve"
	"goblin/tui/breakpoints"
	"goblin/tui/compare"
	"goblin/tui/dialog"
	"goblin/tui/help"
	"goblin/tui/keys"
	"goblin/tui/palette"
	"goblin/tui/pane"
	"goblin/tui/resourcehistory"
	"goblin/tui/uicontext"
)

//go:generate go test -run ^TestKeysFileIsCurrent$ . -update

func (a *app) showHelp() tea.Cmd {
	focus := a.focus()
	groups := make(map[string][]help.Line)
	for i := range a.keys {
		if b := &a.keys[i]; b.Where&focus != 0 {
			also := strings.Join(b.Names, " ") + " " + b.ID + " " + b.SearchWords + " " + b.Long
			groups[b.Group] = append(groups[b.Group], help.Line{Key: help.KeyText(b), Effect: a.effectHere(b), Why: uicontext.SanitizeLine(a.whyDisabled(b)), SearchText: also})
		}
	}
	var all []help.Section
	for _, name := range groupOrder(focus) {
		all = append(all, help.Section{Title: name, Lines: groups[name]})
	}
	var fields []help.Line
	for _, f := range a.Panes[a.Open].Rows().FilterFields() {
		fields = append(fields, help.Line{Key: f.Label(), Effect: f.Help})
	}
	name, _ := a.Panes[a.Open].Tab()
	all = append(all,
		help.Section{Title: "Filter (" + a.KeyOf("filter") + ")", Lines: help.Lines(help.Grammar())},
		help.Section{Title: "Fields of " + name, Lines: fields})
	for _, t := range a.dialogKeys() {
		all = append(all, help.Section{Title: t.title, Lines: help.Lines(t.keys)})
	}
	all = append(all, help.Section{Title: "Mouse", Lines: help.Lines(help.MouseKeys())})
	return a.Push(help.New(a.Context, "Help: "+a.focusName(), all))
}

// effectHere returns what a key does in the focused part. "Sort (time line: group)"
// becomes "Group" in the time line and "Sort" elsewhere. Home has two effects of its own.
func (a *app) effectHere(b *keys.Binding) string {
	if a.Open == pane.PaneHome && (b.ID == "open" || b.ID == "reload") {
		text := a.Handlers[a.Open][b.ID].Label()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	usual, special, ok := strings.Cut(strings.TrimSuffix(b.Long, ")"), " (")
	where, effect, isPlace := strings.Cut(special, ": ")
	if !ok || !isPlace {
		return b.Long
	}
	here, _ := a.Panes[a.Open].Tab()
	part := "lists"
	switch {
	case a.Inside:
		part = "detail"
	case a.Open == pane.PaneLogs && a.Logs().Open == pane.TabTimeline:
		part = "time line"
	}
	isHere := strings.EqualFold(where, here) || where == part || where == "traffic" && a.Open == pane.PaneLogs && a.Logs().IsTraffic()
	switch {
	case isHere:
		return strings.ToUpper(effect[:1]) + effect[1:]
	case slices.Contains([]string{"detail", "lists", "traffic", "time line"}, where) || unicode.IsUpper(rune(where[0])):
		return usual
	}
	return b.Long
}

func groupOrder(in keymap.Place) []string {
	if in == keymap.InLogs {
		return []string{groupLogs, groupFind, groupDo, groupKeep, groupText, groupGo, groupMove, groupScreen}
	}
	if in == keymap.InDetail {
		return []string{groupText, groupDo, groupKeep, groupFind, groupGo, groupMove, groupLogs, groupScreen}
	}
	return []string{groupDo, groupFind, groupKeep, groupText, groupGo, groupMove, groupLogs, groupScreen}
}

func (a *app) focusName() string {
	name, _ := a.Panes[a.Open].Tab()
	if a.Inside {
		return "Detail of " + name
	}
	return name
}

func (a *app) dialogKeys() []titledKeys {
	by := func(title, action string) string { return title + " (" + a.KeyOf(action) + ")" }
	all := []titledKeys{
		{"Filter bar", a.filterKeys()},
		{"Forms", help.FormKeys()},
		{by("Commands", "palette"), (*palette.Dialog)(nil).Keys()},
		{by("Help", "help"), (*help.Dialog)(nil).Keys()},
		{by("Clients", "clients"), new(dialog.Clients).ListKeys()},
		{by("Subscriptions", "subscriptions"), new(dialog.Subscriptions).ListKeys()},
		{"Filter of a dialog", (*dialog.Search)(nil).Keys()},
		{"Lists of values", (*dialog.FilterList)(nil).Keys()},
		{by("Last calls", "past"), new(dialog.PastCalls).Keys()},
		{by("History of a resource", "past"), new(resourcehistory.View).Keys()},
		{by("Comparison", "compare"), compare.Keys()},
		{"New servers", addserver.Keys()},
		{by("Changed tools", "approve"), approve.Keys()},
		{by("Breakpoints", "rules"), breakpoints.Keys()},
		{by("Copy as", "copy-content"), new(dialog.Snippets).Keys()},
		{by("Profiles", "view"), (*dialog.ProfileChooser)(nil).Keys()},
		{by("JSON path", "query"), (*dialog.Query)(nil).Keys()},
		{"Text input", (*dialog.TextPrompt)(nil).Keys()},
		{"Confirmations", (&dialog.Confirm{Permanent: "permanently", Always: "do not ask again"}).Keys()},
		{"URL requests", (*dialog.URLQuestion)(nil).Keys()},
		{"Sampling requests", (*dialog.SamplingQuestion)(nil).Keys()},
		{by("Log in", "log-in"), pane.LoginKeys()},
		{by("Config mistakes", "mistakes"), dialog.MistakesKeys()},
		{"Actions of a row (right click)", (*dialog.Menu)(nil).Keys()},
		{"Key of the config", palette.KeyHelpKeys()},
		{"Setup", (*help.Setup)(nil).Keys()},
	}
	for i := range all {
		all[i].keys.WithKeys(a.Actions)
	}
	return all
}

type titledKeys struct {
	title string
	keys  keys.Table
}
