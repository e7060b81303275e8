package home

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/breakpoints"
	"goblin/tui/dialog"
	"goblin/tui/keys"
	"goblin/tui/pane"
	"goblin/tui/timeline"
	"goblin/tui/uicontext"
)

// kind is a kind of alert, the most urgent first.
type kind int

const (
	stoppedRequests kind = iota
	serverRequests
	invalidConfig
	failedServers
	changedTools
	slowCalls
	brokenRecording
)

// alert is a kind of thing that needs the user.
type alert struct {
	kind    kind
	count   int
	text    string // safe to draw
	does    string // a key with its effect
	targets []target
}

// target is one place of an alert. count is the number of things there, or 0 for one.
type target struct {
	key   string
	show  func() tea.Cmd
	count int
}

func (al alert) key() string { return fmt.Sprint(int(al.kind)) }

func sameAlert(a, b alert) bool {
	return a.kind == b.kind && a.count == b.count && a.text == b.text && a.does == b.does && len(a.targets) == len(b.targets)
}

// findAlerts updates the alerts. Their targets are updated also if they look the same.
func (p *Pane) findAlerts() tea.Cmd {
	var all []alert
	for _, al := range []alert{p.stoppedRequests(), p.serverRequests(), p.invalidConfig(), p.failedServers(), p.changedTools(), p.slowCalls(), p.brokenRecording()} {
		if al.count > 0 {
			all = append(all, al)
		}
	}
	alike := slices.EqualFunc(all, p.all, sameAlert)
	p.all = all
	if alike {
		copy(p.alerts.Rows, all)
		return nil
	}
	return p.alerts.Refresh(len(all), func() []alert { return slices.Clone(all) }, func() tea.Cmd {
		if p.at < 0 {
			p.alerts.MoveTo(0) // the most urgent
		}
		return nil
	})
}

// maxNamed is the maximum number of names in an alert.
const maxNamed = 20

// named returns a singular with its name, or a plural with the first names.
func named(one, several string, names []string) string {
	text := several
	if len(names) == 1 {
		text = one
	}
	return text + ": " + uicontext.SanitizeLine(strings.Join(names[:min(len(names), maxNamed)], ", "))
}

func (p *Pane) goes(n int) string {
	if n > 1 {
		return p.app.KeyOf("open") + " goes to the first"
	}
	return p.app.KeyOf("open") + " goes there"
}

func (p *Pane) stoppedRequests() alert {
	al := alert{kind: stoppedRequests, does: p.app.KeyOf("open") + " decides"}
	var names []string
	for _, s := range p.app.Reg.Rules().Stopped {
		al.targets = append(al.targets, target{key: breakpoints.StopKey(s.ID), show: func() tea.Cmd { return p.rules.ShowStop(s.ID) }})
		names = append(names, strings.TrimSpace(s.Client+" "+cmp.Or(s.Name, s.Method)))
	}
	if al.count = len(names); al.count > 0 {
		al.text = named("request is stopped", "requests are stopped", names)
	}
	return al
}

func (p *Pane) serverRequests() alert {
	al := alert{kind: serverRequests, count: p.questions.Questions.Len(), does: p.app.KeyOf("answer") + " answers"}
	al.text = "requests from servers wait for you"
	if al.count == 1 {
		al.text = "request from a server waits for you"
	}
	al.targets = []target{{"question", p.questions.Answer, al.count}}
	return al
}

func (p *Pane) invalidConfig() alert {
	all := p.app.Reg.Mistakes()
	if len(all) == 0 {
		return alert{}
	}
	m, text := all[0], "config not reloaded: "
	if len(all) > 1 {
		text += termtext.Count(len(all), "error") + ", "
	}
	text += filepath.Base(m.File)
	if m.Line > 0 {
		text += fmt.Sprintf(":%d", m.Line)
	}
	return alert{
		kind: invalidConfig, count: 1, text: uicontext.SanitizeLine(text + " " + m.Text), does: p.app.KeyOf("editor") + " edits it",
		targets: []target{{key: "config", show: func() tea.Cmd { return dialog.NewMistakes(p.app.Context) }}},
	}
}

