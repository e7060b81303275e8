// Package tui is the terminal UI: one Bubble Tea model over the registry.
//
// A [Screen] is one Bubble Tea program with its own input, output, size, theme and
// filters. A process can show several. It reads the registry's snapshots and journals and
// waits for its change events. It acts through [uicontext.Backend], its own client
// session, and [uicontext.Terminal]. It must not depend on transports, protocol
// revisions, flags or files. Only main imports it.
//
// # Goroutines
//
// The model runs in the goroutine of [Screen.Run] and does no I/O: everything that can
// block is a command. Nothing outside sends to the program, because a terminal that stops
// reading would block the sender. Commands wait on channels of capacity one whose writers
// never block. Any number of changes is at most one message per frame, and the last state
// is never missed. A panic closes this UI with an error and affects nothing else.
//
// # Untrusted text
//
// All text from servers and clients goes through registry/termtext before it is drawn. A
// frame has exactly as many lines and cells as the terminal.
package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/export"
	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/dialog"
	"goblin/tui/paste"
	"goblin/tui/uicontext"
)

// Daemon describes the process behind a UI.
type Daemon struct {
	Config  string // path
	Title   string // shown instead of the config's file name, or ""
	Demo    bool
	Address string   // HTTP endpoint, or ""
	Owner   bool     // quitting this UI stops the daemon
	Command []string // how clients start Goblin: program and arguments

	PID          int
	Started      time.Time
	Terminal     string // where it was started, or ""
	TerminalGone bool   // that terminal was closed
}

// endpoint returns the daemon as clients reach it.
func (h *Daemon) endpoint() export.Endpoint {
	e := export.Endpoint{Command: h.Command}
	if at := slices.Index(h.Command, "--config"); at >= 0 && at+1 < len(h.Command) {
		e.Config = h.Command[at+1]
	}
	if h.Address != "" {
		e.URL = httpURL(h.Address)
	}
	return e
}

func httpURL(address string) string {
	if strings.Contains(address, "://") {
		return address
	}
	return "http://" + path.Join(address, "mcp")
}

func (h *Daemon) runs(now time.Time) string {
	text := fmt.Sprintf("pid %d, running since %s", h.PID, termtext.Clock(h.Started, now))
	if h.Terminal != "" {
		text += " from " + uicontext.SanitizeLine(h.Terminal)
	}
	if h.TerminalGone {
		text += " (closed)"
	}
	return text
}

// Options configure a UI. Only Registry is required.
type Options struct {
	Registry  *registry.Registry
	Daemon    Daemon
	Recording *Recording // nil for a running gateway
	Theme     string     // see [theme.Themes]; "" is "auto"
	ASCII     bool
	Images    string              // see [images.ChooseProtocol]; "" is "auto"
	Keys      map[string][]string // by action, overriding the defaults; see goblin/registry/keymap
	// ConfigKeys returns the keys of the config. It may read files, and may be nil.
	ConfigKeys func() []report.ConfigKey
	Logger     *slog.Logger
	Now        func() time.Time
}

// Screen is one UI. Create it with [New].
type Screen struct {
	o         Options
	questions *dialog.Questions
}

// New returns a UI that Run shows.
func New(o Options) *Screen {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Screen{o: o, questions: dialog.NewQuestions()}
}

// Ask shows a server's elicitation or sampling request to the user and returns the
// answer. It fails when ctx ends, the UI closes, or too many requests are waiting. It may
// be called from any goroutine, even before Run.
func (s *Screen) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	return s.questions.Ask(ctx, method, params, s.o.Now())
}

// maxFrameRate is the maximum number of frames per second. A key is drawn at most 14.3 ms
// later.
const maxFrameRate = 70

// Run shows the UI until its user quits (nil), ctx ends, the terminal closes, or the UI
// fails.
func (s *Screen) Run(ctx context.Context, b uicontext.Backend, t uicontext.Terminal) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.questions.Close()
	out := &output{w: t}
	a := newApp(ctx, s.o, s.questions, b, t)
	a.parkedCursor = out.setCursor
	paint := newPainter(out, a.images)
	out.beforeLeave = func() []byte { return a.images.Free() }
	g := &panicGuard{app: a, fail: cancel, log: s.o.Logger, paint: paint}
	in := paste.NewReader(t, s.o.Now)
	a.pastes = in
	p := tea.NewProgram(g,
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(1),
		tea.WithAltScreen(), tea.WithMouseCellMotion(),
		tea.WithoutSignalHandler(), tea.WithoutCatchPanics(),
		tea.WithFilter(in.Filter))
	ended := make(chan struct{})
	defer close(ended)
	painted := make(chan struct{})
	go func() {
		defer close(painted)
		paint.run(ctx)
	}()
	defer func() {
		cancel(nil)
		<-painted
	}()
	go func() {
		select {
		case <-t.Done():
			cancel(errTerminalGone)
		case <-ended:
		}
	}()
	_, err := p.Run()
	switch cause := context.Cause(ctx); {
	case a.quitting, errors.Is(cause, errTerminalGone):
		return nil
	case cause != nil && !errors.Is(cause, context.Canceled):
		return cause
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return err
	}
}

var errTerminalGone = errors.New("terminal closed")

// panicGuard keeps panics of the UI inside the UI. Bubble Tea's own protection prints to
// the process's stdout, which may be a client's.
type panicGuard struct {
	app     *app
	fail    context.CancelCauseFunc
	log     *slog.Logger
	paint   *painter
	repaint bool // the next frame is painted completely
	failed  bool
}

type panicMsg struct{}

func (g *panicGuard) reportPanic(where string, r any) {
	g.log.Error("UI failed", "where", where, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
	g.fail(fmt.Errorf("UI failed in %s: %v", where, r))
}

func (g *panicGuard) Init() tea.Cmd { return g.wrap(g.app.Init()) }

func (g *panicGuard) Update(msg tea.Msg) (m tea.Model, cmd tea.Cmd) {
	m = g
	if g.failed {
		return g, tea.Quit
	}
	defer func() {
		if r := recover(); r != nil {
			g.failed = true
			g.reportPanic("update", r)
			cmd = tea.Quit
		}
	}()
	if _, ok := msg.(panicMsg); ok {
		g.failed = true
		return g, tea.Quit
	}
	_, sized := msg.(tea.WindowSizeMsg)
	g.repaint = g.repaint || sized || msg == tea.ClearScreen()
	return g, g.wrap(g.app.Update(msg))
}

func (g *panicGuard) View() (view string) {
	if g.failed {
		return ""
	}
	defer func() {
		if r := recover(); r != nil {
			g.failed = true
			g.reportPanic("view", r)
			view = ""
		}
	}()
	g.paint.show(g.app.View(), g.repaint)
	g.repaint = false
	return "" // the painter draws it
}

func (g *panicGuard) wrap(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if r := recover(); r != nil {
				g.reportPanic("command", r)
				msg = panicMsg{}
			}
		}()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i, c := range batch {
				batch[i] = g.wrap(c)
			}
		}
		return msg
	}
}
