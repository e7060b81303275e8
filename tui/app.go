package tui

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/bubbles/spinner"
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/termtext"
	"goblin/tui/activity"
	"goblin/tui/breakpoints"
	"goblin/tui/dialog"
	"goblin/tui/help"
	"goblin/tui/home"
	"goblin/tui/images"
	"goblin/tui/keys"
	"goblin/tui/palette"
	"goblin/tui/pane"
	"goblin/tui/paste"
	"goblin/tui/saved"
	"goblin/tui/textfield"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/usage"
	"goblin/tui/viewer"
)

const (
	frameTime    = 33 * time.Millisecond  // minimum between two rounds of changes
	beatInterval = 500 * time.Millisecond // of clocks, rates and fading marks
	minFlashTime = time.Second            // then any key removes the message
)

type app struct {
	*pane.Layout
	o            Options
	parkedCursor func(x, y int)
	pastes       *paste.Reader

	themeName string
	colors    map[string]termtext.StyleColor
	images    *images.Renderer
	keys      keys.Table
	mouse     bool
	dragging  bool // of the border between list and detail

	bar         textfield.Field
	filtering   bool // the bar has the focus
	searching   bool // … and searches the detail
	barSelected bool // typing replaces the bar's text
	history     []string
	commands    palette.History

	questions  dialog.QuestionPresenter
	rules      *breakpoints.Rules
	isSpinning bool
	header     header

	changes       <-chan registry.Changes
	wake          chan struct{}      // capacity 1; signals a change of this UI's own state
	knownSessions []registry.Session // announced as connected
	quitting      bool
	beatCount     int
}

// laterMsg is a [keys.FuncMsg] sent by a timer, not by user input.
type laterMsg func() tea.Cmd

func newApp(ctx context.Context, o Options, q *dialog.Questions, b uicontext.Backend, t uicontext.Terminal) *app {
	a := &app{
		Layout: &pane.Layout{
			Context: &uicontext.Context{Ctx: ctx, Reg: o.Registry, Backend: b, Term: t, Log: o.Logger, Now: o.Now, Clock: o.Now, After: later, Endpoint: o.Daemon.endpoint()},
			Split:   pane.DefaultSplit(), Demo: o.Daemon.Demo, OwnConfig: o.Daemon.Config != "" && !o.Daemon.Demo, Pulse: activity.NewHistory(pane.IsFailure),
		},
		o: o, parkedCursor: func(int, int) {}, mouse: true, images: &images.Renderer{},
		wake: make(chan struct{}, 1),
	}
	if r := o.Recording; r != nil {
		a.ReadOnly, a.Now = "this is a recording", func() time.Time { return r.End }
	}
	a.Shell, a.Wake = a, a.wakeUp
	a.OnShow, a.OnFilterSet, a.Intro = a.endFilter, a.bar.SetValue, func() []viewer.Section { return help.GettingStarted(a.about()) }
	a.questions = dialog.QuestionPresenter{Context: a.Context, Questions: q, IsIdle: func() bool { return !a.filtering && !a.Geometry().Small }}
	a.rules = breakpoints.New(a.Context)
	a.Actions, a.KeyOf = keymap.Rebind(o.Keys), a.keyOf
	a.keys = a.bindings()
	a.themeName, a.colors = o.Theme, o.Registry.StyleColors()
	a.W, a.H = t.Size()
	a.setImages()
	a.SetTheme()
	a.bar = textfield.New(a.Theme)
	a.Calls = uicontext.NewCalls(a.Context)
	a.AddPanes(usage.New(a.Layout), saved.New(a.Layout), home.New(a.Layout, &a.questions, a.rules))
	a.changes = a.Reg.Watch(ctx)
	a.header.updateRates(a)
	a.knownSessions = a.Reg.Sessions()
	q.OnChange(a.Wake)
	if q.Len() > 0 { // asked before the UI started
		a.Wake()
	}
	return a
}

func (a *app) about() help.About {
	return help.About{Config: a.o.Daemon.Config, Demo: a.o.Daemon.Demo}
}

func later(d time.Duration, msg tea.Msg) tea.Cmd {
	return tea.Tick(d, func(time.Time) tea.Msg { return msg })
}

