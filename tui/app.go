package tui

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/spinner"

	"goblin/tui/work"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/edit"
	"goblin/tui/keys"
	"goblin/tui/look"
)

// Times of the screen.
const (
	frameTime  = 33 * time.Millisecond  // least time between two rounds of changes
	beat       = 500 * time.Millisecond // of clocks, rates and fading marks
	flashTime  = 6 * time.Second
	flashLeast = time.Second     // after it, a key takes the line away
	changedFor = 3 * time.Second // how long changed lines stay marked
)

// app is the model of one screen.
type app struct {
	ctx     context.Context
	o       Options
	reg     *registry.Registry
	backend Backend
	term    Terminal
	log     *slog.Logger
	now     func() time.Time
	park    func(x, y int)
	after   func(d time.Duration, msg tea.Msg) tea.Cmd // gives a message later

	look    *look.Look
	theme   string
	w, h    int
	keys    keys.Table
	panes   []pane
	acts    []map[string]keys.Act // of the panes
	details []*detail
	open    int  // index of the pane that is shown
	inside  bool // the detail panel has the focus
	opened  bool // the detail panel is open where it does not stand beside
	layout  layout
	mouse   bool

	bar       edit.Text
	filtering bool // the bar has the focus
	searching bool // … for a search in the detail panel
	history   []string
	commands  []string // run from the palette, the last one at the end

	dialogs   []dialog
	front     rect // the inside of the last one, as it was drawn
	questions *questions
	told      []*question // those that the user knows of
	calls     *calls
	flash     flash
	spin      spinner.Model
	spinning  bool
	head      header
	changes   <-chan registry.Changes
	wake      chan struct{}      // capacity 1: something of this screen's own changed
	greeted   []registry.Session // those whose coming was told
	lastClick click
	quitting  bool
	beats     int
}

// flash is the line that says what just happened.
type flash struct {
	text  string
	bad   bool
	since time.Time
	until time.Time
}

// changedMsg are changes of the registry; wokenMsg of the screen's own state.
type (
	changedMsg struct{ what registry.Changes }
	wokenMsg   struct{}
	beatMsg    struct{}
	againMsg   struct{} // wait for changes again
	rewakeMsg  struct{}
)

func newApp(ctx context.Context, o Options, q *questions, b Backend, t Terminal) *app {
	a := &app{
		ctx: ctx, o: o, reg: o.Registry, backend: b, term: t, log: o.Logger, now: o.Now,
		park: func(int, int) {}, after: later, questions: q, mouse: true,
		wake: make(chan struct{}, 1), layout: defaultLayout(),
	}
	a.keys = a.bindings()
	a.theme = o.Theme
	a.w, a.h = t.Size()
	a.setLook()
	a.bar = edit.New(a.look)
	a.calls = newCalls(a)
	a.panes = []pane{newServers(a), newTools(a), newPrompts(a), newResources(a), newLogs(a)}
	for _, p := range a.panes {
		a.acts = append(a.acts, p.acts())
		a.details = append(a.details, newDetail(a))
	}
	a.open = paneResources
	if len(o.Registry.States()) == 0 {
		a.open = paneServers
	}
	a.changes = a.reg.Watch(ctx)
	a.greeted = a.reg.Sessions()
	q.wakes(a.poke)
	if q.len() > 0 { // asked before the screen was there
		a.poke()
	}
	return a
}

func later(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

// setLook makes the look anew, after the theme or the background changed.
func (a *app) setLook() {
	background := ""
	if dark, known := a.term.Dark(); known {
		background = map[bool]string{true: "dark", false: "light"}[dark]
	}
	a.look = look.New(look.Options{Theme: a.theme, Getenv: a.term.Getenv, ASCII: a.o.ASCII, Background: background})
	fresh := a.look.Spinner()
	if a.spinning { // the one that turns goes on, or its ticks would be another's
		a.spin.Spinner, a.spin.Style = fresh.Spinner, fresh.Style
	} else {
		a.spin = fresh
	}
	for _, d := range a.details {
		d.view.SetLook(a.look)
	}
	for _, d := range a.dialogs {
		if s, ok := d.(interface{ setLook() }); ok {
			s.setLook()
		}
	}
}

// poke wakes the screen. It never blocks and may be called from anywhere.
func (a *app) poke() {
	select {
	case a.wake <- struct{}{}:
	default: // it is awake already and will look
	}
}

// Init begins all that waits.
func (a *app) Init() tea.Cmd {
	cmds := []tea.Cmd{a.waitChanges(), a.waitWake(), a.waitSize(), a.waitBackground(), a.tick()}
	w, h := a.w, a.h
	cmds = append(cmds, func() tea.Msg { return tea.WindowSizeMsg{Width: w, Height: h} })
	for _, p := range a.panes {
		cmds = append(cmds, p.refresh(registry.AllChanges))
	}
	a.head.refresh(a)
	return tea.Batch(cmds...)
}

func (a *app) waitChanges() tea.Cmd {
	return func() tea.Msg {
		if what, ok := <-a.changes; ok {
			return changedMsg{what}
		}
		return nil
	}
}

func (a *app) waitWake() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-a.wake:
			return wokenMsg{}
		case <-a.ctx.Done():
			return nil
		}
	}
}

// waitSize asks for a full repaint with each size: the terminal may have shown
// something else in between.
func (a *app) waitSize() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-a.term.Resized():
			w, h := a.term.Size()
			return resizedMsg{w, h}
		case <-a.ctx.Done():
			return nil
		}
	}
}