func (p *Pane) failedServers() alert {
	al := alert{kind: failedServers}
	var names []string
	for i := range p.states {
		s := &p.states[i]
		if !pane.IsDown(*s) {
			continue
		}
		name := s.Name
		al.targets = append(al.targets, target{key: "server " + name, show: func() tea.Cmd { return p.app.ShowServer(name) }})
		names = append(names, name)
		if len(names) == 1 {
			al.text = "server down: " + uicontext.SanitizeLine(name+", "+p.app.Problem(s))
			if s.State == registry.StateNeedsLogin {
				al.text = "server needs a login: " + uicontext.SanitizeLine(name)
			}
		}
	}
	if al.count = len(names); al.count > 1 {
		al.text = named("", "servers down", names)
	}
	al.does = p.goes(al.count)
	return al
}

func (p *Pane) changedTools() alert {
	al := alert{kind: changedTools, count: len(p.unapproved), does: p.app.KeyOf("approve") + " shows the changes"}
	var names, listed []string // listed are servers
	catalog, seen, of := p.app.Reg.Load(), map[string]bool{}, map[string]int{}
	for i := range p.unapproved {
		t := &p.unapproved[i]
		server := t.Server
		of[server]++
		if len(names) < maxNamed {
			names = append(names, server+"/"+t.Name)
		}
		if !seen[server] && catalog.ByServerName(server, registry.Tool, t.Name) != nil {
			seen[server] = true
			listed = append(listed, server)
		}
	}
	if len(listed) > 0 {
		n := 0
		for _, server := range listed {
			n += of[server]
		}
		al.targets = append(al.targets, target{"tools " + strings.Join(listed, " "), func() tea.Cmd {
			return p.app.ShowFiltered(pane.PaneTools, "changed:yes")
		}, n})
	}
	for i := range p.unapproved { // the detail of a server shows its hidden tools
		if server := p.unapproved[i].Server; !seen[server] {
			seen[server] = true
			al.targets = append(al.targets, target{"tools " + server, func() tea.Cmd { return p.app.ShowServer(server) }, of[server]})
		}
	}
	if al.count > 0 {
		al.text = named("tool changed", "tools changed", names)
	}
	return al
}

// A call is slow if it lasts slowFactor times its usual duration, and long enough to act.
const (
	slowFactor = 8
	minSlow    = time.Second
)

type slowCall struct {
	registry.InFlight
	factor int
}

// findSlow compares running calls with their usual durations. It reads earlier calls once
// per call, in a command.
func (p *Pane) findSlow() tea.Cmd {
	now := p.app.Now()
	p.slow = nil
	var unknown []registry.InFlight
	usual := map[string]timeline.Usual{}
	for _, r := range p.app.Logs().Running() {
		worked := timeline.Work(&r.TrafficRecord, now)
		if !isCall(&r.TrafficRecord) || worked < minSlow {
			continue
		}
		key := keyOf(&r.TrafficRecord)
		u, known := p.usual[key]
		if !known {
			unknown = append(unknown, r)
			continue
		}
		usual[key] = u
		if f := u.Factor(worked); f >= slowFactor {
			p.slow = append(p.slow, slowCall{r, f})
		}
	}
	p.usual = usual // without finished calls
	if len(unknown) == 0 || p.measures {
		return nil
	}
	p.measures = true
	journal := p.app.Reg.Traffic()
	return func() tea.Msg {
		window := journal.Window(0, -1)
		records := make([]*registry.TrafficRecord, len(window))
		for i := range window {
			records[i] = &window[i]
		}
		found := make([]timeline.Usual, len(unknown))
		for i := range unknown {
			found[i] = timeline.UsualOf(&unknown[i].TrafficRecord, records)
		}
		return keys.FuncMsg(func() tea.Cmd {
			p.measures = false
			for i := range unknown {
				p.usual[keyOf(&unknown[i].TrafficRecord)] = found[i]
			}
			return nil // the next beat compares
		})
	}
}

func (p *Pane) slowCalls() alert {
	al := alert{kind: slowCalls, count: len(p.slow), does: p.app.KeyOf("cancel") + " cancels it"}
	for _, s := range p.slow {
		al.targets = append(al.targets, target{key: "slow " + keyOf(&s.TrafficRecord), show: func() tea.Cmd { return p.app.ShowRequest(&s.TrafficRecord) }})
	}
	if al.count > 0 {
		first := p.slow[0]
		al.text = fmt.Sprintf("slow: %s, %d times as long as usual", uicontext.SanitizeLine(first.Name), first.factor)
	}
	return al
}

