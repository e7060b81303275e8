package palette

import (
	"context"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/report"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// source holds what a search reads. It belongs to one open palette.
type source struct {
	entries *dialog.EntrySearch
	keys    []report.ConfigKey
}

// maxFound is the limit of found servers, and of found keys of the config.
const maxFound = 50

// found is the answer to one text.
type found struct {
	entries []*registry.Entry
	servers []string
	keys    []configMatch
}

// search finds entries, servers and keys in a command, because there may be very many.
func (d *Dialog) search(text string, all bool, show func(found)) tea.Cmd {
	d.searching = true
	ctx, cancel := context.WithCancel(d.app.Ctx)
	d.cancel = cancel
	gen, from, states, now := d.gen, d.source, d.app.Reg.States, d.app.Now()
	return func() tea.Msg {
		defer cancel()
		if ctx.Err() != nil {
			return nil
		}
		f := find(ctx, from(), text, now)
		if all {
			f.servers = findServers(states(), text)
		}
		return keys.FuncMsg(func() tea.Cmd {
			if gen != d.gen {
				return nil
			}
			d.searching = false
			show(f)
			if d.enterPending {
				return d.enter()
			}
			return nil
		})
	}
}

func find(ctx context.Context, from source, text string, now time.Time) found {
	p := newPattern(text)
	return found{entries: from.entries.Search(ctx, text, now), keys: findKeys(from.keys, &p)}
}

func findServers(states []registry.ServerState, text string) (all []string) {
	p := newPattern(text)
	for i := range states {
		if fits, _ := p.match(states[i].Name); fits <= fitsLetters && len(all) < maxFound {
			all = append(all, states[i].Name)
		}
	}
	return all
}

// merge adds what a search found to the commands. The cursor stays on its choice if the
// user moved it.
func (d *Dialog) merge(text string, f found) {
	var at choice
	if d.window.Cursor() > 0 {
		at = d.list[d.window.Cursor()]
	}
	p := newPattern(text)
	for _, e := range f.entries {
		c := d.entryChoice(e, true)
		c.fits, c.score = p.match(e.Listed, e.Name, e.Label)
		if c.fits = min(c.fits, fitsWords); c.fits >= fitsLetters && !spells(text, c.names...) {
			continue // some letters of a long name
		}
		d.list = append(d.list, c)
	}
	for _, name := range f.servers {
		c := d.serverChoice(name)
		c.fits, c.score = p.match(name)
		d.list = append(d.list, c)
	}
	for _, m := range f.keys {
		c := d.keyChoice(m)
		c.fits, c.score = m.fits, m.score
		d.list = append(d.list, c)
	}
	d.sort(d.list)
	d.window.Reset(len(d.list))
	for i := range d.list {
		if c := &d.list[i]; at.kind != "" && c.kind == at.kind && c.name == at.name {
			d.window.MoveTo(i)
			break
		}
	}
}

func (d *Dialog) commandChoice(c *Command, arg string) choice {
	kind, line := "command", strings.TrimSpace(c.Names[0]+" "+arg)
	if c.Setting {
		kind = "setting"
	}
	name := line
	if arg == "" {
		name = c.Usage()
	}
	out := choice{
		kind: kind, name: name, about: c.about(arg), why: c.whyNot(arg), complete: line, cursorOnly: c.CursorOnly,
		used: used{line: line}, run: func() tea.Cmd { return c.Run(arg) }, recency: d.o.History.recency(line),
	}
	if len(c.Keys) > 0 {
		out.key = c.Keys[0]
	}
	if arg == "" && c.Arg != "" {
		out.complete += " "
	}
	if arg == "" && c.needsArg() {
		out.asks = true
	}
	return out
}

// entryChoice goes to an entry, and opens its form or reads it if use is true.
func (d *Dialog) entryChoice(e *registry.Entry, use bool) choice {
	line := e.Listed
	if !use {
		line = "open " + line
	}
	return choice{
		kind: e.Kind.String(), name: uicontext.SanitizeLine(e.Listed), right: uicontext.SanitizeLine(e.Server), from: fromEntries,
		complete: uicontext.SanitizeLine(line), recency: d.o.History.recency(line), names: []string{e.Listed, e.Label},
		used: used{line: line, entry: entryID{e.Kind, e.Server, e.Name}},
		run:  func() tea.Cmd { return d.openEntry(e, use) },
	}
}

func (d *Dialog) openEntry(e *registry.Entry, use bool) tea.Cmd {
	app := d.app
	app.Opened = true
	cmd := app.GoToListed(e.Kind, e.Listed)
	if !use || app.ReadOnly != "" {
		return cmd
	}
	it := uicontext.EntryItem(e)
	switch e.Kind {
	case registry.Tool:
		return tea.Batch(cmd, dialog.CallTool(app.Context, e))
	case registry.Prompt:
		return tea.Batch(cmd, dialog.GetPrompt(app.Context, e))
	case registry.Template:
		return tea.Batch(cmd, dialog.Expand(app.Context, it))
	}
	if app.Calls.ForItem(it) != nil {
		return cmd
	}
	return tea.Batch(cmd, app.Calls.Start(uicontext.Request{Item: it, Method: "resources/read", Silent: true, Show: true}))
}

func (d *Dialog) serverChoice(name string) choice {
	return choice{
		kind: "server", name: uicontext.SanitizeLine(name), from: fromServers, complete: uicontext.SanitizeLine(name),
		recency: d.o.History.recency(name), used: used{line: name, server: name},
		run: func() tea.Cmd { return d.app.GoTo(pane.PaneServers, name) },
	}
}

// recent returns what was used last and can run now, the newest first.
func (d *Dialog) recent() (all []choice) {
	h := d.o.History.used
	for i := len(h) - 1; i >= 0 && len(all) < maxRecent; i-- {
		u := h[i]
		switch {
		case u.entry.name != "":
			if e := d.app.Reg.Load().ByServerName(u.entry.server, u.entry.kind, u.entry.name); e != nil {
				all = append(all, d.entryChoice(e, !strings.HasPrefix(u.line, "open ")))
			}
		case u.server != "":
			if _, ok := d.app.Reg.State(u.server); ok {
				all = append(all, d.serverChoice(u.server))
			}
		default:
			if c, arg := d.command(u.line); c != nil && c.whyNot(arg) == "" && (arg != "" || !c.needsArg()) {
				all = append(all, d.commandChoice(c, arg))
			}
		}
	}
	return all
}
