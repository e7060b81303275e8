package pane

import (
	"encoding/json"
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/gateway/display"
	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/form"
	"goblin/tui/work"
)

// WhyNoEdit says why no server can be added.
func (p *Servers) WhyNoEdit() string {
	if p.app.Demo {
		return "the demo has no config; goblin add NAME -- COMMAND makes one"
	}
	return ""
}

func (p *Servers) whyNoConfig() string {
	if why := p.WhyNoEdit(); why != "" {
		return why
	}
	return p.none()
}

// Add opens the form of a new server.
func (p *Servers) Add() tea.Cmd {
	a := p.app
	d := &dialog.FormDialog{Screen: a.Common, Title: "Add a server", Form: form.New(a.Look, form.Spec{
		Actions: a.Actions,
		Intro:   "It goes into the config, and starts at once. ${VAR} and ${keyring:NAME} keep secrets out of the file.",
		Submit:  "add",
		Fields: []form.Field{
			{Name: "name", Title: "name", Required: true, Description: "Letters, digits, . _ and -", Pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`},
			{Name: "target", Title: "command or URL", Required: true, Description: "A program, or the https:// address of a remote server"},
			{Name: "args", Title: "arguments", Kind: form.List, Description: "Of the program"},
			{Name: "env", Title: "variables", Kind: form.List, Description: "Of the program: NAME=VALUE", Pattern: `^[^=]+=`},
			{Name: "headers", Title: "headers", Kind: form.List, Description: "Of a remote server: NAME: VALUE", Pattern: `^[^:]+:`},
		},
	})}
	d.Submit = func(args, _ json.RawMessage) tea.Cmd {
		name, keys, err := entry(args)
		if err != nil {
			d.Form.Fail(err.Error())
			return nil
		}
		return func() tea.Msg {
			err := a.Backend.AddServer(name, keys)
			return work.Done(func() tea.Cmd {
				if err != nil {
					d.Form.Fail(dialog.Clean(err.Error()))
					return nil
				}
				a.Drop(d)
				a.Say("Added %s to the config", name)
				return a.GoTo(PaneServers, name)
			})
		}
	}
	return a.Push(d)
}

// entry is a server of the config as the form says.
func entry(values json.RawMessage) (name string, keys map[string]any, err error) {
	var v struct {
		Name, Target       string
		Args, Env, Headers []string
	}
	if err := json.Unmarshal(values, &v); err != nil {
		return "", nil, err
	}
	keys = make(map[string]any)
	remote := strings.Contains(v.Target, "://")
	switch {
	case remote && len(v.Args)+len(v.Env) > 0:
		return "", nil, fmt.Errorf("arguments and variables are for programs, not for remote servers")
	case !remote && len(v.Headers) > 0:
		return "", nil, fmt.Errorf("headers are for remote servers, not for programs")
	case remote:
		keys["url"] = strings.TrimSpace(v.Target)
	case len(v.Args) == 0: // typed in one line
		words := strings.Fields(v.Target)
		if len(words) == 0 {
			return "", nil, fmt.Errorf("name a program or a URL")
		}
		if keys["command"] = words[0]; len(words) > 1 {
			keys["args"] = words[1:]
		}
	default:
		keys["command"], keys["args"] = strings.TrimSpace(v.Target), v.Args
	}
	for key, list := range map[string]struct {
		pairs []string
		by    string
	}{"env": {v.Env, "="}, "headers": {v.Headers, ":"}} {
		values := make(map[string]string)
		for _, pair := range list.pairs {
			name, value, _ := strings.Cut(pair, list.by) // the form has looked for it
			if list.by == ":" {
				value = strings.TrimSpace(value)
			}
			values[strings.TrimSpace(name)] = value
		}
		if len(values) > 0 {
			keys[key] = values
		}
	}
	return v.Name, keys, nil
}

// remove takes a server out of the config, after asking.
func (p *Servers) remove(s registry.ServerState) tea.Cmd {
	a := p.app
	text := []string{"Its entry goes out of the config; everything else there stays."}
	if names, n := p.clients(); n > 0 {
		text = append(text, fmt.Sprintf("Connected: %s (%s).", names, display.Count(n, "client")))
	}
	return a.Push(&dialog.Confirm{
		Screen: a.Common, Title: "Remove " + s.Name + "?", Text: text, Yes: "remove it",
		Then: func() tea.Cmd {
			return a.Do(func() error { return a.Backend.RemoveServer(s.Name) }, "remove "+s.Name,
				func() tea.Cmd { return a.Say("Removed %s from the config", s.Name) })
		},
	})
}

// Enable turns a server on or off: for good, or as long as the host runs.
func (p *Servers) Enable(s registry.ServerState) tea.Cmd {
	a, on := p.app, s.State == registry.StateDisabled
	verb, title, done := "disable", "Disable ", "Disabled %s, as long as this host runs; "+a.KeyOf("enable")+" enables it"
	text := []string{"Its tools, prompts and resources go away."}
	if on {
		verb, title, done = "enable", "Enable ", "Enabled %s, as long as this host runs"
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
		text = append([]string{fmt.Sprintf("Connected: %s (%s).", names, display.Count(n, "client"))}, text...)
	}
	if a.Demo && (on || n == 0) {
		return once()
	}
	c := &dialog.Confirm{Screen: a.Common, Title: title + s.Name + "?", Text: text, Yes: "while this host runs", Then: once}
	if !a.Demo {
		c.Good = "for good"
		c.ToGood = set(func() error { return a.Backend.SetDisabled(s.Name, !on) }, strings.ToUpper(verb[:1])+verb[1:]+"d %s in the config")
	}
	return a.Push(c)
}
