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

// Request is something to ask of a server and to keep the answer of.
type Request struct {
	Item     Item
	Method   string
	Args     json.RawMessage // arguments of a tool or prompt, variables of a template
	Meta     json.RawMessage // _meta as the user wrote it, nil for none
	Expanded string          // listed URI that a template was expanded to
	Show     bool            // what is answered is to be in sight
	Quiet    bool            // nobody needs to be told that it went well
}

// params returns the request's params as they are sent.
func (r Request) params() (json.RawMessage, error) {
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

// Running is a request that was not answered yet.
type Running struct {
	Request
	Began  time.Time
	Cancel context.CancelFunc

	mu       sync.Mutex
	progress float64
	total    float64
	message  string
}

// calls are the requests of this screen.
type calls struct {
	app  *Common
	List []*Running             // the oldest first
	Last *Request               // what "." repeats
	used []Request              // the last arguments for each item, the oldest first
	left []Left                 // the requests that were cancelled last, one for each item
	past []*registry.Invocation // what was called, the oldest first
	kept int                    // bytes of those

	Trusted map[Item]string // definitions of tools that are called without asking
}

// Bounds of the calls that are at hand.
const (
	mostPast      = 400
	mostPastOf    = 12
	mostPastBytes = 16 << 20
)

// Past are the last calls of an item, the newest first.
func (c *calls) Past(it Item) []*registry.Invocation {
	var out []*registry.Invocation
	for _, inv := range slices.Backward(c.past) {
		if inv.Kind == it.Kind && inv.Server == it.Server && inv.Name == it.Name {
			out = append(out, inv)
		}
	}
	return out
}

// record keeps what was called, as long as there is room.
func (c *calls) record(it Item, inv *registry.Invocation) {
	c.past = append(c.past, inv)
	c.kept += sizeOf(inv)
	if of := c.Past(it); len(of) > mostPastOf {
		c.drop(of[len(of)-1])
	}
	for len(c.past) > mostPast || c.kept > mostPastBytes && len(c.past) > 1 {
		c.drop(c.past[0])
	}
}

func (c *calls) drop(inv *registry.Invocation) {
	c.past = slices.DeleteFunc(c.past, func(o *registry.Invocation) bool { return o == inv })
	c.kept -= sizeOf(inv)
}

func sizeOf(inv *registry.Invocation) int {
	return len(inv.Params) + len(inv.Meta) + len(inv.Result) + 512
}

// Left is a request that was cancelled.
type Left struct {
	Request
	At   time.Time
	Took time.Duration
}

// Cancelled is the last request about an item if it was cancelled, nil if it was not.
func (c *calls) Cancelled(it Item) *Left {
	for i := range c.left {
		if c.left[i].Item == it {
			return &c.left[i]
		}
	}
	return nil
}

// leave notes that a request was cancelled.
func (c *calls) leave(run *Running, took time.Duration) {
	c.forget(run.Item)
	c.left = append(c.left, Left{run.Request, run.Began, took})
	c.left = c.left[max(0, len(c.left)-mostUsed):]
}

func (c *calls) forget(it Item) {
	c.left = slices.DeleteFunc(c.left, func(l Left) bool { return l.Item == it })
}

// mostUsed items have their last arguments remembered.
const mostUsed = 200

// remember keeps the arguments of a request for the next form.
func (c *calls) remember(r Request) {
	c.used = slices.DeleteFunc(c.used, func(o Request) bool { return o.Item == r.Item })
	c.used = append(c.used, r)
	c.used = c.used[max(0, len(c.used)-mostUsed):]
}

// LastArguments returns the last arguments and _meta for an item.
func (c *calls) LastArguments(it Item) (args, meta json.RawMessage) {
	for _, r := range c.used {
		if r.Item == it {
			return r.Args, r.Meta
		}
	}
	return nil, nil
}

var errCancelled = errors.New("cancelled")

// atMost requests of a screen run at a time.
const atMost = 32

// NewCalls are the requests of a screen.
func NewCalls(a *Common) *calls { return &calls{app: a, Trusted: map[Item]string{}} }

func (c *calls) Len() int { return len(c.List) }

// Of is the running request about an item.
func (c *calls) Of(it Item) *Running {
	for i := len(c.List) - 1; i >= 0; i-- {
		if c.List[i].Item == it {
			return c.List[i]
		}
	}
	return nil
}

// Start sends a request; its answer goes into the content cache.
func (c *calls) Start(r Request) tea.Cmd {
	a := c.app
	if len(c.List) >= atMost {
		return a.Complain("%d requests are running already; %s cancels one", atMost, a.KeyOf("cancel"))
	}
	params, err := r.params()
	if err != nil {
		return a.Complain("%v", err)
	}
	ctx, cancel := context.WithCancel(a.Ctx)
	run := &Running{Request: r, Began: a.Now(), Cancel: cancel}
	c.forget(r.Item)
	c.List = append(c.List, run)
	if !r.Quiet {
		c.Last = &r
		c.remember(r)
	}
	return tea.Batch(func() tea.Msg {
		defer cancel()
		began := a.Now()
		result, err := a.Backend.Request(ctx, r.Method, params, run.progressed(a.Poke))
		took := a.Now().Sub(began)
		if ctx.Err() != nil {
			// What was kept before is worth more than that it was left.
			return keys.FuncMsg(func() tea.Cmd { return c.ended(run, nil, errCancelled, took) })
		}
		inv := a.Reg.Contents().Put(r.invocation(result, err, began, took))
		return keys.FuncMsg(func() tea.Cmd {
			if !r.Quiet {
				c.record(r.Item, inv)
			}
			return c.ended(run, result, err, took)
		})
	}, a.Shell.Begun(r))
}

// progressed takes the params of progress notifications.
func (r *Running) progressed(poke func()) func(json.RawMessage) {
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
		r.progress, r.total, r.message = p.Progress, p.Total, Clean(p.Message)
		r.mu.Unlock()
		poke()
	}
}

