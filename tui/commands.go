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
	"goblin/tui/keys"
	"goblin/tui/list"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// command is a line of the palette: a binding, or a command that takes an argument or has
// no key.
type command struct {
	names       []string
	arg         string // placeholder, such as "NAME"; "" if it takes none
	long        string
	keys        []string
	argOptional bool
	cursorOnly  bool // acts on the cursor and has no name of its own
	why         func(arg string) string
	run         func(arg string) tea.Cmd
	args        func() []string         // values to choose from; nil if unknown
	about       func(arg string) string // describes a value; may be nil
}

func (c *command) usage() string {
	switch {
	case c.arg == "":
		return c.names[0]
	case c.argOptional:
		return c.names[0] + " [" + c.arg + "]"
	}
	return c.names[0] + " " + c.arg
}

func (c *command) whyNot(arg string) string {
	if c.why == nil {
		return ""
	}
	return c.why(arg)
}

func (a *app) allCommands() []command {
	var all []command
	for i := range a.keys {
		b := &a.keys[i]
		if b.ID == "palette" {
			continue
		}
		names := b.Names
		if len(names) == 0 {
			names = []string{b.ID}
		}
		all = append(all, command{
			names: names, long: b.Long, keys: b.Keys, cursorOnly: len(b.Names) == 0,
			why: func(string) string { return a.whyNotHere(b) },
			run: func(string) tea.Cmd { return a.run(b) },
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

func (a *app) moreCommands() []command {
	return append([]command{
		{names: []string{"open", "goto"}, arg: "NAME", long: "Go to a tool, prompt, resource or template", run: func(string) tea.Cmd { return nil }},
		{names: []string{"server", "srv"}, arg: "NAME", long: "Filter by server", why: a.WhyNoField("server"), run: a.filterBy("server"), args: a.serverNames},
		{names: []string{"mime", "type"}, arg: "TYPE", long: "Filter by MIME type, such as text/*", why: a.WhyNoField("mime"), run: a.filterBy("mime"), args: a.mimeTypes},
		{names: []string{"sort"}, arg: "COLUMN", long: "Sort by a column, or reverse the order", why: a.WhyNoOrder, run: a.sortBy, args: func() []string { return a.Panes[a.Open].Rows().OrderNames() }},
		{names: []string{"theme"}, arg: "NAME", long: "Choose a theme", why: whyNoTheme, run: a.chooseTheme, args: theme.Themes},
	}, append(a.readOnlyCommands(append(a.changingCommands(), a.serverCommands()...)), a.logCommands()...)...)
}

func (a *app) changingCommands() []command {
	return []command{
		{names: []string{"setup"}, long: "Show how to add servers and connect clients", run: func(string) tea.Cmd { return a.Push(newSetup(a)) }},
		{names: []string{"record"}, long: "Start or stop recording all traffic", run: func(string) tea.Cmd { return a.ToggleRecording(func(r *report.Recording) { a.header.record = r }) }},
		{names: []string{"add"}, long: "Add a server to the config", why: func(string) string { return a.servers().NoEditReason() }, run: func(string) tea.Cmd { return a.servers().Add() }},
		{names: []string{"clear all"}, long: "Remove all cached content", run: func(string) tea.Cmd {
			return a.Say("Removed %s", termtext.Count(a.Reg.Contents().ClearAll(), "cached result"))
		}},
	}
}

func (a *app) logCommands() []command {
	open := func(tab int) func(string) tea.Cmd {
		return func(string) tea.Cmd { return tea.Batch(a.Show(pane.PaneLogs), a.Logs().Choose(tab)) }
	}
	return []command{
		{names: []string{"events"}, long: "Go to the events of servers and catalog", run: open(pane.TabEvents)},
		{names: []string{"traffic"}, long: "Go to the traffic: all requests", run: open(pane.TabTraffic)},
		{names: []string{"export"}, arg: "FORMAT [FILE]", long: "Save the requests that Traffic shows", why: a.Logs().ExportReason, run: a.Logs().Export, args: dialog.ExportFormats, about: dialog.ExportText},
		{names: []string{"timeline"}, long: "Go to the time line: requests as bars", run: open(pane.TabTimeline)},
		{
			names: []string{"stderr"}, arg: "SERVER", argOptional: true, long: "Go to the output of servers", args: a.serverNames,
			why: func(arg string) string {
				if arg == "" {
					return ""
				}
				_, why := a.findServer(arg)
				return why
			},
			run: func(arg string) tea.Cmd {
				if arg != "" {
					return a.StderrOf(arg)
				}
				return open(pane.TabStderr)("")
			},
		},
		{names: []string{"goblin"}, long: "Go to Goblin's own log", run: open(pane.TabGoblin)},
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

func (a *app) serverCommands() []command {
	servers := a.servers()
	one := func(name, long string, why func(registry.ServerState) string, do func(registry.ServerState) tea.Cmd) command {
		return command{
			names: []string{name}, arg: "SERVER", argOptional: true, long: long, args: a.serverNames,
			why: func(arg string) string {
				s, problem := a.findServer(arg)
				if problem == "" {
					problem = why(s)
				}
				return problem
			},
			run: func(arg string) tea.Cmd {
				s, _ := a.findServer(arg)
				return do(s)
			},
		}
	}
	return []command{
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
