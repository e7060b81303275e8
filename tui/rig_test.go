package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goblin/tui/dialog"
	"goblin/tui/images"
	"goblin/tui/keys"
	"goblin/tui/pane"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/report"
)

// rig is a screen without a terminal: messages in, frames out. Commands run
// when settle is called; those that wait for something from outside are not.
type rig struct {
	t       testing.TB
	app     *app
	reg     *registry.Registry
	backend *fakeBackend
	term    *fakeTerminal
	clock   *fakeClock
}

// fakeClock moves only when told to.
type fakeClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// fakeBackend answers what the test says and remembers what was asked.
type fakeBackend struct {
	mu       sync.Mutex
	requests []fakeRequest
	answers  map[string]func(params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)
	acts     []string
	fails    error
	lacking  string // what is found of a server that is tried
	tried    int
	finds    report.Diagnosis
	defined  report.Definition
	usage    report.Report
	underWay []registry.UnderWay
	lacks    map[string]string // profile and listed name: by whom
	login    func(show func(page string))
	holds    chan struct{} // a login goes on until it is closed

	issuer, issuerBefore string // that a login asks about; "" if it does not
}

type fakeRequest struct {
	method string
	params string
}

func (b *fakeBackend) Request(_ context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error) {
	b.mu.Lock()
	b.requests = append(b.requests, fakeRequest{method, string(params)})
	answer := b.answers[method]
	b.mu.Unlock()
	if answer == nil {
		return nil, fmt.Errorf("no answer to %s", method)
	}
	return answer(params, progress)
}

func (b *fakeBackend) act(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acts = append(b.acts, what)
	return b.fails
}

// Login does what the test says, and ends.
func (b *fakeBackend) Login(ctx context.Context, server string, show func(string), agree func(context.Context, string, string) bool, _ <-chan string) (string, error) {
	if b.issuer != "" && !agree(ctx, b.issuer, b.issuerBefore) {
		return "", b.act("declined " + b.issuer)
	}
	if b.login != nil {
		b.login(show)
	}
	return "ada\x1b[2J", b.act("login " + server)
}

func (b *fakeBackend) Logout(_ context.Context, server string) error {
	return b.act("logout " + server)
}

func (b *fakeBackend) Wake(server string) error { return b.act("wake " + server) }

func (b *fakeBackend) Restart(server string) error { return b.act("restart " + server) }
func (b *fakeBackend) SetEnabled(server string, on bool) error {
	return b.act(fmt.Sprintf("enable %s %v", server, on))
}

// TryServer finds what the test says.
func (b *fakeBackend) TryServer(context.Context, string, map[string]any) (string, error) {
	b.tried++
	return b.lacking, nil
}

func (b *fakeBackend) AddServer(name string, entryKeys map[string]any) error {
	text, _ := json.Marshal(entryKeys) // texts and lists of them
	return b.act("add " + name + " " + string(text))
}
func (b *fakeBackend) RemoveServer(server string) error { return b.act("remove " + server) }
func (b *fakeBackend) SetDisabled(server string, disabled bool) error {
	return b.act(fmt.Sprintf("disable %s %v", server, disabled))
}

func (b *fakeBackend) Approve(server string, tools []registry.PinnedTool) error {
	what := "approve " + server
	for _, p := range tools {
		what += " " + p.Name
	}
	return b.act(what)
}

// Diagnose finds what the test says.
func (b *fakeBackend) Diagnose(_ context.Context, server string) (report.Diagnosis, error) {
	return b.finds, b.act("diagnose " + server)
}

func (b *fakeBackend) Profiles() []string { return []string{"coding"} }

func (b *fakeBackend) Sees(profile string) [registry.Kinds]int {
	if profile == "" {
		return [registry.Kinds]int{4, 3, 2}
	}
	return [registry.Kinds]int{1}
}

// Lacks says what the test, or Switch, says.
func (b *fakeBackend) Lacks(profile string, e *registry.Entry) (by, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by := b.lacks[profile+" "+e.Listed]; by != "" {
		return by, "said by " + by
	}
	return "", ""
}

// ListedAs has flat ids for clients of coding.
func (b *fakeBackend) ListedAs(profile string, e *registry.Entry) string {
	if profile == "coding" && e.Flat != "" {
		return e.Flat
	}
	return e.Listed
}

func (b *fakeBackend) Switch(profile string, on bool, entries ...*registry.Entry) error {
	what := fmt.Sprintf("switch %q %v", profile, on)
	b.mu.Lock()
	for _, e := range entries {
		what += " " + e.Listed
		b.lacks[profile+" "+e.Listed] = "you"
		if on {
			delete(b.lacks, profile+" "+e.Listed)
		}
	}
	b.mu.Unlock()
	return b.act(what)
}

func (b *fakeBackend) Usage() report.Report { return b.usage }

func (b *fakeBackend) Definition(string) report.Definition { return b.defined }

func (b *fakeBackend) UnderWay() []registry.UnderWay {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.underWay)
}

func (b *fakeBackend) Withdraw(session, id string) bool {
	return b.act("withdraw "+session+" "+id) == nil
}

