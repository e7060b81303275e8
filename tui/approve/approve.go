// Package approve reviews and approves changed tools in sequence.
//
// It must run on the UI's Update goroutine; it knows no pane.
package approve

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// maxDiffs is the maximum number of changes in one detail.
const maxDiffs = 20

func stateText(p *registry.UnapprovedTool) string {
	what := "Changed since you approved it"
	if p.New {
		what = "New tool of a known server"
	}
	if p.Hidden {
		what += "; hidden until approved"
	}
	return what + "."
}

// Marks returns the risk marks of a tool's change in one line.
func Marks(p *registry.UnapprovedTool) string {
	var all []string
	for _, r := range p.Risks {
		all = append(all, r.Mark)
	}
	return strings.Join(all, " ")
}

// head returns the risks and what the change means to callers.
func head(lk *theme.Theme, p *registry.UnapprovedTool) (all []viewer.Section) {
	if len(p.Risks) > 0 {
		fields := make([]viewer.Field, len(p.Risks))
		for i, r := range p.Risks {
			fields[i] = viewer.Field{Label: r.Mark, Value: r.Text, Style: lk.Warn}
		}
		all = append(all, viewer.Section{Kind: viewer.Fields, Fields: fields})
	}
	var text strings.Builder
	for _, line := range p.Meaning() {
		text.WriteString(line + "\n")
	}
	if text.Len() > 0 {
		all = append(all, viewer.Section{Kind: viewer.Text, Text: text.String()})
	}
	return all
}

// Sections returns the part of a detail about unapproved tools. It compares definitions,
// so it belongs into a command.
func Sections(a *uicontext.Context, lk *theme.Theme, tools []registry.UnapprovedTool) (all []viewer.Section) {
	for i := range tools[:min(len(tools), maxDiffs)] {
		p := &tools[i]
		all = append(all, viewer.Section{Title: uicontext.SanitizeLine(p.Name), Kind: viewer.Note, Text: stateText(p) + " " + a.KeyOf("approve") + " approves this version."})
		all = append(all, head(lk, p)...)
		all = append(all, viewer.Section{Kind: viewer.Text, Text: p.Diff()})
	}
	if n := len(tools) - maxDiffs; n > 0 {
		all = append(all, viewer.Section{Kind: viewer.Note, Text: fmt.Sprintf("and %d more", n)})
	}
	return all
}

// Version changes with the unapproved tools.
func Version(tools []registry.UnapprovedTool) string {
	if len(tools) == 0 {
		return ""
	}
	return fmt.Sprintf("%d %p ", len(tools), tools[0].Offered)
}

// review shows one change after another.
type review struct {
	uicontext.BaseDialog
	app   *uicontext.Context
	tools []registry.UnapprovedTool
	at    int

	sections []viewer.Section // of the tool, or nil while they are made
	view     *viewer.View
	width    int
	theme    *theme.Theme

	approved, pending, left int
	last                    string // the last approved tool
	failed                  []string
}

// Open asks about each tool in sequence.
func Open(a *uicontext.Context, tools []registry.UnapprovedTool) tea.Cmd {
	if len(tools) == 0 {
		return nil
	}
	d := &review{app: a, tools: tools, view: viewer.NewView(a.Theme)}
	return tea.Batch(a.Push(d), d.load())
}

// load compares the definitions of the current tool in a command.
func (d *review) load() tea.Cmd {
	at, p, lk := d.at, d.tools[d.at], d.app.Theme
	d.sections, d.width = nil, 0
	return func() tea.Msg {
		all := append([]viewer.Section{{Kind: viewer.Note, Text: stateText(&p) + " Models follow tool descriptions. Clients will see:"}}, head(lk, &p)...)
		all = append(all, viewer.Section{Kind: viewer.Text, Text: p.Diff()})
		return keys.FuncMsg(func() tea.Cmd {
			if at == d.at {
				d.sections = all
			}
			return nil
		})
	}
}

func (d *review) Heading() string {
	p := &d.tools[d.at]
	title := "Approve " + uicontext.SanitizeLine(p.Name) + "?"
	if len(d.tools) > 1 {
		title += fmt.Sprintf(" %d of %d, %s", d.at+1, len(d.tools), uicontext.SanitizeLine(p.Server))
	}
	return title
}

func (d *review) Where() string            { return uicontext.PositionText(d.view) }
func (d *review) Size(w, h int) (int, int) { return min(w, 100), h }

func (d *review) Lines(w, h int) []string {
	if d.sections == nil {
		return d.app.Theme.Lines([]string{" Comparing …"}, w, h)
	}
	if d.width != w || d.theme != d.app.Theme {
		again := d.width != 0
		d.view.SetTheme(d.app.Theme)
		if doc, err := viewer.Build(d.app.Ctx, d.app.Theme, d.sections, viewer.Options{Width: w, Depth: -1}); err == nil {
			d.view.Show(doc, again)
			d.width, d.theme = w, d.app.Theme
		}
	}
	return d.view.Lines(w, h)
}

func (d *review) Keys() keys.Table {
	return append(keys.Table{
		{ID: "approval.approve", Hint: "approve", Long: "Approve this version, then show the next tool", Run: d.approve},
		{ID: "approval.leave", Hint: "not now", Long: "Leave it unapproved, then show the next tool", Run: func() tea.Cmd { d.left++; return d.next() }},
		{ID: "approval.stop", Hint: "stop", Long: "Stop; the rest stays unapproved", Run: func() tea.Cmd {
			d.left += len(d.tools) - d.at
			d.at = len(d.tools) - 1
			return d.finish()
		}},
	}, keys.Scrolling("scroll", func() keys.Scroller { return d.view })...)
}

// Keys returns the keys of the dialog.
func Keys() keys.Table { return (*review)(nil).Keys() }

func (d *review) Update(msg tea.Msg) tea.Cmd {
	uicontext.ScrollWheel(d.view.Scroll, msg)
	return nil
}

func (d *review) approve() tea.Cmd {
	if d.sections == nil {
		return d.app.Complain("the definitions are being compared")
	}
	p, backend := d.tools[d.at], d.app.Backend
	d.pending++
	done := func() tea.Msg {
		err := backend.Approve(p.Server, []registry.UnapprovedTool{p})
		return keys.FuncMsg(func() tea.Cmd {
			d.pending--
			if err != nil {
				d.failed = append(d.failed, err.Error())
				return tea.Batch(d.app.Complain("approve: %v", err), d.report())
			}
			d.approved++
			d.last = p.Server + "/" + p.Name
			return d.report()
		})
	}
	return tea.Batch(d.next(), done)
}

func (d *review) next() tea.Cmd {
	if d.at+1 == len(d.tools) {
		return d.finish()
	}
	d.at++
	return d.load()
}

func (d *review) finish() tea.Cmd {
	d.app.Drop(d)
	d.at = len(d.tools)
	return d.report()
}

// report shows the result once the dialog is closed and all approvals are done.
func (d *review) report() tea.Cmd {
	switch {
	case d.at < len(d.tools), d.pending > 0:
		return nil
	case len(d.failed) > 0:
		return d.app.Complain("%s; not approved: %s", d.result(), uicontext.SanitizeLine(strings.Join(d.failed, "; ")))
	case len(d.tools) == 1 && d.approved == 1:
		return d.app.Say("Approved: %s", d.last)
	case len(d.tools) == 1:
		return nil
	}
	return d.app.Say("%s", d.result())
}

func (d *review) result() string {
	return fmt.Sprintf("Approved %d, left %d", d.approved, d.left)
}
