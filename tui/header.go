package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/query"
	"goblin/registry/report"
	"goblin/tui/pane"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
)

// header is the data of the top line. It is read at each beat, so it changes at most
// twice a second.
type header struct {
	servers  int
	ready    int
	idle     int
	starting int
	down     int
	clients  int
	screens  int
	sessions []registry.Session
	running  int
	rate     rate
	record   *report.Recording
}

func (h *header) refresh(a *app) {
	h.servers, h.ready, h.idle, h.starting, h.down = 0, 0, 0, 0, 0
	for _, s := range a.Reg.States() {
		h.servers++
		switch {
		case s.State == registry.StateSleeping:
			h.idle++
		case pane.IsReachable(s.State):
			h.ready++
		case pane.IsDown(s):
			h.down++
		case s.State == registry.StateConnecting:
			h.starting++
		}
	}
	h.sessions, h.clients, h.screens = a.Reg.Sessions(), 0, 0
	for _, s := range h.sessions {
		switch {
		case s.Screen:
			h.screens++
		case s.SilentFor() == 0:
			h.clients++
		}
	}
	h.running = a.Calls.Len()
	h.record = a.Backend.Recording()
}

func (h *header) updateRates(a *app) {
	now := a.Now()
	h.rate.read(now, a.Reg.Traffic().Requests())
	a.Pulse.Read(a.Reg.Traffic(), now)
}

type rate struct {
	readings [minute + 1]uint64 // total request counts, one per second
	at       int64              // second of the last reading, 0 before the first
}

const minute = 60

func (r *rate) read(now time.Time, all uint64) {
	at := now.Unix()
	if r.at == 0 || at-r.at > minute {
		first := all
		if r.at != 0 {
			first = r.readings[r.at%(minute+1)]
		}
		for i := range r.readings {
			r.readings[i] = first
		}
	}
	for s := max(r.at+1, at-minute); s < at; s++ {
		r.readings[s%(minute+1)] = r.readings[r.at%(minute+1)]
	}
	r.readings[at%(minute+1)], r.at = all, max(at, r.at)
}

// String returns the requests per second.
func (r *rate) String() string {
	n := r.readings[r.at%(minute+1)] - r.readings[(r.at+1)%(minute+1)]
	switch f := float64(n) / minute; {
	case n == 0:
		return "0"
	case f < 1:
		return fmt.Sprintf("%.2f", f)
	case f < 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.0f", f)
	}
}

func (a *app) busy() int { return a.header.starting + a.header.running + a.Logins }

