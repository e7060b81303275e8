package tui

import (
	"slices"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/help"
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/palette"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// settingActions are the actions that change a setting of this UI.
var settingActions = []string{"theme", "mouse", "wrap", "place", "sort", "level", "shown", "seen"}

func (a *app) allCommands() []palette.Command {
	var all []palette.Command
	for i := range a.keys {
		b := &a.keys[i]
		if b.ID == "palette" {
			continue
		}
		names := b.Names
		if len(names) == 0 {
			names = []string{b.ID}
		}
		all = append(all, palette.Command{
			Names: names, Long: b.Long, SearchWords: b.SearchWords, Keys: b.Keys, CursorOnly: len(b.Names) == 0,
			Setting: slices.Contains(settingActions, b.ID),
			Why:     func(string) string { return a.whyNotHere(b) },
			Run:     func(string) tea.Cmd { return a.run(b) },
		})
	}
	return append(all, a.moreCommands()...)
}

func (a *app) whyNotHere(b *keys.Binding) string {
	if here := a.focus() | a.Panes[a.Open].Place(); b.Where&here == 0 {
		return "only in " + b.Where.String()
	}
	return a.whyDisabled(b)
}

func (a *app) moreCommands() []palette.Command {
	return append([]palette.Command{
		{Names: []string{"open", "goto"}, Arg: "NAME", Long: "Go to a tool, prompt, resource or template", Run: func(string) tea.Cmd { return nil }},
		{Names: []string{"server", "srv"}, Arg: "NAME", Long: "Filter by server", Why: a.WhyNoField("server"), Run: a.filterBy("server"), Args: a.serverNames},
		{Names: []string{"mime", "type"}, Arg: "TYPE", Long: "Filter by MIME type, such as text/*", Why: a.WhyNoField("mime"), Run: a.filterBy("mime"), Args: a.mimeTypes},
		{Names: []string{"sort"}, Arg: "COLUMN", Long: "Sort by a column, or reverse the order", Why: a.WhyNoOrder, Setting: true, Run: a.sortBy, Args: func() []string { return a.Panes[a.Open].Rows().OrderNames() }},
		{Names: []string{"line"}, Arg: "NUMBER", Long: "Go to a line of the detail, or to a row", Run: a.GoToLine},
		{Names: []string{"theme"}, Arg: "NAME", Long: "Choose a theme", Setting: true, Why: whyNoTheme, Run: a.chooseTheme, Args: theme.Themes},
		{Names: []string{"layout"}, Arg: "PLACE", Long: "Choose the place of the detail", Setting: true, Why: whyNoPlace, Run: a.placeDetail, Args: func() []string { return pane.PlaceNames }},
	}, append(a.readOnlyCommands(append(a.changingCommands(), a.serverCommands()...)), a.logCommands()...)...)
}

func (a *app) changingCommands() []palette.Command {
	return []palette.Command{
		{Names: []string{"setup"}, Long: "Show how to add servers and connect clients", Run: func(string) tea.Cmd { return a.Push(help.NewSetup(a.Context, a.about())) }},
		{Names: []string{"record"}, Long: "Start or stop recording all traffic", Run: func(string) tea.Cmd { return a.ToggleRecording(func(r *report.Recording) { a.header.record = r }) }},
		{Names: []string{"add"}, Long: "Add a server to the config", Why: func(string) string { return a.servers().NoEditReason() }, Run: func(string) tea.Cmd { return a.servers().Add() }},
		{Names: []string{"clear all"}, Long: "Remove all cached content", Run: func(string) tea.Cmd {
			return a.Say("Removed %s", termtext.Count(a.Reg.Contents().ClearAll(), "cached result"))
		}},
	}
}

func (a *app) logCommands() []palette.Command {
	open := func(tab int) func(string) tea.Cmd {
		return func(string) tea.Cmd { return tea.Batch(a.Show(pane.PaneLogs), a.Logs().Choose(tab)) }
	}
	return []palette.Command{
		{Names: []string{"events"}, Long: "Go to the events of servers and catalog", Run: open(pane.TabEvents)},
		{Names: []string{"traffic"}, Long: "Go to the traffic: all requests", Run: open(pane.TabTraffic)},
		{Names: []string{"export"}, Arg: "FORMAT [FILE]", Long: "Save the requests that Traffic shows", Why: a.Logs().ExportReason, Run: a.Logs().Export, Args: dialog.ExportFormats, About: dialog.ExportText},
		{Names: []string{"timeline"}, Long: "Go to the time line: requests as bars", Run: open(pane.TabTimeline)},
		{
			Names: []string{"stderr"}, Arg: "SERVER", ArgOptional: true, Long: "Go to the output of servers", Args: a.serverNames,
			Why: func(arg string) string {
				if arg == "" {
					return ""
				}
				_, why := a.findServer(arg)
				return why
			},
			Run: func(arg string) tea.Cmd {
				if arg != "" {
					return a.StderrOf(arg)
				}
				return open(pane.TabStderr)("")
			},
		},
		{Names: []string{"goblin"}, Long: "Go to Goblin's own log", Run: open(pane.TabGoblin)},
	}
}

func (a *app) filterBy(name string) func(string) tea.Cmd {
	return func(value string) tea.Cmd {
		r := a.Panes[a.Open].Rows()
		f, ok := query.FindTextField(r.FilterFields(), name)
		if !ok {
			return nil
		}
		typed, _ := r.FilterQuery()
		return a.SetFilter(query.SetField(typed, f, []string{value}))
	}
}

func (a *app) sortBy(name string) tea.Cmd {
	return a.sort(func(r list.Rows) tea.Cmd { return r.Sort(name) })
}

func (a *app) serverNames() []string {
	var all []string
	for _, s := range a.Reg.States() {
		all = append(all, s.Name)
	}
	return all
}

// mimeTypes returns the MIME types of the first rows only; key m counts all of them.
func (a *app) mimeTypes() []string {
	r := a.Panes[a.Open].Rows()
	f, ok := query.FindTextField(r.FilterFields(), "mime")
	if !ok {
		return nil
	}
	values, _ := dialog.CountValues(a.Ctx, f, r.HeadRows(), min(r.HeadRows()+r.Total(), list.MaxSyncRows))
	var all []string
	for _, v := range values {
		if v.Text != "" {
			all = append(all, uicontext.SanitizeLine(v.Text))
		}
	}
	return all
}

func whyNoTheme(name string) string {
	if name == "" || slices.Contains(theme.Themes(), name) {
		return ""
	}
	return "unknown theme " + name + "; choose " + strings.Join(theme.Themes(), ", ")
}

func whyNoPlace(name string) string {
	if name == "" || slices.Contains(pane.PlaceNames, name) {
		return ""
	}
	return "unknown place " + uicontext.SanitizeLine(name) + "; choose " + strings.Join(pane.PlaceNames, ", ")
}

func (a *app) placeDetail(name string) tea.Cmd {
	a.SetPlace(name)
	return a.Say("Detail: %s", name)
}

func (a *app) showPalette() tea.Cmd {
	o := palette.Options{Commands: a.allCommands(), Leave: a.leaveDialogs, ConfigKeys: a.o.ConfigKeys, History: &a.commands}
	if path := a.o.Daemon.Config; path != "" && !a.o.Daemon.Demo && a.o.Recording == nil {
		o.EditConfig = func(line int) tea.Cmd { return dialog.EditConfigLine(a.Context, line) }
	}
	return a.Push(palette.New(a.Layout, o))
}

func (a *app) chooseTheme(name string) tea.Cmd {
	a.themeName = name
	a.SetTheme()
	if a.Theme.Variant != name {
		a.themeName = a.Theme.Variant
		return a.Complain("colors are disabled (NO_COLOR or TERM=dumb)")
	}
	a.Say("Theme: %s", name)
	return a.Details[a.Open].Build(true, false)
}

func (a *app) serverCommands() []palette.Command {
	servers := a.servers()
	one := func(name, long string, why func(registry.ServerState) string, do func(registry.ServerState) tea.Cmd) palette.Command {
		return palette.Command{
			Names: []string{name}, Arg: "SERVER", ArgOptional: true, Long: long, Args: a.serverNames,
			Why: func(arg string) string {
				s, problem := a.findServer(arg)
				if problem == "" {
					problem = why(s)
				}
				return problem
			},
			Run: func(arg string) tea.Cmd {
				s, _ := a.findServer(arg)
				return do(s)
			},
		}
	}
	return []palette.Command{
		one("restart", "Restart the server", func(s registry.ServerState) string {
			if s.State == registry.StateDisabled {
				return uicontext.SanitizeLine(s.Name) + " is disabled; :enable enables it"
			}
			return ""
		}, func(s registry.ServerState) tea.Cmd { return servers.Restart(s.Name) }),
		one("doctor", "Diagnose the server", func(registry.ServerState) string { return "" }, servers.Diagnose),
		one("login", "Log in to the server in your browser", pane.NoLoginReason, servers.LogIn),
		one("logout", "Log out of the server", whyNoLogout, servers.LogOut),
		one("enable", "Enable the server", func(s registry.ServerState) string {
			if s.State != registry.StateDisabled {
				return uicontext.SanitizeLine(s.Name) + " is already enabled"
			}
			return ""
		}, servers.Enable),
		one("disable", "Disable the server", func(s registry.ServerState) string {
			if s.State == registry.StateDisabled {
				return uicontext.SanitizeLine(s.Name) + " is already disabled"
			}
			return ""
		}, servers.Enable),
	}
}

func whyNoLogout(s registry.ServerState) string {
	if s.Login == nil {
		return "not logged in to " + uicontext.SanitizeLine(s.Name)
	}
	return ""
}

func (a *app) findServer(name string) (s registry.ServerState, why string) {
	if name == "" {
		if a.Open == pane.PaneServers {
			s, _ = a.Panes[pane.PaneServers].(*pane.Servers).Table.Selected()
			name = s.Name
		} else {
			name = a.Panes[a.Open].Item().Server
		}
	}
	switch name {
	case "":
		return s, "no server selected; name one"
	case registry.Local:
		return s, "Goblin's own entries have no server"
	}
	s, ok := a.Reg.State(name)
	if !ok {
		return s, "no server " + strconv.Quote(uicontext.SanitizeLine(name))
	}
	return s, ""
}
