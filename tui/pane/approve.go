package pane

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

const maxDiffs = 20

func approvalText(p *registry.UnapprovedTool) string {
	what := "changed since you approved it"
	if p.New {
		what = "new tool of a known server"
	}
	if p.Hidden {
		what += "; hidden until approved"
	}
	return what
}

// meaningText returns one line per difference that matters to callers.
func meaningText(p *registry.UnapprovedTool) string {
	var text strings.Builder
	for _, line := range p.Meaning() {
		text.WriteString("* " + line + "\n")
	}
	return text.String()
}

func (a *Layout) approvalBlocks(tools []registry.UnapprovedTool) []viewer.Section {
	if len(tools) == 0 {
		return nil
	}
	var blocks []viewer.Section
	for i := range tools[:min(len(tools), maxDiffs)] {
		p := &tools[i]
		why := approvalText(p)
		blocks = append(blocks, viewer.Section{Title: uicontext.SanitizeLine(p.Name), Kind: viewer.Note, Text: strings.ToUpper(why[:1]) + why[1:] + ". " + a.KeyOf("approve") + " approves this version."})
		if text := meaningText(p); text != "" {
			blocks = append(blocks, viewer.Section{Kind: viewer.Text, Text: text})
		}
		blocks = append(blocks, viewer.Section{Kind: viewer.Text, Text: p.Diff()})
	}
	if n := len(tools) - maxDiffs; n > 0 {
		blocks = append(blocks, viewer.Section{Kind: viewer.Note, Text: fmt.Sprintf("and %d more", n)})
	}
	return blocks
}

// approvalVersion changes with the unapproved tools.
func approvalVersion(tools []registry.UnapprovedTool) string {
	if len(tools) == 0 {
		return ""
	}
	return fmt.Sprintf("%d %p ", len(tools), tools[0].Offered)
}

// approve asks first.
func (a *Layout) approve(server string, tools []registry.UnapprovedTool) tea.Cmd {
	if len(tools) == 0 {
		return nil
	}
	names, qualified, body := make([]string, len(tools)), make([]string, len(tools)), strings.Builder{}
	for i := range tools {
		p := &tools[i]
		names[i], qualified[i] = p.Name, server+"/"+p.Name
		if i < maxDiffs {
			fmt.Fprintf(&body, "%s: %s\n%s%s\n", uicontext.SanitizeLine(p.Name), approvalText(p), meaningText(p), p.Diff())
		}
	}
	title := "Approve " + uicontext.SanitizeLine(names[0]) + "?"
	if len(tools) > 1 {
		title = fmt.Sprintf("Approve %d tools of %s?", len(tools), uicontext.SanitizeLine(server))
	}
	return a.Push(&dialog.Confirm{
		Screen: a.Context, Title: title, Yes: "approve",
		Text: []string{"Models follow tool descriptions. Clients will see:"},
		Body: strings.TrimSpace(body.String()),
		Then: func() tea.Cmd {
			return a.Do(func() error { return a.Backend.Approve(server, tools) }, "approve",
				func() tea.Cmd { return a.Say("Approved: %s", strings.Join(qualified, ", ")) })
		},
	})
}

// maxShownChanges is the number of past changes in the detail of an entry.
const maxShownChanges = 5

// changeBlocks returns the last changes of an entry by its server, the newest first.
func changeBlocks(reg *registry.Registry, e *registry.Entry) []viewer.Section {
	var fields []viewer.Field
	for _, c := range slices.Backward(reg.ListChanges().Window(0, -1)) {
		if c.Op != registry.OpChanged || c.Server != e.Server || c.Kind != e.Kind || c.Name != e.Name {
			continue
		}
		what := uicontext.SanitizeLine(strings.Join(c.What, "; "))
		fields = append(fields, viewer.Field{Label: c.Time.Format("2006-01-02 15:04"), Value: what})
		if len(fields) == maxShownChanges {
			break
		}
	}
	if fields == nil {
		return nil
	}
	return []viewer.Section{{Title: "Changes by the server", Kind: viewer.Fields, Fields: fields}}
}