func (c *calls) ended(run *Running, result json.RawMessage, err error, took time.Duration) tea.Cmd {
	c.List = slices.DeleteFunc(c.List, func(r *Running) bool { return r == run })
	a := c.app
	a.Shell.Answered(run.Request)
	name := run.Item.Listed
	switch {
	case errors.Is(err, errCancelled):
		if !run.Quiet {
			c.leave(run, took)
			inv := run.invocation(nil, err, run.Began, took)
			inv.Cancelled = true
			c.record(run.Item, inv)
		}
		return a.Say("%s: cancelled after %s", name, Millis(took))
	case err != nil:
		a.Log.Warn("Request of a screen failed", "method", run.Method, "name", name, "err", err)
		return a.Complain("%s: %s", name, err)
	case run.Quiet:
		return nil
	case failedTool(result):
		return a.Complain("%s answered with an error after %s", name, Millis(took))
	}
	return a.Say("%s answered after %s", name, Millis(took))
}

// failedTool reports whether a result has isError.
func failedTool(result json.RawMessage) bool {
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &r) == nil && r.IsError
}

// invocation is the record of an answer for the content cache. at is when it
// was asked for: an update since then makes it stale at once.
func (r Request) invocation(result json.RawMessage, err error, at time.Time, took time.Duration) *registry.Invocation {
	inv := &registry.Invocation{
		Kind: r.Item.Kind, Server: r.Item.Server, Name: r.Item.Name, Listed: r.Item.Listed,
		Expanded: r.Expanded, Params: r.Args, Meta: r.Meta,
		Result: result, Success: err == nil && !failedTool(result), Time: at, Duration: took,
	}
	if err != nil {
		inv.Result, inv.Error = nil, err.Error()
		if answer, ok := errors.AsType[answered](err); ok {
			inv.ErrorCode = answer.ErrorCode()
		}
	}
	return inv
}

// Kept is the content that is kept of an item.
func Kept(reg *registry.Registry, it Item) *registry.Invocation {
	return reg.Contents().Last(it.Kind, it.Server, it.Name)
}

// Stop cancels a request.
func (c *calls) Stop(run *Running) tea.Cmd {
	run.Cancel()
	return c.app.Say("Cancelling %s", run.Item.Listed)
}

// Lines draw what a running request has said so far.
func (r *Running) Lines(a *Common, w, h int) []string {
	r.mu.Lock()
	progress, total, message := r.progress, r.total, r.message
	r.mu.Unlock()
	lk := a.Look
	head := fmt.Sprintf(" %s running %s", a.Spin.View(), termtext.Age(a.Now().Sub(r.Began)))
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

// Fit is foreign text in exactly w cells.
func Fit(lk *theme.Look, s string, w int) string { return lk.Fit(Clean(s), w) }

// Item names a thing of the catalog.
type Item struct {
	Kind   registry.Kind
	Server string
	Name   string // original
	Listed string
}

// EntryItem returns an entry of the catalog as an item.
func EntryItem(e *registry.Entry) Item {
	kind := e.Kind
	if kind == registry.Skill { // its file is a resource
		kind = registry.Resource
	}
	return Item{Kind: kind, Server: e.Server, Name: e.Name, Listed: e.Listed}
}

// Blank reports whether the cursor is on nothing.
func (it Item) Blank() bool { return it == Item{} }

// answered is an error that the other side sent.
type answered interface {
	error
	ErrorCode() int
	ErrorData() json.RawMessage
}
