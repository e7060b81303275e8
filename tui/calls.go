package tui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/tui/work"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/look"
)

// request is something to ask of a server and to keep the answer of.
type request struct {
	item     item
	method   string
	args     json.RawMessage // arguments of a tool or prompt, variables of a template
	meta     json.RawMessage // _meta as the user wrote it, nil for none
	expanded string          // listed URI that a template was expanded to
	danger   bool            // the server says that it may destroy something
	show     bool            // what is answered is to be in sight
	quiet    bool            // nobody needs to be told that it went well
}

// params are what is sent.
func (r request) params() (json.RawMessage, error) {
	p := struct {
		Name      string          `json:"name,omitempty"`
		URI       string          `json:"uri,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Meta      json.RawMessage `json:"_meta,omitempty"`
	}{Meta: r.meta}
	switch r.item.kind {
	case registry.Resource:
		p.URI = r.item.listed
	case registry.Template:
		p.URI = r.expanded
	default:
		p.Name, p.Arguments = r.item.listed, r.args
	}
	return json.Marshal(p)
}

// running is a request that was not answered yet.
type running struct {
	request
	began  time.Time
	cancel context.CancelFunc

	mu       sync.Mutex
	progress float64
	total    float64
	message  string
}

// calls are the requests of this screen.
type calls struct {
	app  *app
	list []*running // the oldest first
	last *request   // what "." repeats
	used []request  // the last arguments for each item, the oldest first
}

// mostUsed items have their last arguments remembered.
const mostUsed = 200

// remember keeps the arguments of a request for the next form.
func (c *calls) remember(r request) {
	c.used = slices.DeleteFunc(c.used, func(o request) bool { return o.item == r.item })
	c.used = append(c.used, r)
	c.used = c.used[max(0, len(c.used)-mostUsed):]
}

// lastOf gives the last arguments and _meta for an item.
func (c *calls) lastOf(it item) (args, meta json.RawMessage) {
	for _, r := range c.used {
		if r.item == it {
			return r.args, r.meta
		}
	}
	return nil, nil
}

var errCancelled = errors.New("cancelled")

// atMost requests of a screen run at a time.
const atMost = 32

func newCalls(a *app) *calls { return &calls{app: a} }

func (c *calls) len() int { return len(c.list) }

// of is the running request about an item.
func (c *calls) of(it item) *running {
	for i := len(c.list) - 1; i >= 0; i-- {
		if c.list[i].item == it {
			return c.list[i]
		}
	}
	return nil
}

// start sends a request; its answer goes into the content cache.
func (c *calls) start(r request) tea.Cmd {
	a := c.app
	if len(c.list) >= atMost {
		return a.complain("%d requests are running already; X cancels one", atMost)
	}
	params, err := r.params()
	if err != nil {
		return a.complain("%v", err)
	}
	ctx, cancel := context.WithCancel(a.ctx)
	run := &running{request: r, began: a.now(), cancel: cancel}
	c.list = append(c.list, run)
	if !r.quiet {
		c.last = &r
		c.remember(r)
	}
	if r.show && a.layout.place != placeHidden {
		a.opened = true
	}
	return tea.Batch(func() tea.Msg {
		defer cancel()
		began := a.now()
		result, err := a.backend.Request(ctx, r.method, params, run.told(a.poke))
		took := a.now().Sub(began)
		if ctx.Err() != nil {
			// What was kept before is worth more than that it was left.
			return work.Done(func() tea.Cmd { return c.ended(run, nil, errCancelled, took) })
		}
		a.reg.Contents().Put(r.invocation(result, err, began, took))
		return work.Done(func() tea.Cmd { return c.ended(run, result, err, took) })
	}, a.spinIfBusy())
}

// told takes the params of progress notifications.
func (r *running) told(poke func()) func(json.RawMessage) {
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
		r.progress, r.total, r.message = p.Progress, p.Total, clean(p.Message)
		r.mu.Unlock()
		poke()
	}
}

func (c *calls) ended(run *running, result json.RawMessage, err error, took time.Duration) tea.Cmd {
	c.list = slices.DeleteFunc(c.list, func(r *running) bool { return r == run })
	a := c.app
	if run.show && a.panes[a.open].item() == run.item {
		a.details[a.open].jump = true
	}
	name := run.item.listed
	switch {
	case errors.Is(err, errCancelled):
		return a.say("%s: cancelled", name)
	case err != nil:
		a.log.Warn("Request of a screen failed", "method", run.method, "name", name, "err", err)
		return a.complain("%s: %s", name, err)
	case run.quiet:
		return nil
	case failedTool(result):
		return a.complain("%s answered with an error after %s", name, millis(took))
	}
	return a.say("%s answered after %s", name, millis(took))
}

// failedTool says whether a result has isError.
func failedTool(result json.RawMessage) bool {
	var r struct {
		IsError bool `json:"isError"`
	}
	return json.Unmarshal(result, &r) == nil && r.IsError
}

// invocation is the record of an answer for the content cache. at is when it
// was asked for: an update since then makes it stale at once.
func (r request) invocation(result json.RawMessage, err error, at time.Time, took time.Duration) *registry.Invocation {
	inv := &registry.Invocation{
		Kind: r.item.kind, Server: r.item.server, Name: r.item.name, Listed: r.item.listed,
		Expanded: r.expanded, Params: r.args, Meta: r.meta,
		Result: result, Success: err == nil && !failedTool(result), Time: at, Duration: took,
	}
	if err != nil {
		inv.Result, inv.Error = nil, err.Error()
		var answer answered
		if errors.As(err, &answer) {
			inv.ErrorCode = answer.ErrorCode()
		}
	}
	return inv
}

// kept is the content that is kept of an item.
func kept(reg *registry.Registry, it item) *registry.Invocation {
	c := reg.Contents()
	switch it.kind {
	case registry.Resource:
		return c.Resource(it.server, it.name)
	case registry.Template:
		return c.Template(it.server, it.name)
	case registry.Prompt:
		return c.Prompt(it.server, it.name)
	default:
		return c.Tool(it.server, it.name)
	}
}

// stop cancels a request.
func (c *calls) stop(run *running) tea.Cmd {
	run.cancel()
	return c.app.say("Cancelling %s", run.item.listed)
}

// lines draw what a running request has said so far.
func (r *running) lines(a *app, w, h int) []string {
	r.mu.Lock()
	progress, total, message := r.progress, r.total, r.message
	r.mu.Unlock()
	lk := a.look
	head := fmt.Sprintf(" %s running %s", a.spin.View(), age(a.now().Sub(r.began)))
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

// blankItem is for panes whose cursor is on nothing.
var blankItem = item{}

func fit(lk *look.Look, s string, w int) string { return lk.Fit(clean(s), w) }
