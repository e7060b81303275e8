// Package uicontext holds the state shared by all panes and dialogs.
//
// [Context] has the registry, the [Backend], the terminal, the theme and the clock. It
// also has the running requests, the status line and the stack of open dialogs. The last
// dialog receives input before the panes and removes itself from the stack. The package
// must not import panes or dialogs; it calls the UI through [Shell]. Everything must run
// on the UI's Update goroutine; slow work goes into commands.
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
	"goblin/registry/export"
	"goblin/registry/keymap"
	"goblin/registry/report"
	"goblin/registry/savedcall"
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
	Now     func() time.Time // of the data; stands still in a recording
	Clock   func() time.Time // for input and messages
	// ReadOnly is the reason why the UI sends no requests and changes nothing, or "".
	ReadOnly string
	After    func(d time.Duration, msg tea.Msg) tea.Cmd
	Wake     func() // wakes the UI; never blocks
	// SaveCall asks for a name and saves a request as a file. answer may be empty.
	SaveCall func(method string, params json.RawMessage, answer savedcall.Answer) tea.Cmd
	KeyOf    func(action string) string // an action's key, for texts
	Actions  keymap.Map                 // with the config's keys
	// Endpoint is this Goblin as clients reach it, for commands and snippets.
	Endpoint export.Endpoint

	Theme   *theme.Theme
	W, H    int
	Spin    spinner.Model
	Calls   *Calls
	Logins  int    // running logins, which turn the spinner
	Profile string // shown profile; "" for clients without one
	Flash   Flash

	Dialogs   []Dialog
	FrontRect Rect // of the last dialog, as drawn
	Shell     Shell
}

// Shell is the UI around the panes and dialogs.
type Shell interface {
	// RequestStarted opens the detail if the answer should be visible.
	RequestStarted(r Request) tea.Cmd
	RequestAnswered(r Request)
	// ReloadLists reads the lists again for another profile.
	ReloadLists() tea.Cmd
}

// Flash is the message line above the footer.
type Flash struct {
	Text  string
	Bad   bool
	Since time.Time
	Until time.Time
}

const flashTime = 6 * time.Second

// MissingBody explains why the registry has no params or answer of a request.
func (c *Context) MissingBody() string {
	if c.ReadOnly != "" {
		return "not recorded, or not loaded"
	}
	return "evicted by newer traffic"
}

// Say shows a message.
func (c *Context) Say(format string, args ...any) tea.Cmd {
	c.Flash = Flash{Text: fmt.Sprintf(format, args...), Since: c.Clock(), Until: c.Clock().Add(flashTime)}
	return nil
}

// Complain shows an error message.
func (c *Context) Complain(format string, args ...any) tea.Cmd {
	c.Say(format, args...)
	c.Flash.Bad = true
	return nil
}

// Do runs a function in a command. It shows an error after the text failed, or calls
// done, which may be nil.
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

