// Package uicontext holds what all panes and dialogs share.
//
// [Context] has the registry, the backend, the terminal, the theme, the clock, the
// running requests, the status line and the stack of open dialogs. The last dialog sees
// the input before the panes do, and removes itself from the stack. The package imports
// no pane and no dialog; it reaches the UI around it through an interface. Everything
// belongs to the goroutine of the UI's Update and View; whatever can wait is a command.
package uicontext

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/charmbracelet/bubbles/spinner"
	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/keymap"
	"goblin/registry/report"
	"goblin/tui/keys"
	"goblin/tui/theme"
)

// Context is shared by the panes and dialogs of one UI.
type Context struct {
	Ctx     context.Context
	Reg     *registry.Registry
	Backend Backend
	Term    Terminal
	Log     *slog.Logger
	Now     func() time.Time
	After   func(d time.Duration, msg tea.Msg) tea.Cmd // gives a message later
	Wake    func()                                     // wakes the screen; it never blocks
	KeyOf   func(action string) string                 // what people press for it, for texts
	Actions keymap.Map                                 // on the keys that the config gives them

	Theme   *theme.Theme
	W, H    int
	Spin    spinner.Model
	Calls   *Calls
	Logins  int    // logins under way, for which the spinner turns
	Profile string // the profile whose clients the screen looks at; "" for those who have none
	Flash   Flash

	Dialogs   []Dialog
	FrontRect Rect // the inside of the last one, as it was drawn
	Shell     Shell
}

// Shell is the UI around the panes and dialogs.
type Shell interface {
	// RequestStarted opens the detail panel if the answer should be visible.
	RequestStarted(r Request) tea.Cmd
	RequestAnswered(r Request)
	// ReloadLists reads the lists again for another profile.
	ReloadLists() tea.Cmd
}

// Flash is the line that says what just happened.
type Flash struct {
	Text  string
	Bad   bool
	Since time.Time
	Until time.Time
}

const flashTime = 6 * time.Second

// Say flashes a line.
func (c *Context) Say(format string, args ...any) tea.Cmd {
	c.Flash = Flash{Text: fmt.Sprintf(format, args...), Since: c.Now(), Until: c.Now().Add(flashTime)}
	return nil
}

// Complain flashes what went wrong.
func (c *Context) Complain(format string, args ...any) tea.Cmd {
	c.Say(format, args...)
	c.Flash.Bad = true
	return nil
}

// Do runs what may wait, and complains of its error: failed is what did not work out.
// Otherwise done follows, if there is any.
func (c *Context) Do(run func() error, failed string, done func() tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		err := run()
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				return c.Complain("%s: %v", failed, err)
			}
			if done == nil {
				return nil
			}
			return done()
		})
	}
}

// Backend acts for a screen: requests as a client session of its own, and
// what only the daemon can do. Its methods may block and are called from
// commands.
type Backend interface {
	// Request sends one MCP request and returns its raw result. progress gets
	// the raw params of its notifications/progress in order, never after the
	// return. The end of ctx cancels the request. An error that was answered
	// has the methods ErrorCode() int and ErrorData() json.RawMessage.
	Request(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)
	// Restart closes a server's connections and opens them anew.
	Restart(server string) error
	// Wake starts a server if it sleeps.
	Wake(server string) error
	// SetEnabled lasts as long as the daemon.
	SetEnabled(server string, on bool) error
	// TryServer starts a server once, as if AddServer had added it, and says what keeps it
	// from working; it fails if it could not be added. It may take a minute.
	TryServer(ctx context.Context, name string, entryKeys map[string]any) (lacks string, err error)
	// AddServer puts a server into the config; keys are those of its entry there.
	AddServer(name string, entryKeys map[string]any) error
	// RemoveServer takes a server out of the config, and SetDisabled turns it off or on
	// there, for good.
	RemoveServer(server string) error
	SetDisabled(server string, disabled bool) error
	// Login logs the user in at a server by a browser, and says who that is, if it is
	// known. show is given the page to open, and must not wait; pasted gives the
	// URL that a browser elsewhere ended at. The end of ctx cancels it. agree reports
	// whether the issuer, an authorization server, may have the config's client secret;
	// before is the issuer that the user agreed to earlier, or "".
	Login(ctx context.Context, server string, show func(page string), agree func(ctx context.Context, issuer, before string) bool, pasted <-chan string) (user string, err error)
	// Logout has the tokens of a server taken back, and forgets them.
	Logout(ctx context.Context, server string) error
	// Approve takes tools of a server as they were shown; it fails if one is
	// another by now.
	Approve(server string, tools []registry.UnapprovedTool) error
	// Profiles are those of the config, and VisibleCounts is how much of each kind the clients of
	// one see, "" for those who have none.
	Profiles() []string
	VisibleCounts(profile string) [registry.Kinds]int
	// HiddenReason says by whom and why lists of clients of a profile do not have an entry; by is ""
	// when they do, "you" when SetEntriesDisabled did it, "profile" when that leaves it out, "search" when
	// it is found and called all the same, and "config" when no view need have it.
	HiddenReason(profile string, e *registry.Entry) (by, why string)
	// ListedAs returns the name of an entry in lists of clients of a profile; "" when they do
	// not have it.
	ListedAs(profile string, e *registry.Entry) string
	// SetEntriesDisabled turns entries on or off for clients of a profile, for all if that is "".
	SetEntriesDisabled(profile string, on bool, entries ...*registry.Entry) error
	// Diagnose finds out what keeps a server from working. It may take a minute.
	Diagnose(ctx context.Context, server string) (report.Diagnosis, error)
	// Usage tells the costs of servers, tools and clients. It may take a moment.
	Usage() report.Report
	// Definition is how a server is started or reached, and what its process takes.
	Definition(server string) report.Definition
	// InFlight are the requests of all clients that wait for their answers, the
	// oldest first, and CancelRequest cancels one of them; false: it is over already.
	InFlight() []registry.InFlight
	CancelRequest(session, id string) bool
	// SessionDetails tells of a client's session its profile, its project and what questions it can
	// answer.
	SessionDetails(session string) []string
	// Disconnect ends the session of a client; false: it is over already.
	Disconnect(session string) bool
	// Session is this screen's id among the registry's sessions.
	Session() string
}

// Terminal is where a screen is shown. Read gives its input, Write takes output.
type Terminal interface {
	io.ReadWriter
	Getenv(name string) string
	Size() (width, height int)
	// Resized wants a full repaint with each value.
	Resized() <-chan struct{}
	// Dark reports whether the background is dark, if that is known, and
	// Backgrounds that it became known.
	Dark() (dark, known bool)
	Backgrounds() <-chan struct{}
	// Graphics returns the terminal's answers about images: whether it has kitty's
	// protocol and sixel, and the pixels of a cell, 0 if they are not known. After it
	// changed Resized has a value, too.
	Graphics() (kitty, sixel bool, cellWidth, cellHeight int)
	// Open shows content in the user's "pager" or "editor", where the terminal
	// is, and returns when that program ends. "file" edits the
	// existing file at the path name, which may have a line after a colon.
	Open(ctx context.Context, program, name string, content []byte) error
	// Browse opens a page in the user's browser, where the terminal is, and does not
	// wait for that to end.
	Browse(ctx context.Context, page string) error
	// Save writes a file where the terminal is, and says where that was.
	Save(ctx context.Context, path string, content []byte) (where string, err error)
	// Done is closed when the terminal is gone.
	Done() <-chan struct{}
}

// Rect is a part of the screen.
type Rect struct{ X, Y, W, H int }

// Contains reports whether a cell is inside.
func (r Rect) Contains(x, y int) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }
