package tui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/registry/candidate"
	"goblin/registry/export"
	"goblin/registry/report"
	"goblin/tui/dialog"
	"goblin/tui/images"
	"goblin/tui/keys"
	"goblin/tui/pane"
)

// testUI is a UI without a terminal: messages in, frames out. Ticks fire at once.
// Commands that wait for outside events do not run.
type testUI struct {
	t       testing.TB
	app     *app
	reg     *registry.Registry
	backend *fakeBackend
	term    *fakeTerminal
	clock   *fakeClock
}

// fakeClock is a clock that moves only by advance.
type fakeClock struct {
	mu      sync.Mutex
	current time.Time
}

func (c *fakeClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = c.current.Add(d)
}

// fakeBackend returns the answers of the test and records all requests.
type fakeBackend struct {
	*fakeSaved
	*fakeConfig
	mu       sync.Mutex
	requests []fakeRequest
	answers  map[string]func(params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)
	acts     []string
	fails    error
	lacking  string // problem that a test reports
	tried    int
	clients  candidate.ClientServers
	frozen   error // why the config cannot be changed
	registry func(ctx context.Context, words []string) (*candidate.SearchResult, error)
	finds    report.Diagnosis
	defined  report.Definition
	usage    report.Report
	recorded *report.Recording
	underWay []registry.InFlight
	lacks    map[string]string // profile and listed name: reason
	ownTools int               // of Goblin that clients see
	login    func(show func(page string))
	holds    chan struct{} // a login lasts until it is closed

	issuer, issuerBefore string // confirmed by a login; "" asks nothing
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

func (b *fakeBackend) record(what string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.acts = append(b.acts, what)
	return b.fails
}

func (b *fakeBackend) Login(ctx context.Context, server string, show func(string), agree func(context.Context, string, string) bool, _ <-chan string) (string, error) {
	if b.issuer != "" && !agree(ctx, b.issuer, b.issuerBefore) {
		return "", b.record("declined " + b.issuer)
	}
	if b.login != nil {
		b.login(show)
	}
	return "ada\x1b[2J", b.record("login " + server)
}

func (b *fakeBackend) Logout(_ context.Context, server string) error {
	return b.record("logout " + server)
}

func (b *fakeBackend) Wake(server string) error { return b.record("wake " + server) }

func (b *fakeBackend) Restart(server string) error { return b.record("restart " + server) }

func (b *fakeBackend) SetEnabled(server string, on bool) error {
	return b.record(fmt.Sprintf("enable %s %v", server, on))
}

func (b *fakeBackend) AddDefinition(ctx context.Context, d *candidate.Definition, untested bool) (string, error) {
	if !untested {
		b.tried++
		if b.lacking != "" {
			return b.lacking, nil
		}
	}
	for _, s := range d.Secrets {
		if err := b.record("secret " + s.Name + " " + s.Value); err != nil {
			return "", err
		}
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	text, _ := json.Marshal(d.Keys) // strings and lists of strings
	return "", b.record("add " + d.Name + " " + string(text))
}

func (b *fakeBackend) ClientServers() (*candidate.ClientServers, error) {
	return &b.clients, b.frozen
}

func (b *fakeBackend) SearchRegistry(ctx context.Context, words []string) (*candidate.SearchResult, error) {
	if b.registry == nil {
		return &candidate.SearchResult{Registry: "https://registry.example"}, nil
	}
	return b.registry(ctx, words)
}

func (b *fakeBackend) RemoveServer(server string) error { return b.record("remove " + server) }

func (b *fakeBackend) SetDisabled(server string, disabled bool) error {
	return b.record(fmt.Sprintf("disable %s %v", server, disabled))
}

func (b *fakeBackend) Approve(server string, tools []registry.UnapprovedTool) error {
	what := "approve " + server
	for _, p := range tools {
		what += " " + p.Name
	}
	return b.record(what)
}

func (b *fakeBackend) Diagnose(_ context.Context, server string) (report.Diagnosis, error) {
	return b.finds, b.record("diagnose " + server)
}

func (b *fakeBackend) Profiles() []string { return []string{"coding"} }

func (b *fakeBackend) VisibleCounts(profile string) [registry.Kinds]int {
	if profile == "" {
		return [registry.Kinds]int{4 + b.ownTools, 3, 2}
	}
	return [registry.Kinds]int{1}
}

// HiddenReason returns the reason set by the test or by Switch.
func (b *fakeBackend) HiddenReason(profile string, e *registry.Entry) (by, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if by := b.lacks[profile+" "+e.Listed]; by != "" {
		return by, "said by " + by
	}
	return "", ""
}

// ListedAs returns flat ids for the profile "coding".
func (b *fakeBackend) ListedAs(profile string, e *registry.Entry) string {
	if profile == "coding" && e.Flat != "" {
		return e.Flat
	}
	return e.Listed
}

func (b *fakeBackend) SetEntriesDisabled(profile string, on bool, entries ...*registry.Entry) error {
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
	return b.record(what)
}

func (b *fakeBackend) Usage() report.Report { return b.usage }

func (b *fakeBackend) Definition(string) report.Definition { return b.defined }

func (b *fakeBackend) InFlight() []registry.InFlight {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.underWay)
}

func (b *fakeBackend) CancelRequest(session, id string) bool {
	return b.record("withdraw "+session+" "+id) == nil
}

func (b *fakeBackend) Recording() *report.Recording {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.recorded
}

// Each change of rules is an action, such as "rule add TEXT".
func (b *fakeBackend) AddRule(text string) (uint64, error) { return 1, b.record("rule add " + text) }

func (b *fakeBackend) ChangeRule(id uint64, text string) error {
	return b.record(fmt.Sprintf("rule change %d %s", id, text))
}

func (b *fakeBackend) SetRuleEnabled(id uint64, on bool) error {
	return b.record(fmt.Sprintf("rule enabled %d %t", id, on))
}

func (b *fakeBackend) RemoveRule(id uint64) error { return b.record(fmt.Sprintf("rule remove %d", id)) }

func (b *fakeBackend) DecideStop(id uint64, d registry.Decision) error {
	return b.record(fmt.Sprintf("decide %d %+v", id, d))
}

func (b *fakeBackend) RevokeApproval(id string) error { return b.record("revoke " + id) }

func (b *fakeBackend) Redact(text string) string {
	return strings.ReplaceAll(text, "hunter2", "[hidden]")
}

func (b *fakeBackend) ToggleRecording() (running, stopped *report.Recording, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if stopped = b.recorded; stopped == nil {
		b.recorded = &report.Recording{Folder: "/state/recordings", Bytes: 2 << 20}
		return b.recorded, nil, b.fails
	}
	b.recorded = nil
	return nil, stopped, b.fails
}

func (b *fakeBackend) TrafficHead() ([]export.Line, error) {
	return []export.Line{{Type: "recording", Version: 1, Bodies: true}}, nil
}

func (b *fakeBackend) SessionDetails(session string) []string {
	if session != "c1" {
		return nil
	}
	return []string{"profile coding", "project /srv/red", "answers forms"}
}

func (b *fakeBackend) Disconnect(session string) bool { return b.record("disconnect "+session) == nil }

func (b *fakeBackend) Session() string { return "me" }

// sentRequests returns the requests so far, as "method params".
func (b *fakeBackend) sentRequests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.requests {
		all = append(all, r.method+" "+r.params)
	}
	return all
}

// serveSubscriptions answers subscribe requests by updating the registry, like the
// gateway.
func (r *testUI) serveSubscriptions() {
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

// fakeTerminal has a size and an environment, and records its output.
type fakeTerminal struct {
	w, h      int
	env       map[string]string
	mu        sync.Mutex
	written   strings.Builder
	opened    []string
	noBrowser error
	saved     map[string]string
	never     chan struct{}
	facts     images.TerminalReply
}

func (f *fakeTerminal) Read([]byte) (int, error) { <-f.never; return 0, errors.New("closed") }

func (f *fakeTerminal) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written.Write(p)
}

func (f *fakeTerminal) Getenv(name string) string { return f.env[name] }

func (f *fakeTerminal) Size() (int, int) { return f.w, f.h }

func (f *fakeTerminal) Resized() <-chan struct{} { return f.never }

func (f *fakeTerminal) Dark() (bool, bool) { return false, false }

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
		return "", errors.New(path + " already exists")
	}
	f.saved[path] = string(content)
	return "/home/" + path, nil
}

// newTestUI returns a UI of w by h cells without colours, over the given servers.
func newTestUI(t testing.TB, w, h int, servers ...string) *testUI {
	t.Helper()
	clock := &fakeClock{current: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	reg := registry.New(registry.Options{Servers: servers, Now: clock.now})
	return newTestUIWith(t, reg, clock, w, h, map[string]string{"TERM": "xterm-256color", "LANG": "C.UTF-8", "NO_COLOR": "1"})
}

// newTestUIWith returns a UI over a registry, with the environment of its terminal.
func newTestUIWith(t testing.TB, reg *registry.Registry, clock *fakeClock, w, h int, env map[string]string, change ...func(*Options)) *testUI {
	t.Helper()
	r := &testUI{
		t: t, reg: reg, clock: clock,
		backend: &fakeBackend{lacks: map[string]string{}, answers: map[string]func(json.RawMessage, func(json.RawMessage)) (json.RawMessage, error){}},
		term:    &fakeTerminal{w: w, h: h, env: env, saved: map[string]string{}, never: make(chan struct{})},
	}
	r.backend.fakeConfig = &fakeConfig{}
	r.backend.fakeSaved = &fakeSaved{files: map[string]string{}, answers: map[string]string{}, request: r.backend.Request}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	o := Options{Registry: reg, Now: clock.now, Logger: slog.New(slog.DiscardHandler), Daemon: Daemon{
		Config: "/etc/goblin/work.yaml", Owner: true, Command: []string{"goblin", "stdio"},
		PID: 4711, Started: clock.current.Add(-2 * time.Hour), Terminal: "/dev/pts/3",
	}}
	for _, set := range change {
		set(&o)
	}
	r.app = newApp(ctx, o, dialog.NewQuestions(), r.backend, r.term)
	if len(reg.States()) > 0 {
		r.app.Open = pane.PaneResources // where most tests begin
	}
	r.app.After = func(_ time.Duration, msg tea.Msg) tea.Cmd { return func() tea.Msg { return msg } }
	r.app.header.refresh(r.app)
	for _, p := range r.app.Panes {
		r.run(p.Refresh(registry.AllChanges))
	}
	r.run(r.app.UpdateDetail())
	for i := range r.app.Panes {
		r.app.UsedPanes[i] = true // as after a key; see TestTheCursorOfANewScreenIsOnWhatCanBeUsed
	}
	return r
}

// run runs a command and all commands that follow, and sends their messages to the UI.
func (r *testUI) run(cmd tea.Cmd) {
	r.t.Helper()
	if cmd == nil {
		return
	}
	r.send(cmd(), 0)
}

func (r *testUI) send(msg tea.Msg, depth int) {
	r.t.Helper()
	require.Less(r.t, depth, 200, "commands never stop returning commands")
	switch msg := msg.(type) {
	case nil, tea.QuitMsg, laterMsg:
		return
	case tea.BatchMsg:
		for _, c := range msg {
			if c != nil {
				r.send(c(), depth+1)
			}
		}
		return
	}
	if fmt.Sprintf("%T", msg) == "spinner.TickMsg" {
		return // it would loop forever
	}
	if cmd := r.app.Update(msg); cmd != nil {
		r.send(cmd(), depth+1)
	}
}

// keys types keys by name: "4 / r e a d enter". A word that names no key is typed as one message.
func (r *testUI) keys(words string) *testUI {
	r.t.Helper()
	for word := range strings.FieldsSeq(words) {
		r.send(keyOf(word), 0)
	}
	return r
}

// typeText types a text in one message, like a fast typist.
func (r *testUI) typeText(s string) *testUI {
	r.t.Helper()
	r.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(s)}, 0)
	return r
}

func keyOf(word string) tea.KeyMsg {
	named := map[string]tea.KeyType{
		"enter": tea.KeyEnter, "esc": tea.KeyEsc, "tab": tea.KeyTab, "shift+tab": tea.KeyShiftTab, "space": tea.KeySpace,
		"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "home": tea.KeyHome, "end": tea.KeyEnd,
		"ctrl+c": tea.KeyCtrlC, "ctrl+d": tea.KeyCtrlD, "ctrl+u": tea.KeyCtrlU, "ctrl+e": tea.KeyCtrlE, "ctrl+s": tea.KeyCtrlS, "ctrl+p": tea.KeyCtrlP, "ctrl+r": tea.KeyCtrlR, "ctrl+z": tea.KeyCtrlZ, "ctrl+a": tea.KeyCtrlA, "ctrl+g": tea.KeyCtrlG, "ctrl+j": tea.KeyCtrlJ, "ctrl+n": tea.KeyCtrlN, "ctrl+o": tea.KeyCtrlO, "ctrl+t": tea.KeyCtrlT, "ctrl+w": tea.KeyCtrlW,
		"f1": tea.KeyF1, "f3": tea.KeyF3, "f4": tea.KeyF4, "f5": tea.KeyF5, "f6": tea.KeyF6, "f7": tea.KeyF7, "f10": tea.KeyF10,
	}
	if k, ok := named[word]; ok {
		return tea.KeyMsg{Type: k, Runes: map[bool][]rune{true: {' '}}[k == tea.KeySpace]}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(word)}
}

// refresh tells the UI what changed in the registry.
func (r *testUI) refresh(what registry.Changes) *testUI {
	r.t.Helper()
	r.send(keys.FuncMsg(func() tea.Cmd { return r.app.refreshPanes(what) }), 0)
	return r
}