func (p *Pane) brokenRecording() alert {
	r := p.recording
	if r == nil || r.Error == "" && r.Dropped == 0 {
		return alert{}
	}
	text := "recording stopped: " + uicontext.SanitizeLine(r.Error)
	if r.Error == "" {
		text = "recording lost " + termtext.Count(r.Dropped, "record")
	}
	return alert{
		kind: brokenRecording, count: 1, text: text, does: p.app.KeyOf("open") + " shows the log",
		targets: []target{{key: "recording", show: p.app.ShowOwnLog}},
	}
}

// Count returns the number of things that need the user.
func (p *Pane) Count() (n int) {
	for i := range p.all {
		n += p.all[i].count
	}
	return n
}

// Mark is a part of the header about alerts.
type Mark struct {
	Text, Short string // Short is for narrow terminals
	Run         func() tea.Cmd
}

// Marks returns the number of alerts with their key, and the most urgent ones by name.
func (p *Pane) Marks() (all []Mark) {
	n := p.Count()
	for i := range p.all {
		switch first := p.all[i].targets[0]; p.all[i].kind {
		case stoppedRequests:
			n := p.all[i].count
			all = append(all, Mark{termtext.Count(n, "request") + " stopped", uicontext.FormatCount(n) + " stopped", func() tea.Cmd { return p.lead(first) }})
		case invalidConfig:
			all = append(all, Mark{"config invalid", "bad config", func() tea.Cmd { return p.lead(first) }})
		}
	}
	key := " (" + p.app.KeyOf("mistakes") + ")"
	switch {
	case n == 0:
		return nil
	case len(all) == 1 && len(p.all) == 1:
		all[0].Text += key
		return all
	}
	return slices.Insert(all, 0, Mark{termtext.Count(n, "alert") + key, "!" + uicontext.FormatCount(n), p.Next})
}

// Next goes to the most urgent alert that the user has not seen, or starts again.
func (p *Pane) Next() tea.Cmd {
	cmd := p.findAlerts()
	var all []target
	for i := range p.all {
		all = append(all, p.all[i].targets...)
	}
	if len(all) == 0 {
		return tea.Batch(cmd, p.app.Say("Nothing needs you"))
	}
	shown := map[string]bool{} // without alerts that no longer exist
	next := -1
	for i, t := range all {
		if p.shown[t.key] {
			shown[t.key] = true
		} else if next < 0 {
			next = i
		}
	}
	if next < 0 {
		next = 0
		clear(shown)
	}
	p.shown = shown
	if len(all) > 1 {
		p.app.Say("%s; %s goes to the next", position(all, next), p.app.KeyOf("mistakes"))
	}
	return tea.Batch(cmd, p.lead(all[next]))
}

// position returns the number of a target among all alerts, as the header counts them.
func position(all []target, at int) string {
	from, n, total := 1, 0, 0
	for i, t := range all {
		if i == at {
			from, n = total+1, max(t.count, 1)
		}
		total += max(t.count, 1)
	}
	if n > 1 {
		return fmt.Sprintf("Alerts %d to %d of %d", from, from+n-1, total)
	}
	return fmt.Sprintf("Alert %d of %d", from, total)
}

// lead shows a target.
func (p *Pane) lead(t target) tea.Cmd {
	p.shown[t.key] = true
	before := len(p.app.Dialogs)
	cmd := t.show()
	p.opened = nil
	if n := len(p.app.Dialogs); n > before && t.key != "question" { // an answer may be half typed
		p.opened = p.app.Dialogs[n-1]
	}
	return cmd
}

// NextAfter replaces a dialog that an alert opened by the next alert. It returns false for
// other dialogs.
func (p *Pane) NextAfter(d uicontext.Dialog) (cmd tea.Cmd, ok bool) {
	if p.opened != d || d.Typing() {
		return nil, false
	}
	if stops, ok := d.(interface{ Key() string }); ok {
		p.shown[stops.Key()] = true
	}
	p.app.Drop(d)
	return p.Next(), true
}