func (b *fakeBackend) About(session string) []string {
	if session != "c1" {
		return nil
	}
	return []string{"profile coding", "project /srv/red", "answers forms"}
}

func (b *fakeBackend) Disconnect(session string) bool { return b.act("disconnect "+session) == nil }

func (b *fakeBackend) Session() string { return "me" }

// asked are the requests so far, as "method params".
func (b *fakeBackend) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.requests {
		all = append(all, r.method+" "+r.params)
	}
	return all
}

// subscribes has the registry follow what is asked for, as the gateway does.
func (r *rig) subscribes() {
	for method, on := range map[string]bool{"resources/subscribe": true, "resources/unsubscribe": false} {
		r.backend.answers[method] = func(params json.RawMessage, _ func(json.RawMessage)) (json.RawMessage, error) {
			var p struct {
				URI string `json:"uri"`
			}
			if err := json.Unmarshal(params, &p); err != nil {
				return nil, err
			}
			to, err := r.reg.ResolveResource(p.URI)
			if err != nil {
				return nil, err
			}
			s, _ := r.reg.Subscription(to.Server, to.Name)
			s.Server, s.URI, s.Status, s.Error = to.Server, to.Name, registry.SubscriptionOn, ""
			s.Sessions = slices.DeleteFunc(slices.Clone(s.Sessions), func(id string) bool { return id == "me" })
			if on {
				s.Sessions = append(s.Sessions, "me")
			}
			s.Holders = len(s.Sessions)
			if s.Holders == 0 {
				r.reg.DropSubscription(to.Server, to.Name)
			} else {
				r.reg.SetSubscription(s)
			}
			return json.RawMessage(`{}`), nil
		}
	}
}

// fakeTerminal has a size and an environment, and keeps what was done to it.
type fakeTerminal struct {
	w, h      int
	env       map[string]string
	mu        sync.Mutex
	written   strings.Builder
	opened    []string
	noBrowser error
	saved     map[string]string
	never     chan struct{}
	facts     images.Facts
}

func (f *fakeTerminal) Read([]byte) (int, error) { <-f.never; return 0, errors.New("closed") }
func (f *fakeTerminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.Write(p)
}
func (f *fakeTerminal) Getenv(name string) string    { return f.env[name] }
func (f *fakeTerminal) Size() (int, int)             { return f.w, f.h }
func (f *fakeTerminal) Resized() <-chan struct{}     { return f.never }
func (f *fakeTerminal) Dark() (bool, bool)           { return false, false }
func (f *fakeTerminal) Backgrounds() <-chan struct{} { return f.never }
func (f *fakeTerminal) Graphics() (kitty, sixel bool, w, h int) {
	return f.facts.Kitty, f.facts.Sixel, f.facts.CellWidth, f.facts.CellHeight
}
func (f *fakeTerminal) Done() <-chan struct{} { return f.never }
func (f *fakeTerminal) Open(_ context.Context, program, name string, content []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, program+" "+name+": "+string(content))
	return nil
}

func (f *fakeTerminal) Browse(_ context.Context, page string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened = append(f.opened, "browser "+page)
	return f.noBrowser
}

func (f *fakeTerminal) Save(_ context.Context, path string, content []byte) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.saved[path]; taken {
		return "", errors.New(path + " exists already")
	}
	f.saved[path] = string(content)
	return "/home/" + path, nil
}

// newRig is a screen of w by h cells without colours, over the given servers.
func newRig(t testing.TB, w, h int, servers ...string) *rig {
	t.Helper()
	clock := &fakeClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: servers, Now: clock.now})
	return rigOver(t, reg, clock, w, h, map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"})
}

func rigOver(t testing.TB, reg *registry.Registry, clock *fakeClock, w, h int, env map[string]string) *rig {
	t.Helper()
	r := &rig{
		t: t, reg: reg, clock: clock,
		backend: &fakeBackend{lacks: map[string]string{}, answers: map[string]func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error){}},
		term:    &fakeTerminal{w: w, h: h, env: env, saved: map[string]string{}, never: make(chan struct{})},
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r.app = newApp(ctx, Options{Registry: reg, Now: clock.now, Logger: slog.New(slog.DiscardHandler), Daemon: Daemon{
		Config: "/etc/goblin/work.yaml", Owner: true, Command: []string{"goblin", "stdio"},
		PID: 4711, Started: clock.at.Add(-2 * time.Hour), Terminal: "/dev/pts/3",
	}}, dialog.NewQuestions(), r.backend, r.term)
	if len(reg.States()) > 0 {
		r.app.Open = pane.PaneResources // where most tests begin
	}
	r.app.After = func(_ time.Duration, msg tea.Msg) tea.Cmd { return func() tea.Msg { return msg } }
	r.app.head.refresh(r.app)
	for _, p := range r.app.Panes {
		r.run(p.Refresh(registry.AllChanges))
	}
	r.run(r.app.UpdateDetail())
	r.app.Touched = true // it is used, see TestAScreenOpensOnTheFirstServerThatFailed
	for i := range r.app.Panes {
		r.app.UsedPanes[i] = true // … and TestTheCursorOfANewScreenIsOnWhatCanBeUsed
	}
	return r
}