func (a *app) SetTheme() {
	background := ""
	if dark, known := a.Term.Dark(); known {
		background = map[bool]string{true: "dark", false: "light"}[dark]
	}
	a.Theme = theme.New(theme.Options{Theme: a.themeName, Colors: a.colors, Getenv: a.Term.Getenv, ASCII: a.o.ASCII, Background: background, Images: a.images, NoImages: a.o.Images == images.Off})
	fresh := a.Theme.Spinner()
	if a.isSpinning { // a new spinner would ignore the ticks of the running one
		a.Spin.Spinner, a.Spin.Style = fresh.Spinner, fresh.Style
	} else {
		a.Spin = fresh
	}
	for _, d := range a.Details {
		d.View.SetTheme(a.Theme)
	}
	for _, d := range a.Dialogs {
		if s, ok := d.(interface{ SetTheme() }); ok {
			s.SetTheme()
		}
	}
}

// setImages applies the terminal's graphics capabilities and reports whether they
// changed.
func (a *app) setImages() bool {
	var f images.TerminalReply
	f.Kitty, f.Sixel, f.CellWidth, f.CellHeight = a.Term.Graphics()
	mode := a.o.Images
	if a.o.ASCII && (mode == "" || mode == "auto") {
		mode = "blocks"
	}
	p := images.ChooseProtocol(mode, a.Term.Getenv, f)
	return a.images.Set(p, f, a.Term.Getenv("TMUX") != "", rand.Int())
}

// wakeUp wakes the UI. It never blocks and may be called from any goroutine.
func (a *app) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default: // already awake
	}
}

func (a *app) Init() tea.Cmd {
	cmds := []tea.Cmd{a.waitChanges(), a.waitWake(), a.waitSize(), a.waitBackground(), a.tick()}
	w, h := a.W, a.H
	cmds = append(cmds, func() tea.Msg { return tea.WindowSizeMsg{Width: w, Height: h} })
	for _, p := range a.Panes {
		cmds = append(cmds, p.Refresh(registry.AllChanges))
	}
	a.header.refresh(a)
	a.rules.Refresh(registry.AllChanges)
	cmds = append(cmds, a.showRecording())
	if len(a.Reg.Mistakes()) > 0 { // the user may have opened this UI to fix them
		cmds = append(cmds, dialog.NewMistakes(a.Context))
	}
	return tea.Batch(cmds...)
}

func receive[T any](ctx context.Context, ch <-chan T, then func(T) tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		select {
		case v, ok := <-ch:
			if !ok {
				return nil
			}
			return keys.FuncMsg(func() tea.Cmd { return then(v) })
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *app) waitChanges() tea.Cmd {
	return receive(a.Ctx, a.changes, func(what registry.Changes) tea.Cmd {
		return tea.Batch(a.refreshPanes(what), a.After(frameTime, laterMsg(a.waitChanges)))
	})
}

func (a *app) waitWake() tea.Cmd {
	return receive(a.Ctx, a.wake, func(struct{}) tea.Cmd {
		return tea.Batch(a.questions.Sync(), a.After(frameTime, laterMsg(a.waitWake)))
	})
}

// waitSize also requests a full repaint: another program may have drawn meanwhile.
func (a *app) waitSize() tea.Cmd {
	return receive(a.Ctx, a.Term.Resized(), func(struct{}) tea.Cmd {
		return tea.Batch(a.resized(), tea.ClearScreen, a.waitSize())
	})
}

// An unchanged size means that the terminal may have lost its content.
func (a *app) resized() tea.Cmd {
	w, h := a.Term.Size()
	if w == a.W && h == a.H {
		a.images.Invalidate()
	}
	size := func() tea.Msg { return tea.WindowSizeMsg{Width: w, Height: h} }
	if !a.setImages() {
		return size
	}
	return tea.Batch(size, a.Redraw())
}

func (a *app) waitBackground() tea.Cmd {
	return receive(a.Ctx, a.Term.Backgrounds(), func(struct{}) tea.Cmd {
		a.SetTheme()
		return a.waitBackground()
	})
}

func (a *app) tick() tea.Cmd { return a.After(beatInterval, laterMsg(a.refreshClocks)) }

func (a *app) refreshClocks() tea.Cmd {
	a.header.refresh(a)
	a.header.updateRates(a)
	if a.Flash.Text != "" && a.Clock().After(a.Flash.Until) {
		a.Flash = uicontext.Flash{}
	}
	if a.pastes.Stalled() {
		a.Complain("%s", paste.StallHint)
	}
	for _, d := range a.Details {
		d.Fade(a.Now())
	}
	// Goblin's own tools appear and disappear without a change of the registry.
	own := a.Panes[pane.PaneTools].Refresh(registry.AllChanges)
	return tea.Batch(a.tick(), a.spinIfBusy(), a.refilterByAge(), a.Logs().ReadInFlight(), a.home().Beat(), own)
}

// Update is the only place where the UI's state changes.
func (a *app) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyMsg:
		return tea.Batch(a.handleKeys(msg), a.UpdateDetail())
	case tea.MouseMsg:
		return tea.Batch(a.handleMouse(msg), a.UpdateDetail())
	}
	return tea.Batch(a.handleBackground(msg), a.UpdateDetail())
}

