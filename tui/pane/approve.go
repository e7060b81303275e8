package pane

import (
	"fmt"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/dialog"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// maxDiffs is the maximum number of unapproved tools shown with their changes.
const maxDiffs = 20

// approvalText returns why a tool is unapproved.
func approvalText(p *registry.UnapprovedTool) string {
	what := "changed since it was approved"
	if p.New {
		what = "new on a server that was known without it"
	}
	if p.Hidden {
		what += "; withheld from clients"
	}
	return what
}

// approvalBlocks shows the unapproved tools and their changes.
func (a *Layout) approvalBlocks(tools []registry.UnapprovedTool) []viewer.Section {
	if len(tools) == 0 {
		return nil
	}
	var blocks []viewer.Section
	for i := range tools[:min(len(tools), maxDiffs)] {
		p := &tools[i]
		blocks = append(blocks,
			viewer.Section{Title: uicontext.SanitizeLine(p.Name), Kind: viewer.Note, Text: "It is " + approvalText(p) + ". " + a.KeyOf("approve") + " approves it as it is now."},
			viewer.Section{Kind: viewer.Text, Text: p.Diff()})
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

// approve approves the current definitions of tools after the user has confirmed the
// changes.
func (a *Layout) approve(server string, tools []registry.UnapprovedTool) tea.Cmd {
	if len(tools) == 0 {
		return nil
	}
	names, body := make([]string, len(tools)), strings.Builder{}
	for i := range tools {
		p := &tools[i]
		names[i] = p.Name
		if i < maxDiffs {
			fmt.Fprintf(&body, "%s: %s\n%s\n", uicontext.SanitizeLine(p.Name), approvalText(p), p.Diff())
		}
	}
	title, what := "Approve "+uicontext.SanitizeLine(names[0])+"?", "it"
	if len(tools) > 1 {
		title, what = fmt.Sprintf("Approve %d tools of %s?", len(tools), uicontext.SanitizeLine(server)), "them"
	}
	return a.Push(&dialog.Confirm{
		Screen: a.Context, Title: title, Yes: "approve " + what,
		Text: []string{"A model does what definitions tell it. Clients get " + what + " like this:"},
		Body: strings.TrimSpace(body.String()),
		Then: func() tea.Cmd {
			return a.Do(func() error { return a.Backend.Approve(server, tools) }, "approve",
				func() tea.Cmd { return a.Say("Approved of %s: %s", server, strings.Join(names, ", ")) })
		},
	})
}