// Backend acts for a UI. It sends requests as a client session of its own and controls
// the daemon. Its methods may block and are called from commands.
type Backend interface {
	SavedCalls
	ConfigFile
	NewServers
	// Request sends one MCP request and returns its raw result. progress receives the raw
	// params of notifications/progress in order, never after the return. The end of ctx
	// cancels the request. An error response has the methods ErrorCode() int and
	// ErrorData() json.RawMessage.
	Request(ctx context.Context, method string, params json.RawMessage, progress func(json.RawMessage)) (json.RawMessage, error)
	// Restart restarts a server's connections.
	Restart(server string) error
	// Wake starts an idle server.
	Wake(server string) error
	// SetEnabled enables or disables a server until the daemon stops.
	SetEnabled(server string, on bool) error
	// RemoveServer removes a server from the config. SetDisabled enables or disables it
	// there.
	RemoveServer(server string) error
	SetDisabled(server string, disabled bool) error
	// Login logs the user in at a server by a browser and returns the user's name if
	// known. show receives the page to open and must not block. pasted delivers the URL
	// that a browser elsewhere ended at. The end of ctx cancels the login. agree reports
	// whether the issuer may receive the config's client secret. before is the issuer
	// that the user agreed to earlier, or "".
	Login(ctx context.Context, server string, show func(page string), agree func(ctx context.Context, issuer, before string) bool, pasted <-chan string) (user string, err error)
	// Logout revokes and deletes a server's tokens.
	Logout(ctx context.Context, server string) error
	// Approve approves tools of a server as they were shown. It fails if one has changed
	// since.
	Approve(server string, tools []registry.UnapprovedTool) error
	// Profiles returns the names of the profiles. VisibleCounts returns the number of
	// visible entries of each kind for clients of a profile, or without one ("").
	Profiles() []string
	VisibleCounts(profile string) [registry.Kinds]int
	// HiddenReason reports why an entry is hidden from a profile's clients. by is ""
	// (visible), "you" (by SetEntriesDisabled), "profile", "search" (unlisted, but found
	// and callable) or "config" (hidden from all profiles).
	HiddenReason(profile string, e *registry.Entry) (by, why string)
	// ListedAs returns the name of an entry in the lists of a profile's clients, or "" if
	// it is hidden.
	ListedAs(profile string, e *registry.Entry) string
	// SetEntriesDisabled disables entries for a profile's clients, or for all if profile
	// is ""; on enables them.
	SetEntriesDisabled(profile string, on bool, entries ...*registry.Entry) error
	// Diagnose checks a server. It may take a minute.
	Diagnose(ctx context.Context, server string) (report.Diagnosis, error)
	// Usage returns the costs of servers, tools and clients. It may take a moment.
	Usage() report.Report
	// Definition describes how a server is started or reached, and its process's
	// resources.
	Definition(server string) report.Definition
	// InFlight returns the requests of all clients in flight, the oldest first.
	// CancelRequest cancels one and reports whether it was still in flight.
	InFlight() []registry.InFlight
	CancelRequest(session, id string) bool
	// Recording describes the recording of traffic, or returns nil. It never blocks.
	// ToggleRecording starts one and returns it, or stops it and returns its end.
	Recording() *report.Recording
	ToggleRecording() (running, stopped *report.Recording, err error)
	// TrafficHead returns the lines that precede traffic in a recording. It may take a
	// moment.
	TrafficHead() ([]export.Line, error)
	// SessionDetails describes a client session's profile, project and capabilities.
	SessionDetails(session string) []string
	// Disconnect closes a client's session and reports whether it existed.
	Disconnect(session string) bool
	// AddRule adds a rule, a YAML mapping as in the config, before all others and returns
	// its id. ChangeRule and RemoveRule work only on rules of UIs. SetRuleEnabled works on
	// all. The state is in [registry.Registry.Rules].
	AddRule(text string) (uint64, error)
	ChangeRule(id uint64, text string) error
	SetRuleEnabled(id uint64, on bool) error
	RemoveRule(id uint64) error
	// DecideStop decides about a stopped request. It fails if the decision is invalid, or
	// if the request no longer waits.
	DecideStop(id uint64, d registry.Decision) error
	// RevokeApproval removes a remembered approval, see [registry.CallApproval].
	RevokeApproval(id string) error
	// Redact hides the config's secrets in a text, as in recorded traffic.
	Redact(text string) string
	// Session returns this UI's id among the registry's sessions.
	Session() string
}

// Terminal is a UI's terminal. Read returns its input.
type Terminal interface {
	io.ReadWriter
	Getenv(name string) string
	Size() (width, height int)
	// Resized requests a full repaint with each value.
	Resized() <-chan struct{}
	// Dark reports whether the background is dark, if known. Backgrounds signals changes
	// of that.
	Dark() (dark, known bool)
	Backgrounds() <-chan struct{}
	// Graphics reports whether the terminal supports kitty's image protocol and sixel.
	// cellWidth and cellHeight are in pixels, 0 if unknown. Changes are signalled by
	// Resized.
	Graphics() (kitty, sixel bool, cellWidth, cellHeight int)
	// Open shows content in the user's "pager" or "editor" on the terminal's machine and
	// waits for that program. "file" edits the existing file at the path name, which may
	// end with a colon and a line.
	Open(ctx context.Context, program, name string, content []byte) error
	// Browse opens a page in the browser on the terminal's machine without waiting for
	// it.
	Browse(ctx context.Context, page string) error
	// Save writes a file on the terminal's machine and returns its path.
	Save(ctx context.Context, path string, content []byte) (where string, err error)
	// Done is closed when the terminal closes.
	Done() <-chan struct{}
}

// Rect is a part of the UI, in cells.
type Rect struct{ X, Y, W, H int }

// Contains reports whether a cell is inside.
func (r Rect) Contains(x, y int) bool { return x >= r.X && x < r.X+r.W && y >= r.Y && y < r.Y+r.H }