type (
	resizedMsg    struct{ w, h int }
	backgroundMsg struct{}
)

func (a *app) waitBackground() tea.Cmd {
	return func() tea.Msg {
		select {
		case <-a.term.Backgrounds():
			return backgroundMsg{}
		case <-a.ctx.Done():
			return nil
		}
	}
}

func (a *app) tick() tea.Cmd {
	return a.after(beat, beatMsg{})
}

// Update is the only place where the screen's state changes.
func (a *app) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyMsg:
		return tea.Batch(a.press(msg), a.follow())
	case tea.MouseMsg:
		return tea.Batch(a.point(msg), a.follow())
	}
	return tea.Batch(a.background(msg), a.follow())
}

// background handles what is no input.
func (a *app) background(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case work.Done:
		return msg()
	case changedMsg:
		return tea.Batch(a.changed(msg.what), a.after(frameTime, againMsg{}))
	case againMsg:
		return a.waitChanges()
	case wokenMsg:
		return tea.Batch(a.questioned(), a.after(frameTime, rewakeMsg{}))
	case rewakeMsg:
		return a.waitWake()
	case resizedMsg:
		size := func() tea.Msg { return tea.WindowSizeMsg{Width: msg.w, Height: msg.h} }
		return tea.Batch(size, tea.ClearScreen, a.waitSize())
	case tea.WindowSizeMsg:
		a.w, a.h = msg.Width, msg.Height
		var cmds []tea.Cmd
		for _, d := range a.dialogs {
			cmds = append(cmds, d.background(msg))
		}
		return tea.Batch(cmds...)
	case backgroundMsg:
		a.setLook()
		return a.waitBackground()
	case beatMsg:
		a.head.refresh(a)
		a.head.pulse(a)
		if a.flash.text != "" && a.now().After(a.flash.until) {
			a.flash = flash{}
		}
		for _, d := range a.details {
			d.fade(a.now())
		}
		return tea.Batch(a.tick(), a.spinIfBusy(), a.aged())
	case spinner.TickMsg:
		var cmd tea.Cmd
		if a.spinning = a.head.busy() > 0; a.spinning {
			a.spin, cmd = a.spin.Update(msg)
		}
		return cmd
	default:
		if n := len(a.dialogs); n > 0 {
			return a.dialogs[n-1].background(msg)
		}
	}
	return nil
}

// agedEvery beats a filter by age is run again: time alone changes what it finds.
const agedEvery = 20

func (a *app) aged() tea.Cmd {
	a.beats++
	r := a.panes[a.open].rows()
	if typed, _ := r.Filtered(); a.beats%agedEvery == 0 && strings.Contains(typed, "updated:") {
		return r.Refilter()
	}
	return nil
}

func (a *app) spinIfBusy() tea.Cmd {
	if a.spinning || a.head.busy() == 0 {
		return nil
	}
	a.spinning = true
	return a.spin.Tick
}

// changed has the panes read what changed.
func (a *app) changed(what registry.Changes) tea.Cmd {
	var cmds []tea.Cmd
	for _, p := range a.panes {
		if mine := what & p.follows(); mine != 0 {
			cmds = append(cmds, p.refresh(mine))
		}
	}
	for _, d := range a.dialogs {
		if live, ok := d.(interface {
			refresh(registry.Changes) tea.Cmd
		}); ok {
			cmds = append(cmds, live.refresh(what))
		}
	}
	if what&registry.Sessions != 0 {
		a.head.refresh(a)
		a.greet()
	}
	return tea.Batch(cmds...)
}

// greet says which clients came and left.
func (a *app) greet() {
	before, now := a.greeted, a.head.sessions
	a.greeted = now
	has := func(list []registry.Session, s registry.Session) bool {
		return slices.ContainsFunc(list, func(o registry.Session) bool { return o.ID == s.ID && o.Client == s.Client })
	}
	for _, s := range now {
		if !s.Screen && s.Client != "" && !has(before, s) {
			a.say("%s connected (%s)", s.Client, s.Transport)
		}
	}
	for _, s := range before {
		if !s.Screen && !slices.ContainsFunc(now, func(o registry.Session) bool { return o.ID == s.ID }) {
			a.say("%s left", cmp.Or(s.Client, "a client"))
		}
	}
}

// follow brings the detail panel to what the cursor is on.
func (a *app) follow() tea.Cmd {
	if !a.detailShown() {
		return nil
	}
	g := a.geometry()
	return a.details[a.open].show(a.panes[a.open].subject(), g.detail.w-2*g.border)
}

// say flashes a line.
func (a *app) say(format string, args ...any) tea.Cmd {
	a.flash = flash{text: fmt.Sprintf(format, args...), since: a.now(), until: a.now().Add(flashTime)}
	return nil
}

// complain flashes what went wrong.
func (a *app) complain(format string, args ...any) tea.Cmd {
	a.say(format, args...)
	a.flash.bad = true
	return nil
}

// The panes, by index.
const (
	paneServers = iota
	paneTools
	panePrompts
	paneResources
	paneLogs
)

// show goes to a pane.
func (a *app) show(pane int) tea.Cmd {
	if a.filtering {
		a.endFilter()
	}
	a.open, a.inside = pane, false
	return a.panes[pane].refresh(registry.AllChanges)
}