func (a *app) handleBackground(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case keys.FuncMsg:
		return msg()
	case laterMsg:
		return msg()
	case paste.Refused:
		return a.Complain("%s", msg)
	case tea.WindowSizeMsg:
		a.W, a.H = msg.Width, msg.Height
		var cmds []tea.Cmd
		for _, d := range a.Dialogs {
			cmds = append(cmds, d.Background(msg))
		}
		return tea.Batch(cmds...)
	case spinner.TickMsg:
		var cmd tea.Cmd
		if a.isSpinning = a.busy() > 0; a.isSpinning {
			a.Spin, cmd = a.Spin.Update(msg)
		}
		return cmd
	default:
		if n := len(a.Dialogs); n > 0 {
			return a.Dialogs[n-1].Background(msg)
		}
	}
	return nil
}

// refilterBeats is the interval of filters by age, in beats.
const refilterBeats = 20

func (a *app) refilterByAge() tea.Cmd {
	a.beatCount++
	r := a.Panes[a.Open].Rows()
	if typed, _ := r.FilterQuery(); a.beatCount%refilterBeats == 0 && strings.Contains(typed, "updated:") {
		return r.Refilter()
	}
	return nil
}

func (a *app) RequestStarted(r uicontext.Request) tea.Cmd {
	if r.Show && a.Split.Place != pane.PlaceHidden {
		a.Opened = true
	}
	return a.spinIfBusy()
}

func (a *app) RequestAnswered(r uicontext.Request) {
	if p := a.Panes[a.Open]; r.Show && p.Item() == r.Item {
		a.Details[a.Open].AnswerOf = p.Subject().Key
	}
}

func (a *app) spinIfBusy() tea.Cmd {
	if a.isSpinning || a.busy() == 0 {
		return nil
	}
	a.isSpinning = true
	return a.Spin.Tick
}

func (a *app) ReloadLists() tea.Cmd { return a.refreshPanes(registry.AllChanges) }

func (a *app) refreshPanes(what registry.Changes) tea.Cmd {
	cmds := []tea.Cmd{a.recolor()}
	for _, p := range a.Panes {
		if mine := what & p.Watches(); mine != 0 {
			cmds = append(cmds, p.Refresh(mine))
		}
	}
	for _, d := range a.Dialogs {
		if live, ok := d.(interface {
			Refresh(registry.Changes) tea.Cmd
		}); ok {
			cmds = append(cmds, live.Refresh(what))
		}
	}
	a.rules.Refresh(what)
	if what&registry.Sessions != 0 {
		a.header.refresh(a)
		a.announceClients()
	}
	return tea.Batch(cmds...)
}

// recolor applies changed colors of the config.
func (a *app) recolor() tea.Cmd {
	colors := a.Reg.StyleColors()
	if maps.Equal(colors, a.colors) {
		return nil
	}
	a.colors = colors
	a.SetTheme()
	return a.Details[a.Open].Build(true, false)
}

func (a *app) announceClients() {
	before, now := a.knownSessions, a.header.sessions
	a.knownSessions = now
	has := func(list []registry.Session, s registry.Session) bool {
		return slices.ContainsFunc(list, func(o registry.Session) bool { return o.ID == s.ID && o.Client == s.Client })
	}
	for _, s := range now {
		if !s.Screen && s.Client != "" && !has(before, s) {
			a.Say("%s connected (%s)", s.Client, s.Transport)
		}
	}
	for _, s := range before {
		if !s.Screen && !slices.ContainsFunc(now, func(o registry.Session) bool { return o.ID == s.ID }) {
			a.Say("%s disconnected", cmp.Or(s.Client, "a client"))
		}
	}
}