// sortBy sorts the list by a column, through the palette.
func (r *testUI) sortBy(column string) *testUI {
	r.t.Helper()
	return r.keys(":").typeText("sort " + column).keys("enter")
}

// tick advances the clock and runs the periodic update.
func (r *testUI) tick(d time.Duration) *testUI {
	r.t.Helper()
	r.clock.advance(d)
	r.send(keys.FuncMsg(r.app.refreshClocks), 0)
	return r
}

func (r *testUI) screen() string {
	r.t.Helper()
	view := r.app.View()
	lines := strings.Split(view, "\n")
	// Each frame must have the size of the terminal.
	require.Len(r.t, lines, r.app.H, "lines of the frame:\n%s", view)
	for i, l := range lines {
		require.Equal(r.t, r.app.W, ansi.StringWidth(l), "cells of line %d: %q", i, l)
	}
	return ansi.Strip(view)
}

// line returns the first line of the frame that contains part.
func (r *testUI) line(part string) string {
	r.t.Helper()
	for l := range strings.SplitSeq(r.screen(), "\n") {
		if strings.Contains(l, part) {
			return strings.TrimRight(l, " ")
		}
	}
	r.t.Fatalf("no line with %q in:\n%s", part, r.screen())
	return ""
}

// setReady sets a server to ready, with all capabilities.
func (r *testUI) setReady(server string) *testUI {
	r.reg.SetState(server, registry.ServerState{
		State: registry.StateReady, Transport: "stdio", ProtocolVersion: "2025-11-25", Listed: true, Latency: 3 * time.Millisecond,
		Capabilities: []byte(`{"resources":{"subscribe":true,"listChanged":true},"tools":{},"prompts":{},"completions":{},"logging":{}}`),
	})
	return r.refresh(registry.Servers)
}

func (r *testUI) setList(server string, kind registry.Kind, items ...string) *testUI {
	r.t.Helper()
	var raw [][]byte
	for _, i := range items {
		raw = append(raw, []byte(i))
	}
	require.Empty(r.t, r.reg.SetList(server, kind, raw))
	return r.refresh(registry.AllChanges)
}

// columnHead returns the line with the column names of the list, without borders.
func (r *testUI) columnHead(first string, also ...string) string {
	r.t.Helper()
	for l := range strings.SplitSeq(r.screen(), "\n") {
		l = strings.TrimLeft(l, "│ ")
		if strings.HasPrefix(l, first) && (len(also) == 0 || strings.Contains(l, also[0])) {
			l, _, _ = strings.Cut(l, "│")
			return strings.TrimRight(l, " ")
		}
	}
	r.t.Fatalf("no head that begins with %q in:\n%s", first, r.screen())
	return ""
}

// click clicks on text in the first line that contains line.
func (r *testUI) click(line, text string) *testUI {
	r.t.Helper()
	for y, l := range strings.Split(r.screen(), "\n") {
		if x := strings.Index(l, text); x >= 0 && strings.Contains(l, line) {
			r.send(tea.MouseMsg{X: ansi.StringWidth(l[:x]), Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
			return r
		}
	}
	r.t.Fatalf("no %q in a line with %q in:\n%s", text, line, r.screen())
	return r
}

// filterText returns the filter of the open pane.
func (r *testUI) filterText() string {
	typed, _ := r.app.Panes[r.app.Open].Rows().FilterQuery()
	return typed
}

// pressKeys presses keys for which keys has no name.
func (r *testUI) pressKeys(keys ...tea.KeyType) *testUI {
	r.t.Helper()
	for _, k := range keys {
		r.send(tea.KeyMsg{Type: k}, 0)
	}
	return r
}

// clipboard returns the last text copied to the clipboard of the terminal.
func (r *testUI) clipboard() string {
	r.t.Helper()
	all := regexp.MustCompile(`\x1b\]52;c;([A-Za-z0-9+/=]*)`).FindAllStringSubmatch(r.term.written.String(), -1)
	require.NotEmpty(r.t, all, "nothing copied")
	text, err := base64.StdEncoding.DecodeString(all[len(all)-1][1])
	require.NoError(r.t, err)
	return string(text)
}

func (r *testUI) setState(server string, s registry.ServerState) *testUI {
	r.reg.SetState(server, s)
	return r.refresh(registry.Servers)
}

// runCommand types a line into the palette and runs it.
func (r *testUI) runCommand(line string) *testUI {
	r.t.Helper()
	return r.keys(":").typeText(line).keys("enter")
}

func (r *testUI) footer() string {
	lines := strings.Split(r.screen(), "\n")
	return lines[len(lines)-1]
}

func (r *testUI) resize(w, h int) *testUI {
	r.t.Helper()
	r.send(tea.WindowSizeMsg{Width: w, Height: h}, 0)
	return r
}