func (a *app) configName() string {
	if a.o.Daemon.Demo {
		return "demo"
	}
	return a.o.Daemon.Config[strings.LastIndexAny(a.o.Daemon.Config, `/\`)+1:]
}

// segment is a part of the header. A click runs its action, if it has one. Without room,
// segments are left out whole, those with the lowest rank first.
type segment struct {
	text  string
	rank  rank
	run   func() tea.Cmd
	short string // replaces the text of a kept segment without room
}

type rank int

const (
	rankAddress rank = iota
	rankRate
	rankUIs
	rankClients
	rankMouse
	rankRunning
	rankTitle
	rankConfig
	rankIdle
	rankServers
	rankPaused
	rankQuestions
	kept // always shown
)

const (
	segmentGap    = "  "
	maxConfigName = 32 // cells
)

// headerSegments returns the parts of the header that have room, for drawing and clicks.
func (a *app) headerSegments() (left, right []segment) {
	if a.o.Recording != nil {
		left = a.recordingSegments()
	} else {
		left, right = a.leftSegments(), a.rightSegments()
	}
	width := func() int {
		w := theme.Width(joinSegments(left)) + 2 // margins
		if len(right) > 0 {
			w += theme.Width(joinSegments(right)) + len(segmentGap)
		}
		return w
	}
	for r := rankAddress; r < kept && width() > a.W; r++ {
		without := func(s segment) bool { return s.rank == r }
		left, right = slices.DeleteFunc(left, without), slices.DeleteFunc(right, without)
	}
	for _, all := range [][]segment{right, left} {
		for i := range all {
			if all[i].short != "" && width() > a.W {
				all[i].text = all[i].short
			}
		}
	}
	return left, right
}

func (a *app) leftSegments() (left []segment) {
	lk, h := a.Theme, &a.header
	add := func(r rank, run func() tea.Cmd, format string, args ...any) {
		left = append(left, segment{text: fmt.Sprintf(format, args...), rank: r, run: run})
	}
	add(rankTitle, nil, "%s", lk.Accent.On("goblin"))
	if name := cmp.Or(a.o.Daemon.Title, a.configName()); name != "" {
		add(rankConfig, nil, "%s", lk.Cut(uicontext.SanitizeLine(name), maxConfigName))
	}
	for _, m := range a.home().Marks() {
		left = append(left, segment{lk.Bad.On(m.Text), kept, m.Run, lk.Bad.On(m.Short)})
	}
	left = append(left, a.serverSegments()...)
	add(rankClients, a.showClients, "clients %s", uicontext.FormatCount(h.clients))
	if h.screens > 1 {
		add(rankUIs, a.showClients, "UIs %s", uicontext.FormatCount(h.screens))
	}
	add(rankRate, func() tea.Cmd { return a.ShowTraffic("") }, "%s req/s", &h.rate)
	if n := a.Logs().InFlight(); n > 0 {
		add(rankRunning, a.showInFlight, "in flight %s", uicontext.FormatCount(n))
	}
	if h.running > 0 {
		add(rankRunning, a.showInFlight, "running %d", h.running)
	}
	if n := a.questions.Questions.Len(); n > 0 {
		add(rankQuestions, a.questions.Answer, "%s", lk.Warn.On(fmt.Sprintf("?%d %s answers", n, a.KeyOf("answer"))))
	}
	return left
}

func (a *app) rightSegments() (right []segment) {
	lk := a.Theme
	if text := uicontext.RecordingMark(a.header.record); text != "" {
		short, _, failed := strings.Cut(text, ",")
		if short, _, _ = strings.Cut(short, " "); failed || short != text {
			short += lk.Failed
		}
		right = append(right, segment{text: lk.Bad.On(text), rank: kept, short: lk.Bad.On(short)})
	}
	if a.Logs().Paused {
		right = append(right, segment{text: "[paused]", rank: rankPaused, run: func() tea.Cmd { return a.Visit(pane.PaneLogs) }})
	}
	if !a.mouse {
		right = append(right, segment{text: "no mouse", rank: rankMouse})
	}
	if a.o.Daemon.Address != "" && a.W >= 120 {
		right = append(right, segment{text: lk.Dim.On(uicontext.SanitizeLine(a.o.Daemon.Address)), rank: rankAddress})
	}
	return right
}

// serverSegments counts the servers by state. Each count shows its servers.
func (a *app) serverSegments() (all []segment) {
	lk, h := a.Theme, &a.header
	add := func(r rank, text string, is func(registry.ServerState) bool) {
		all = append(all, segment{text: text, rank: r, run: func() tea.Cmd {
			var states []string
			for _, s := range a.Reg.States() {
				if label := s.State.Label(); is(s) && !slices.Contains(states, label) {
					states = append(states, label)
				}
			}
			return a.ShowFiltered(pane.PaneServers, query.Set("", "state", states))
		}})
	}
	if h.ready > 0 || h.servers == 0 {
		add(rankServers, lk.Good.On(lk.Up)+fmt.Sprintf(" %d up", h.ready), func(s registry.ServerState) bool { return s.State == registry.StateReady })
	}
	if h.idle > 0 {
		add(rankIdle, fmt.Sprintf("%s %d idle", lk.Disabled, h.idle), func(s registry.ServerState) bool { return s.State == registry.StateSleeping })
	}
	if h.starting > 0 {
		add(rankServers, a.Spin.View()+fmt.Sprintf(" connecting %d of %d", h.starting, h.servers), func(s registry.ServerState) bool { return s.State == registry.StateConnecting })
	}
	if h.down > 0 {
		add(rankServers, lk.Bad.On(fmt.Sprintf("%s %d down", lk.Failed, h.down)), pane.IsDown)
	}
	return all
}

func (a *app) showInFlight() tea.Cmd { return a.ShowTraffic("status:running") }

func joinSegments(all []segment) string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].text
	}
	return strings.Join(texts, segmentGap)
}

// segmentAt returns the segment at a cell, where the first one begins at cell 0, or nil.
func segmentAt(all []segment, x int) *segment {
	for i := range all {
		w := theme.Width(all[i].text)
		if x >= 0 && x < w {
			return &all[i]
		}
		x -= w + len(segmentGap)
	}
	return nil
}

// segmentAtColumn returns a visible segment, or nil.
func (a *app) segmentAtColumn(x int) *segment {
	left, right := a.headerSegments()
	if end := a.W - 1 - theme.Width(joinSegments(right)); len(right) > 0 && x >= end {
		return segmentAt(right, x-end)
	}
	return segmentAt(left, x-1)
}

func (a *app) clickHeader(x int) tea.Cmd {
	if hit := a.segmentAtColumn(x); hit != nil && hit.run != nil {
		return hit.run()
	}
	return nil
}

func (a *app) headerLine() string {
	left, right := a.headerSegments()
	end := ""
	if len(right) > 0 {
		end = segmentGap + joinSegments(right) + " "
	}
	return a.Theme.Sides(a.appendSparklines(" "+joinSegments(left), a.W-max(theme.Width(end), 1)), end, a.W)
}

func (a *app) appendSparklines(line string, room int) string {
	if a.W < 100 {
		return line
	}
	for _, spark := range a.Pulse.Short(a.Theme, a.Now(), a.W/10) {
		if theme.Width(line)+2+theme.Width(spark) > room {
			break
		}
		line += "  " + spark
	}
	return line
}

// tabStyle controls the tabs that are not open.
type tabStyle struct {
	whole   int // maximum length of names that are not cut
	letters int // bytes of other names
	counts  bool
	marks   bool // of alerts and changes; counts include them
}

// tabStyles begin with the best one.
var tabStyles = []tabStyle{
	{whole: 16, counts: true},
	{whole: 6, letters: 4, counts: true},
	{letters: 4, counts: true},
	{whole: 6, letters: 4, marks: true},
	{letters: 4, marks: true},
	{letters: 3, marks: true},
	{letters: 2, marks: true},
	{letters: 2},
	{},
}

// tabs shortens names, leaves out counts, marks and then names, until the line fits.
func (a *app) tabs() (line string, ends pane.Tabs) {
	for _, s := range tabStyles {
		if line, ends = a.tabsOf(s); theme.Width(strings.TrimRight(line, " ")) <= a.W {
			break
		}
	}
	return line, ends
}

// tabsOf returns the open tab whole, and the others in a style.
func (a *app) tabsOf(s tabStyle) (line string, ends pane.Tabs) {
	var texts []string
	for i, p := range a.Panes {
		name, count := p.Tab()
		text := name
		if i != a.Open && len(name) > s.whole {
			text = name[:min(s.letters, len(name))]
		}
		if b := a.binding(strings.ToLower(name)); len(b.Keys) > 0 {
			text = strings.TrimRight(keymap.FormatKey(b.Keys[0])+" "+text, " ")
		}
		for part := range strings.FieldsSeq(count) {
			isMark := part[0] < '0' || part[0] > '9'
			if s.counts || i == a.Open || s.marks && isMark {
				text += " " + part
			}
		}
		texts = append(texts, text)
	}
	return pane.DrawTabs(a.Theme, texts, a.Open)
}

func (a *app) tabsLine() string {
	line, _ := a.tabs()
	return a.Theme.Fit(strings.TrimRight(line, " "), a.W)
}

// searchMark returns the mark of the bar, and where a search looks.
func (a *app) searchMark() (mark, where string) {
	if a.searching && a.Details[a.Open].View.HidesOthers() {
		return "&", "in the detail, other lines hidden"
	}
	return "/", "in the detail"
}

func (a *app) barLine() string {
	lk := a.Theme
	r := a.Panes[a.Open].Rows()
	typed, terms := r.FilterQuery()
	switch {
	case a.filtering:
		mark, where := a.searchMark()
		left := " " + lk.Accent.On(mark) + " " + a.bar.View()
		if a.barSelected {
			left = " " + lk.Accent.On(mark) + " " + lk.Row(lk.Cut(uicontext.SanitizeLine(a.bar.Value()), a.bar.Width), true) + lk.Dim.On("  typing replaces it")
		}
		if bad := " ! " + uicontext.SanitizeLine(a.Flash.Text); a.Flash.Bad {
			return lk.Fit(lk.Sides(lk.Cut(left, max(8, a.W-theme.Width(bad))), lk.Bad.On(bad), a.W), a.W)
		}
		if a.searching {
			return lk.Sides(left, lk.Dim.On(a.Details[a.Open].View.MatchPosition(where)+" "), a.W)
		}
		right := lk.Dim.On(fmt.Sprintf("%s of %s  %s ", uicontext.FormatInt(r.Len()), uicontext.FormatInt(r.Total()), uicontext.FormatDuration(r.SearchTime())))
		if p := terms.Problem(); p != "" {
			right = lk.Warn.On(uicontext.SanitizeLine(p) + " ")
		}
		return lk.Sides(left, right, a.W)
	}
	left, right := "", ""
	if typed != "" {
		left = " / " + uicontext.SanitizeLine(typed) + "  " + lk.Dim.On(fmt.Sprintf("%s of %s", uicontext.FormatInt(r.Len()), uicontext.FormatInt(r.Total())))
		right = lk.Dim.On(a.KeyOf("back") + " clears ")
		if p := terms.Problem(); p != "" {
			right = lk.Warn.On(lk.Cut("! "+uicontext.SanitizeLine(p), max(a.W/2, a.W-theme.Width(left)-3)) + " ")
		}
	}
	if _, n := a.Details[a.Open].View.MatchIndex(); a.Inside && n > 0 {
		left, right = " "+a.Details[a.Open].View.MatchPosition("found"), lk.Dim.On(a.KeyOf("next-match")+" next  "+a.KeyOf("previous-match")+" previous ")
	}
	if a.Flash.Text != "" {
		text := " " + uicontext.SanitizeLine(a.Flash.Text)
		if a.Flash.Bad {
			text = lk.Bad.On(" ! " + uicontext.SanitizeLine(a.Flash.Text))
		}
		if left == "" || theme.Width(left)+theme.Width(text)+4 > a.W {
			return lk.Fit(text, a.W)
		}
		return lk.Sides(left, text+" ", a.W)
	}
	if notice := a.Reg.Notice(); notice != "" {
		// The folder would leave too little room for the mistake.
		if path := a.o.Daemon.Config; path != "" {
			notice = strings.ReplaceAll(notice, path, a.configName())
		}
		if key := a.KeyOf("mistakes"); len(a.Reg.Mistakes()) == 1 {
			notice += " (" + key + " shows it)"
		} else { // the command is for other terminals
			notice = strings.Replace(notice, ": goblin validate)", ", "+key+" shows them)", 1)
		}
		right = lk.Bad.On(uicontext.CutBefore(lk, uicontext.SanitizeLine(" ! "+notice)+" ", max(0, a.W-theme.Width(left)-2)))
		if left == "" {
			return lk.Fit(right, a.W)
		}
	}
	if left != "" {
		return lk.Sides(left, right, a.W)
	}
	return a.idleLine()
}

// idleLine returns a hint: that the user may have forgotten an unused daemon, the heading
// of a borderless list, or the demo's first steps.
func (a *app) idleLine() string {
	lk, o := a.Theme, a.o.Daemon
	switch {
	case a.o.Recording != nil:
		return a.recordingLine()
	case !o.Owner && o.PID > 0 && a.header.clients == 0 && a.header.screens <= 1:
		return lk.Fit(lk.Warn.On(" connected to the daemon ("+o.runs(a.Now())+")")+lk.Dim.On("; stop it with \"goblin stop\""), a.W)
	case a.Geometry().Border == 0 && a.Panes[a.Open].Rows().Total() > 0: // otherwise the border shows it
		title, order := a.Panes[a.Open].Heading()
		return lk.Sides(" "+title, order+" ", a.W)
	case o.Demo:
		return lk.Fit(" "+lk.Warn.On("demo")+": "+lk.Key.On(a.keysOf("resources", "down", "subscribe"))+" subscribes, "+
			lk.Key.On(a.keysOf("tools", "filter")+" count enter "+a.KeyOf("call"))+" calls a tool. "+lk.Dim.On("Add servers: :setup"), a.W)
	}
	return theme.Spaces(a.W)
}
