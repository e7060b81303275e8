package uicontext

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/termtext"
	"goblin/tui/keys"
	"goblin/tui/theme"
)

// Request is a request to a server whose answer is cached.
type Request struct {
	Item     Item
	Method   string
	Args     json.RawMessage // arguments of a tool or prompt, variables of a template
	Meta     json.RawMessage // entered by the user, or nil
	Expanded string          // listed URI of a template's expansion
	Show     bool
	Silent   bool // report only failures
	// Done is called once with the answer, unless the request is cancelled. It may be nil.
	Done func(*registry.Invocation) tea.Cmd
}

// Params returns the params of the request.
func (r Request) Params() (json.RawMessage, error) {
	p := struct {
		Name      string          `json:"name,omitempty"`
		URI       string          `json:"uri,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Meta      json.RawMessage `json:"_meta,omitempty"`
	}{Meta: r.Meta}
	switch r.Item.Kind {
	case registry.Resource:
		p.URI = r.Item.Listed
	case registry.Template:
		p.URI = r.Expanded
	default:
		p.Name, p.Arguments = r.Item.Listed, r.Args
	}
	return json.Marshal(p)
}

// Running is a request in flight.
type Running struct {
	Request
	Started time.Time
	Cancel  context.CancelFunc

	mu       sync.Mutex
	progress float64
	total    float64
	message  string
}

// Calls holds the running and the last requests of one UI.
type Calls struct {
	app          *Context
	Running      []*Running             // oldest first
	Last         *Request               // repeated by "."
	lastRequests []Request              // last ones per item, oldest first
	cancelled    []CancelledRequest     // last one per item
	history      []*registry.Invocation // oldest first
	historyBytes int

	// OnRead receives each answer to a read of a resource; it may be nil.
	OnRead  func(*registry.Invocation) tea.Cmd
	Trusted map[Item]string // tools called without asking, with their definitions
}

// Limits of the history.
const (
	maxHistory        = 400
	maxHistoryPerItem = 12
	maxHistoryBytes   = 16 << 20
)

// History returns the last calls of an item, the newest first.
func (c *Calls) History(it Item) []*registry.Invocation {
	var out []*registry.Invocation
	for _, inv := range slices.Backward(c.history) {
		if inv.Kind == it.Kind && inv.Server == it.Server && inv.Name == it.Name {
			out = append(out, inv)
		}
	}
	return out
}

func (c *Calls) record(it Item, inv *registry.Invocation) {
	c.history = append(c.history, inv)
	c.historyBytes += sizeOf(inv)
	if of := c.History(it); len(of) > maxHistoryPerItem {
		c.drop(of[len(of)-1])
	}
	for len(c.history) > maxHistory || c.historyBytes > maxHistoryBytes && len(c.history) > 1 {
		c.drop(c.history[0])
	}
}

func (c *Calls) drop(inv *registry.Invocation) {
	c.history = slices.DeleteFunc(c.history, func(o *registry.Invocation) bool { return o == inv })
	c.historyBytes -= sizeOf(inv)
}

func sizeOf(inv *registry.Invocation) int {
	return len(inv.Params) + len(inv.Meta) + len(inv.Result) + 512
}

// CancelledRequest is a request that was cancelled.
type CancelledRequest struct {
	Request
	At   time.Time
	Took time.Duration
}

// Cancelled returns the last request about an item if it was cancelled, or nil.
func (c *Calls) Cancelled(it Item) *CancelledRequest {
	for i := range c.cancelled {
		if c.cancelled[i].Item == it {
			return &c.cancelled[i]
		}
	}
	return nil
}

func (c *Calls) recordCancelled(run *Running, took time.Duration) {
	c.forgetCancelled(run.Item)
	c.cancelled = append(c.cancelled, CancelledRequest{run.Request, run.Started, took})
	c.cancelled = c.cancelled[max(0, len(c.cancelled)-maxLastRequests):]
}

func (c *Calls) forgetCancelled(it Item) {
	c.cancelled = slices.DeleteFunc(c.cancelled, func(l CancelledRequest) bool { return l.Item == it })
}

const maxLastRequests = 200

func (c *Calls) storeLastRequest(r Request) {
	c.lastRequests = slices.DeleteFunc(c.lastRequests, func(o Request) bool { return o.Item == r.Item })
	c.lastRequests = append(c.lastRequests, r)
	c.lastRequests = c.lastRequests[max(0, len(c.lastRequests)-maxLastRequests):]
}

// LastArguments returns the last arguments and _meta for an item.
func (c *Calls) LastArguments(it Item) (args, meta json.RawMessage) {
	for _, r := range c.lastRequests {
		if r.Item == it {
			return r.Args, r.Meta
		}
	}
	return nil, nil
}

var errCancelled = errors.New("cancelled")

const maxRunning = 32

// NewCalls returns an empty Calls.
func NewCalls(a *Context) *Calls { return &Calls{app: a, Trusted: map[Item]string{}} }

// Len returns the number of running requests.
func (c *Calls) Len() int { return len(c.Running) }

// ForItem returns the running request about an item, or nil.
func (c *Calls) ForItem(it Item) *Running {
	for i := len(c.Running) - 1; i >= 0; i-- {
		if c.Running[i].Item == it {
			return c.Running[i]
		}
	}
	return nil
}

// Start sends a request. Its answer is stored in the content cache.
func (c *Calls) Start(r Request) tea.Cmd {
	a := c.app
	if a.ReadOnly != "" {
		return a.Complain("%s; no requests are sent", a.ReadOnly)
	}
	if len(c.Running) >= maxRunning {
		return a.Complain("%d requests are already running; %s cancels one", maxRunning, a.KeyOf("cancel"))
	}
	params, err := r.Params()
	if err != nil {
		return a.Complain("%v", err)
	}
	done := r.Done
	r.Done = nil // not for repetitions
	ctx, cancel := context.WithCancel(a.Ctx)
	run := &Running{Request: r, Started: a.Now(), Cancel: cancel}
	c.forgetCancelled(r.Item)
	c.Running = append(c.Running, run)
	if !r.Silent {
		c.Last = &r
		c.storeLastRequest(r)
	}
	return tea.Batch(func() tea.Msg {
		defer cancel()
		began := a.Now()
		result, err := a.Backend.Request(ctx, r.Method, params, run.onProgress(a.Wake))
		took := a.Now().Sub(began)
		if ctx.Err() != nil {
			// Keep the cached content.
			return keys.FuncMsg(func() tea.Cmd { return c.finish(run, nil, errCancelled, took) })
		}
		inv := a.Reg.Contents().Put(r.invocation(result, err, began, took))
		return keys.FuncMsg(func() tea.Cmd {
			if !r.Silent {
				c.record(r.Item, inv)
			}
			cmd := c.finish(run, result, err, took)
			if c.OnRead != nil && inv.Kind == registry.Resource {
				cmd = tea.Batch(cmd, c.OnRead(inv))
			}
			if done != nil {
				cmd = tea.Batch(cmd, done(inv))
			}
			return cmd
		})
	}, a.Shell.RequestStarted(r))
}

func (r *Running) onProgress(poke func()) func(json.RawMessage) {
	return func(params json.RawMessage) {
		var p struct {
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
			Message  string  `json:"message"`
		}
		if json.Unmarshal(params, &p) != nil {
			return
		}
		r.mu.Lock()
		r.progress, r.total, r.message = p.Progress, p.Total, SanitizeLine(p.Message)
		r.mu.Unlock()
		poke()
	}
}

func (c *Calls) finish(run *Running, result json.RawMessage, err error, took time.Duration) tea.Cmd {
	c.Running = slices.DeleteFunc(c.Running, func(r *Running) bool { return r == run })
	a := c.app
	a.Shell.RequestAnswered(run.Request)
	name := run.Item.Listed
	switch {
	case errors.Is(err, errCancelled):
		if !run.Silent {
			c.recordCancelled(run, took)
			inv := run.invocation(nil, err, run.Started, took)
			inv.Cancelled = true
			c.record(run.Item, inv)
		}
		return a.Say("%s: cancelled after %s", name, FormatDuration(took))
	case err != nil:
		a.Log.Warn("UI request failed", "method", run.Method, "name", name, "err", err)
		return a.Complain("%s: %s", name, err)
	case run.Silent:
		return nil
	case failedTool(result):
		return a.Complain("%s: tool error in %s", name, FormatDuration(took))
	}
	return a.Say("%s: ok in %s", name, FormatDuration(took))
}

func failedTool(result json.RawMessage) bool {
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &r) == nil && r.IsError
}

// An update after at makes the invocation stale at once.
func (r Request) invocation(result json.RawMessage, err error, at time.Time, took time.Duration) *registry.Invocation {
	inv := &registry.Invocation{
		Kind: r.Item.Kind, Server: r.Item.Server, Name: r.Item.Name, Listed: r.Item.Listed,
		Expanded: r.Expanded, Params: r.Args, Meta: r.Meta,
		Result: result, Success: err == nil && !failedTool(result), Time: at, Duration: took,
	}
	if err != nil {
		inv.Result, inv.Error = nil, err.Error()
		if answer, ok := errors.AsType[serverError](err); ok {
			inv.ErrorCode = answer.ErrorCode()
		}
	}
	return inv
}

// CachedInvocation returns the cached content of an item, or nil.
func CachedInvocation(reg *registry.Registry, it Item) *registry.Invocation {
	return reg.Contents().Last(it.Kind, it.Server, it.Name)
}

// Stop cancels a request.
func (c *Calls) Stop(run *Running) tea.Cmd {
	run.Cancel()
	return c.app.Say("Cancelling %s", run.Item.Listed)
}

// Lines draws the progress of a running request.
func (r *Running) Lines(a *Context, w, h int) []string {
	r.mu.Lock()
	progress, total, message := r.progress, r.total, r.message
	r.mu.Unlock()
	lk := a.Theme
	head := fmt.Sprintf(" %s running %s", a.Spin.View(), termtext.Age(a.Now().Sub(r.Started)))
	lines := []string{lk.Sides(head, lk.Key.On("X")+" cancels ", w)}
	switch {
	case total > 0:
		part := max(0, min(progress/total, 1))
		room := max(w-12, 4)
		full := int(part * float64(room))
		bar := strings.Repeat("#", full) + strings.Repeat(".", room-full)
		if !lk.ASCII {
			bar = strings.Repeat("█", full) + strings.Repeat("░", room-full)
		}
		lines = append(lines, fmt.Sprintf(" %s %3.0f %%", lk.Good.On(bar), part*100))
	case progress > 0:
		lines = append(lines, fmt.Sprintf(" progress %g", progress))
	}
	if message != "" {
		lines = append(lines, " "+message)
	}
	lines = append(lines, lk.Border.On(strings.Repeat(lk.Horizontal, w)))
	return lk.Lines(lines[:min(len(lines), h)], w, min(len(lines), h))
}

// FitText returns untrusted text in exactly w cells.
func FitText(lk *theme.Theme, s string, w int) string { return lk.Fit(SanitizeLine(s), w) }

// Item identifies an entry of the catalog.
type Item struct {
	Kind   registry.Kind
	Server string
	Name   string // the server's own name
	Listed string
}

// EntryItem returns an entry of the catalog as an item.
func EntryItem(e *registry.Entry) Item {
	kind := e.Kind
	if kind == registry.Skill { // a skill's file is a resource
		kind = registry.Resource
	}
	return Item{Kind: kind, Server: e.Server, Name: e.Name, Listed: e.Listed}
}

// IsEmpty reports whether there is no item.
func (it Item) IsEmpty() bool { return it == Item{} }

type serverError interface {
	error
	ErrorCode() int
	ErrorData() json.RawMessage
}