// run runs a command and all that it leads to, and gives its messages to the
// screen. Ticks are given at once.
func (r *rig) run(cmd tea.Cmd) {
	r.t.Helper()
	if cmd == nil {
		return
	}
	r.take(cmd(), 0)
}

func (r *rig) take(msg tea.Msg, depth int) {
	r.t.Helper()
	require.Less(r.t, depth, 200, "commands lead to commands without end")
	switch msg := msg.(type) {
	case nil, tea.QuitMsg, laterMsg:
		return
	case tea.BatchMsg:
		for _, c := range msg {
			if c != nil {
				r.take(c(), depth+1)
			}
		}
		return
	}
	if fmt.Sprintf("%T", msg) == "spinner.TickMsg" {
		return // it would turn for ever
	}
	if cmd := r.app.Update(msg); cmd != nil {
		r.take(cmd(), depth+1)
	}
}

// keys types words of keys: "4 / r e a d enter"; a word of several letters that
// is no key's name is typed as one message.
func (r *rig) keys(words string) *rig {
	r.t.Helper()
	for word := range strings.FieldsSeq(words) {
		r.take(keyOf(word), 0)
	}
	return r
}

// text types a text as a fast typist: one message.
func (r *rig) text(s string) *rig {
	r.t.Helper()
	r.take(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)}, 0)
	return r
}

func keyOf(word string) tea.KeyMsg {
	named := map[string]tea.KeyType{
		"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "space": tea.KeySpace,
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd,
		"ctrl+c": tea.KeyCtrlC, "ctrl+d": tea.KeyCtrlD, "ctrl+u": tea.KeyCtrlU, "ctrl+e": tea.KeyCtrlE, "ctrl+s": tea.KeyCtrlS, "ctrl+p": tea.KeyCtrlP, "ctrl+r": tea.KeyCtrlR, "ctrl+z": tea.KeyCtrlZ, "ctrl+a": tea.KeyCtrlA, "ctrl+g": tea.KeyCtrlG, "ctrl+j": tea.KeyCtrlJ, "ctrl+n": tea.KeyCtrlN, "ctrl+o": tea.KeyCtrlO, "ctrl+t": tea.KeyCtrlT,
		"f1": tea.KeyF1, "f3": tea.KeyF3, "f4": tea.KeyF4, "f5": tea.KeyF5, "f6": tea.KeyF6, "f7": tea.KeyF7, "f10": tea.KeyF10,
	}
	if k, ok := named[word]; ok {
		return tea.KeyMsg{Type: k, Runes: map[bool][]rune{true: {' '}}[k == tea.KeySpace]}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(word)}
}

// changed gives the screen what changed in the registry.
func (r *rig) changed(what registry.Changes) *rig {
	r.t.Helper()
	r.take(keys.FuncMsg(func() tea.Cmd { return r.app.changed(what) }), 0)
	return r
}

// sorts sorts the list by a column, as the palette does.
func (r *rig) sorts(column string) *rig {
	r.t.Helper()
	return r.keys(":").text("sort " + column).keys("enter")
}

// beat lets time pass as the screen sees it.
func (r *rig) beat(d time.Duration) *rig {
	r.t.Helper()
	r.clock.advance(d)
	r.app.Update(laterMsg(r.app.beat))
	return r
}

// screen is the frame as text, after checking its size.
func (r *rig) screen() string {
	r.t.Helper()
	view := r.app.View()
	lines := strings.Split(view, "\n")
	require.Len(r.t, lines, r.app.H, "lines of the frame:\n%s", view)
	for i, l := range lines {
		require.Equal(r.t, r.app.W, ansi.StringWidth(l), "cells of line %d: %q", i, l)
	}
	return ansi.Strip(view)
}

// line is the first line of the screen that contains a text.
func (r *rig) line(part string) string {
	r.t.Helper()
	for l := range strings.SplitSeq(r.screen(), "\n") {
		if strings.Contains(l, part) {
			return strings.TrimRight(l, " ")
		}
	}
	r.t.Fatalf("no line with %q in:\n%s", part, r.screen())
	return ""
}

// ready says that a server is up with capabilities, and lists entries.
func (r *rig) ready(server string) *rig {
	r.reg.SetState(server, registry.ServerState{
		State: registry.StateReady, Transport: "stdio", ProtocolVersion: "2025-11-25", Listed: true, Latency: 3 * time.Millisecond,
		Capabilities: []byte(`{"resources":{"subscribe":true,"listChanged":true},"tools":{},"prompts":{},"completions":{},"logging":{}}`),
	})
	return r.changed(registry.Servers)
}

func (r *rig) list(server string, kind registry.Kind, items ...string) *rig {
	r.t.Helper()
	var raw [][]byte
	for _, i := range items {
		raw = append(raw, []byte(i))
	}
	require.Empty(r.t, r.reg.SetList(server, kind, raw))
	return r.changed(registry.AllChanges)
}
