package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry/termtext"
	"goblin/tui/palette"
	"goblin/tui/pane"
	"goblin/tui/uicontext"
)

// Recording describes a recording that the UI shows instead of a running gateway. Its
// clock always shows the end of the recording.
type Recording struct {
	Name       string // base name
	Start, End time.Time
	Summary    string // what is missing, or ""
}

func (r *Recording) span() string {
	from, to := r.Start.Local(), r.End.Local()
	end := to.Format(time.TimeOnly)
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		end = to.Format(time.DateTime)
	}
	return from.Format(time.DateTime) + " to " + end
}

// Actions that need a running gateway, outside of dialogs.
var (
	sendingActions  = []string{"call", "repeat", "cancel", "subscribe", "reload"}
	changingActions = []string{"answer", "enable", "switch", "remove", "log-in", "approve", "clear", "break", "config", "edit-server"}
)

// whyReadOnly returns why an action is disabled in a recording, or "".
func (a *app) whyReadOnly(id string) string {
	switch {
	case a.ReadOnly == "":
		return ""
	case slices.Contains(sendingActions, id):
		return a.ReadOnly + "; no requests are sent"
	case slices.Contains(changingActions, id):
		return a.ReadOnly + "; nothing can be changed"
	}
	return ""
}

// readOnlyCommands disables commands of the palette that need a running gateway.
func (a *app) readOnlyCommands(all []palette.Command) []palette.Command {
	if a.ReadOnly == "" {
		return all
	}
	for i := range all {
		all[i].Why = func(string) string { return a.ReadOnly + "; nothing can be changed" }
	}
	return all
}

// showRecording opens the traffic.
func (a *app) showRecording() tea.Cmd {
	if a.o.Recording == nil {
		return nil
	}
	a.Pulse.Read(a.Reg.Traffic(), a.Now())
	a.Open = pane.PaneLogs
	return a.Logs().Choose(pane.TabTraffic)
}

// recordingSegments are the header's parts for a recording.
func (a *app) recordingSegments() []segment {
	lk, r := a.Theme, a.o.Recording
	name := strings.TrimSuffix(strings.TrimSuffix(r.Name, ".gz"), ".jsonl")
	all := []segment{{text: lk.Accent.On("goblin"), rank: kept}, {text: lk.Warn.On("recording") + " " + uicontext.SanitizeLine(name), rank: kept}}
	if !r.Start.IsZero() {
		all = append(all, segment{text: r.span(), rank: rankQuestions})
	}
	all = append(all, segment{text: fmt.Sprintf("servers %d", a.header.servers), rank: rankServers, run: func() tea.Cmd { return a.Visit(pane.PaneServers) }})
	if n := a.header.clients; n > 0 {
		all = append(all, segment{text: fmt.Sprintf("clients %d", n), rank: rankClients, run: a.showClients})
	}
	if n := a.Logs().InFlight(); n > 0 {
		all = append(all, segment{text: fmt.Sprintf("in flight %d", n), rank: rankUIs, run: a.showInFlight})
	}
	return all
}

// recordingLine is the idle line of a recording: what it lacks.
func (a *app) recordingLine() string {
	text := "read-only; ages are relative to the end of the recording"
	if a.o.Recording.Summary != "" {
		text = a.o.Recording.Summary + "; " + a.KeyOf("palette") + "goblin shows details"
	}
	return a.Theme.Fit(" "+a.Theme.Warn.On("recording")+": "+uicontext.SanitizeLine(text), a.W)
}

func (a *app) processText() string {
	if r := a.o.Recording; r != nil {
		return "Recording: " + termtext.Line(r.Name) + ", " + r.span() + "."
	}
	return "Daemon: " + a.o.Daemon.runs(a.Now()) + "."
}
