package pane

import (
	"cmp"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/addserver"
	"goblin/tui/dialog"
	"goblin/tui/serverform"
)

// NoEditReason returns why no server can be added, or "".
func (p *Servers) NoEditReason() string {
	if p.app.Demo {
		return "the demo has no config; goblin add NAME -- COMMAND creates one"
	}
	return ""
}

func (p *Servers) whyNoConfig() string {
	return cmp.Or(p.NoEditReason(), p.none())
}

// CursorServer returns the server of the row under the cursor, or "".
func (a *Layout) CursorServer() string {
	server := a.Panes[a.Open].Item().Server
	if p, ok := a.Panes[a.Open].(*Servers); ok {
		s, _ := p.Table.Selected()
		server = s.Name
	}
	if server == registry.Local {
		return ""
	}
	return server
}

// WhyNotEdit returns why a server's entry cannot be edited, or "".
func (p *Servers) WhyNotEdit(server string) string {
	if server == "" {
		return cmp.Or(p.NoEditReason(), "no server selected")
	}
	return p.NoEditReason()
}

// Edit opens the form of a server's entry, at the variable that its errors name.
func (p *Servers) Edit(server string) tea.Cmd {
	return serverform.Open(p.app.Context, server, p.errorTexts(server)...)
}

// errorTexts returns the last error of a server that is down, its diagnosis and its
// output.
func (p *Servers) errorTexts(server string) (all []string) {
	if s, ok := p.app.Reg.State(server); !ok || !IsDown(s) {
		return nil
	} else if s.LastError != "" {
		all = append(all, s.LastError)
	}
	if f := p.findings[server]; f != nil {
		for _, c := range f.report.Findings() {
			all = append(append(all, c.Text, c.Fix), c.Lines...)
		}
	}
	for _, r := range p.stderrTails[server] {
		all = append(all, r.Text)
	}
	return all
}

// Add opens the search for new servers, and selects the server once it was added.
func (p *Servers) Add() tea.Cmd {
	return addserver.Open(p.app.Context, func(name string) tea.Cmd { return p.app.GoTo(PaneServers, name) })
}

func (p *Servers) remove(s registry.ServerState) tea.Cmd {
	a := p.app
	text := []string{"Removes " + s.Name + " from the config."}
	if names, n := p.clients(); n > 0 {
		text = append(text, fmt.Sprintf("Connected: %s (%s).", names, termtext.Count(n, "client")))
	}
	return a.Push(&dialog.Confirm{
		Screen: a.Context, Title: "Remove " + s.Name + "?", Text: text, Yes: "remove",
		Then: func() tea.Cmd {
			return a.Do(func() error { return a.Backend.RemoveServer(s.Name) }, "remove "+s.Name,
				func() tea.Cmd { return a.Say("Removed %s from the config", s.Name) })
		},
	})
}

// Enable enables or disables a server, permanently or until the daemon stops.
func (p *Servers) Enable(s registry.ServerState) tea.Cmd {
	a, on := p.app, s.State == registry.StateDisabled
	verb, title, done := "disable", "Disable ", "Disabled %s until Goblin stops; "+a.KeyOf("enable")+" enables it"
	text := []string{"Its tools, prompts and resources disappear."}
	if on {
		verb, title, done = "enable", "Enable ", "Enabled %s until Goblin stops"
		text = []string{"It starts at once."}
	}
	set := func(act func() error, done string) func() tea.Cmd {
		return func() tea.Cmd {
			return a.Do(act, verb+" "+s.Name, func() tea.Cmd { return a.Say(done, s.Name) })
		}
	}
	once := set(func() error { return a.Backend.SetEnabled(s.Name, on) }, done)
	names, n := p.clients()
	if n > 0 && !on {
		text = append([]string{fmt.Sprintf("Connected: %s (%s).", names, termtext.Count(n, "client"))}, text...)
	}
	if a.Demo && (on || n == 0) {
		return once()
	}
	c := &dialog.Confirm{Screen: a.Context, Title: title + s.Name + "?", Text: text, Yes: "until Goblin stops", Then: once}
	if !a.Demo {
		c.Permanent = "permanently"
		c.ThenPermanent = set(func() error { return a.Backend.SetDisabled(s.Name, !on) }, strings.ToUpper(verb[:1])+verb[1:]+"d %s in the config")
	}
	return a.Push(c)
}
