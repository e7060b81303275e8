package pane

import (
	"context"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Goblin's own tools are one row until the user unfolds them, filters or jumps to one. On
// a small terminal they would hide the tools of servers.

// ownRow returns the row of Goblin's own tools, or nil if there are no other tools.
func (c *catalog) ownRow(snap *registry.Snapshot, profile string) *registry.Entry {
	if c.kind != registry.Tool {
		return nil
	}
	var names []string
	others := false
	for e := range snap.All(registry.Tool) { // Goblin's own come first
		if others = e.Server != registry.Local; others {
			break
		}
		if !c.isUnneeded(profile, e) {
			names = append(names, e.Listed)
		}
	}
	if len(names) == 0 || !others {
		return nil
	}
	return &registry.Entry{
		Kind: registry.Tool, Listed: termtext.Count(len(names), "Goblin tool"),
		Description: strings.Join(names, ", "),
	}
}

// No server has an empty name.
func isOwnRow(e *registry.Entry) bool { return e.Server == "" && e.Name == "" }

// entries returns the rows that are entries of the catalog.
func entries(rows []*registry.Entry) []*registry.Entry {
	if !slices.ContainsFunc(rows, isOwnRow) {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), isOwnRow)
}

func (c *catalog) selected() *registry.Entry {
	e, ok := c.Table.Selected()
	if !ok || isOwnRow(e) {
		return nil
	}
	return e
}

// rowCount returns the number of entries. With a filter or a profile, it first counts the
// matching or visible ones.
func (c *catalog) rowCount() string {
	all := uicontext.FormatInt(c.Table.Total())
	if typed, _ := c.Table.FilterQuery(); typed != "" {
		return uicontext.FormatInt(c.Table.Len()) + "/" + all
	}
	if c.app.Profile != "" || c.hidesInvisible {
		return uicontext.FormatInt(c.countVisible()) + " of " + all
	}
	return all
}

func (c *catalog) countVisible() (n int) {
	for _, k := range append([]registry.Kind{c.kind}, c.below...) {
		n += c.state.visibility[k]
	}
	return min(n, c.Table.Total())
}

func (c *catalog) hidden() func(*registry.Entry, bool) bool {
	folded, hides := c.own.Hidden(), c.hidesInvisible
	backend, profile := c.app.Backend, c.app.Profile
	return func(e *registry.Entry, filtered bool) bool {
		if hides && !isOwnRow(e) {
			if by, _ := backend.HiddenReason(profile, e); by != "" && by != "search" {
				return true
			}
		}
		return folded(e, filtered)
	}
}

func isOwnTool(e *registry.Entry) bool { return e.Server == registry.Local && e.Kind == registry.Tool }

func (c *catalog) toggleHidden() tea.Cmd {
	c.hidesInvisible = !c.hidesInvisible
	said := c.app.Say("Showing dim rows")
	if c.hidesInvisible {
		said = c.app.Say("Dim rows hidden; %s shows them", c.app.KeyOf("seen"))
	}
	return tea.Batch(c.Table.Refilter(), said)
}

func (c *catalog) hiddenHandler(run func() tea.Cmd) keys.Handler {
	return keys.Handler{Run: run, Label: func() string {
		if c.hidesInvisible {
			return "show dim rows"
		}
		return "hide dim rows"
	}}
}

func (c *catalog) ownSubject(head *registry.Entry) Subject {
	tools := entries(c.Table.Rows)
	open := c.app.KeyOf("open")
	return Subject{
		Key: "own tools", Version: head.Description, Title: head.Listed,
		Blocks: func(context.Context) []viewer.Section {
			var facts []viewer.Field
			for _, e := range tools {
				if e.Server == registry.Local {
					facts = append(facts, viewer.Field{Label: e.Listed, Value: firstLine(e.Description)})
				}
			}
			return []viewer.Section{
				{Kind: viewer.Note, Text: "Goblin's own tools search, describe and call the entries of servers. " + open + " lists them."},
				{Kind: viewer.Fields, Fields: facts},
			}
		},
	}
}

func (p *callablePane) ownRowHandlers(open keys.Handler) map[string]keys.Handler {
	detail := open
	detail.Run = p.app.FocusDetail
	return map[string]keys.Handler{"open": p.All.own.Opens(open), "detail": p.All.own.Opens(detail), "detail-vi": p.All.own.Opens(detail)}
}
