// Package breakpoints shows the rules for requests and lets the user decide about stopped ones.
//
// [Rules] belongs to one UI and runs on the goroutine of its Update and View. It reads
// the registry's [registry.RuleState] and acts through [uicontext.Backend] in commands.
// Nothing opens by itself, because the user may be typing. A badge and a message announce
// stopped requests. The package must not import panes.
package breakpoints

import (
	"cmp"
	"fmt"
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/tui/keys"
	"goblin/tui/uicontext"
)

// Rules are the breakpoints of one UI.
type Rules struct {
	app       *uicontext.Context
	announced uint64 // highest id of the announced stops
	decided   uint64 // the stop that this UI decided last
	// made maps what b was pressed on to the rule.
	made map[string]uint64
}

// New returns the breakpoints of a UI.
func New(a *uicontext.Context) *Rules { return &Rules{app: a, made: make(map[string]uint64)} }

func (r *Rules) state() *registry.RuleState { return r.app.Reg.Rules() }

// stopped returns a stopped request, or nil if it no longer waits.
func (r *Rules) stopped(id uint64) *registry.StoppedRequest {
	all := r.state().Stopped
	if i := slices.IndexFunc(all, func(s registry.StoppedRequest) bool { return s.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Refresh announces newly stopped requests.
func (r *Rules) Refresh(what registry.Changes) {
	if what&registry.Rules == 0 {
		return
	}
	before := r.announced
	for _, s := range r.state().Stopped {
		r.announced = max(r.announced, s.ID)
		if s.ID > before {
			r.app.Complain("%s is stopped; %s shows it", r.app.Theme.Own(title(&s)), r.app.KeyOf("mistakes"))
		}
	}
}

// Show opens the list of rules and stopped requests.
func (r *Rules) Show() tea.Cmd { return r.show("") }

// ShowStop opens the list at a stopped request.
func (r *Rules) ShowStop(id uint64) tea.Cmd { return r.show(StopKey(id)) }

// show opens the window with the cursor at a row, or the first one.
func (r *Rules) show(key string) tea.Cmd {
	w := newWindow(r, key)
	return tea.Batch(r.app.Push(w), w.build())
}

// title names a stopped request in one line.
func title(s *registry.StoppedRequest) string {
	client := cmp.Or(s.Client, "a client")
	return uicontext.CutText(uicontext.SanitizeLine(fmt.Sprintf("%s → %s %s", client, cmp.Or(s.Server, registry.Local), cmp.Or(s.Name, s.Method))), 80)
}

// name returns the target of a stopped request.
func name(s *registry.StoppedRequest) string {
	return uicontext.CutText(uicontext.SanitizeLine(cmp.Or(s.Name, s.Method)), 60)
}

// whyEnded explains why a stopped request no longer waits.
func (r *Rules) whyEnded(s *registry.StoppedRequest) string {
	if !r.app.Now().Before(s.Until) {
		return "time is up, the default was applied: " + s.Default
	}
	for _, rec := range r.app.Reg.Traffic().Window(0, -1) {
		if rec.Number != s.Number || s.Number == 0 {
			continue
		}
		switch rec.Status {
		case registry.StatusCancelled:
			return "the client cancelled it"
		case registry.StatusLeft:
			return "the client disconnected"
		}
	}
	return "already decided"
}

// do runs a change of the rules in a command and reports it.
func (r *Rules) do(run func() error, failed, done string) tea.Cmd {
	return r.app.Do(run, failed, func() tea.Cmd { return r.app.Say("%s", done) })
}

// decide sends a decision. failed runs if it was refused.
func (r *Rules) decide(s *registry.StoppedRequest, d registry.Decision, failed func(err error) tea.Cmd, done func()) tea.Cmd {
	b, id, what := r.app.Backend, s.ID, name(s)
	text := map[string]string{
		registry.DecideSend: "Sent", registry.DecideDeny: "Denied", registry.DecideAnswer: "Answered", registry.DecideFail: "Failed",
	}[d.Action]
	switch {
	case d.Params != nil, d.Action == registry.DecideSend && d.Result != nil:
		text = "Sent changed"
	case d.Remember != "":
		text = "Sent and remembered"
	}
	r.decided = id
	return func() tea.Msg {
		err := b.DecideStop(id, d)
		return keys.FuncMsg(func() tea.Cmd {
			if err != nil {
				return failed(err)
			}
			done()
			return r.app.Say("%s: %s", text, what)
		})
	}
}

// ruleName names a rule for messages.
func ruleName(e *registry.RuleEntry) string {
	return fmt.Sprintf("rule %d", e.ID)
}

// origin returns where a rule is from.
func origin(e *registry.RuleEntry) string {
	if e.Line > 0 {
		return fmt.Sprintf("%s, line %d", e.Origin, e.Line)
	}
	return e.Origin
}

// whyNotChange explains why this UI cannot change a rule's text, or returns "".
func whyNotChange(e *registry.RuleEntry) string {
	if e.Origin == registry.RuleFromUI {
		return ""
	}
	return ruleName(e) + " is from " + origin(e) + "; change it there, or disable it here"
}

// own returns the rules of UIs.
func (r *Rules) own() (all []registry.RuleEntry) {
	for _, e := range r.state().Rules {
		if e.Origin == registry.RuleFromUI {
			all = append(all, e)
		}
	}
	return all
}
