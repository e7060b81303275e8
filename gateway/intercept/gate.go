// Package intercept stops, changes and answers clients' requests by rules.
//
// A [Gate] holds the rules of the UI, the command line and the config, in this order. The
// first rule that matches decides. A stopped request waits for [Gate.Decide]; its rule's
// default applies when time is up, or when no UI is open. The end of the request's
// context or session removes the stop. All methods are safe for concurrent use.
// [Gate.Request] and [Gate.Answer] block while a request waits. Without rules,
// [Gate.IsActive] is one atomic load.
//
// A request that a rule stops or denies reaches no server. This holds for each request
// with a known target, in sessions and stateless:
//   - tools/call, also by call_tool, from scripts, or as a task
//   - prompts/get, resources/read, completion/complete, tasks/*
//   - subscriptions, skills, extensions, Goblin's own tools and resources
//
// A name matches in each spelling. Some requests continue a sent one and are not stopped
// twice: retries after a reconnect or login, and stateless ones with input for the server.
// Lists, initialize and other methods without a target match by their method. Unknown
// targets fail before the rules, without asking a server.
package intercept

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/state"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/rule"
	"goblin/registry/termtext"
)

// maxRules is the maximum number of rules of the UI.
const maxRules = 200

// maxFreeze limits a frozen request whose client disconnected unnoticed.
const maxFreeze = time.Hour

// Options configures a [Gate].
type Options struct {
	Registry *registry.Registry // shows the state
	Logger   *slog.Logger
	// UIOpen reports whether a user can decide about stopped requests.
	UIOpen func() bool
	// Approvals are the remembered approvals; nil keeps them in memory.
	Approvals *state.CallApprovalStore
	// CanAsk reports whether Ask can reach the user of a request's client. Both may be nil.
	CanAsk func(x *downstream.Request, params []byte) bool
	// Ask sends elicitation/create to the request's client and waits for the answer.
	Ask func(ctx context.Context, x *downstream.Request, params []byte) (result []byte, err error)
	// Mask hides secrets in the first n bytes of a text; nil hides none.
	Mask func(text []byte, n int) []byte
	// Depth is the maximum nesting of values from the UI; 0 means [rawjson.MaxDepth].
	Depth int
}

// Gate applies the rules.
type Gate struct {
	o       Options
	enabled atomic.Pointer[enabled] // nil if there are none

	mu        sync.Mutex
	rules     []*entry // of the UI, the command line, the config
	ids       uint64
	names     rule.Names              // that rules can refer to
	stops     []*stop                 // the oldest first
	approvals []registry.CallApproval // until the end of their sessions
	shown     time.Time               // last publication
	showTimer bool                    // a publication is scheduled

	previous answers // of clients with a rule for stale answers
	sent     sentRequests
}

// enabled are the enabled rules by their On. It is immutable.
type enabled struct{ requests, answers []*entry }

// on returns the rules of one kind. The receiver may be nil.
func (e *enabled) on(on rule.On) []*entry {
	switch {
	case e == nil:
		return nil
	case on == rule.OnAnswer:
		return e.answers
	}
	return e.requests
}

// entry is a rule in use.
type entry struct {
	*rule.Rule
	id     uint64
	origin string
	text   string // equal for equal rules
	line   int    // in the config, or 0

	// Guarded by Gate.mu.
	disabled bool
	removed  bool
	problem  string // a warning about the rule, or ""
	hits     uint64
	left     int           // remaining hits; -1: no limit
	ended    chan struct{} // closed when the rule is disabled or removed
}

// New returns a gate without rules.
func New(o Options) *Gate {
	if o.Approvals == nil {
		o.Approvals, _ = state.OpenCallApprovals("") // in memory, without errors
	}
	if o.Mask == nil {
		o.Mask = func(text []byte, n int) []byte { return text[:min(len(text), n)] }
	}
	g := &Gate{o: o}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.publishLocked()
	return g
}

// IsActive reports whether any rule is enabled.
func (g *Gate) IsActive() bool { return g.enabled.Load() != nil }

// Exchange is a client's request, with its answer if there is one. Except for
// [Exchange.Events], it belongs to one goroutine.
type Exchange struct {
	Request *downstream.Request
	Server  string
	Name    string          // as sent by the client
	Target  registry.Target // zero for requests without one
	Profile string
	// Editable reports that Params of a verdict can be sent.
	Editable bool
	// Refresh waits until the connection for a call has listed its tools. It updates
	// Target and IsUnlisted. It is nil unless the target is a server's tool.
	Refresh func() error
	// IsUnlisted reports that this connection lists another definition than Target has.
	IsUnlisted bool
	// Pause stops the timers of the call around a nested request until resume; may be nil.
	Pause func() (resume func())

	Params []byte
	// Answer is the result, or an error object, for [Gate.Answer].
	Answer []byte
	Code   int // of the error

	// UserWait is the time that the request waited for the user.
	UserWait time.Duration

	refreshed bool   // the decision read the definition of Target
	judged    string // digest of that definition, or "" if IsUnlisted

	mu     sync.Mutex
	events []registry.RuleEvent // guarded by mu

	keep    *answerKey   // under which the answer is stored, or nil
	allowed *sentRequest // the rule that let the request pass, or nil
	// clientParams are the params of a stateless request before a user changed them.
	clientParams []byte
}

// Verdict is the decision about an exchange. The zero value sends it unchanged.
type Verdict struct {
	Params []byte // replace those of the request, if not nil
	// One of these answers the client, if not nil.
	Result []byte
	Error  *jsonrpc.Error
	Denied bool // Error is a refusal by a rule or the user
	// Truncate sends only the start of the answer.
	Truncate bool
	// Drop ends without an answer.
	Drop bool
	// Failure means that the server or its tool is missing.
	Failure error
	// Ended means that the request or its session ended while it waited.
	Ended bool
}

// Request applies the rules to a request. It blocks while the request waits.
func (g *Gate) Request(x *Exchange) Verdict {
	return g.apply(x, rule.OnRequest)
}

// SeesAnswer reports whether the answer of an exchange, which may be nil, must pass
// [Gate.Answer].
func (g *Gate) SeesAnswer(x *Exchange) bool {
	rules := g.enabled.Load()
	return rules != nil && (len(rules.answers) > 0 || x != nil && x.keep != nil)
}

// Answer applies the rules to an answer. It blocks while the answer waits.
func (g *Gate) Answer(x *Exchange) (v Verdict) {
	v = g.apply(x, rule.OnAnswer)
	if x.keep != nil && x.Code == 0 {
		g.previous.put(x.keep, x.Answer)
	}
	return v
}

func (g *Gate) apply(x *Exchange, on rule.On) Verdict {
	if len(g.enabled.Load().on(on)) == 0 {
		return Verdict{}
	}
	s, now := x.subject(on), time.Now()
	continued := g.sent.take(x, on)
	for {
		rules := g.enabled.Load()
		if on == rule.OnRequest && rules.readHints(s, now) {
			if err := x.refresh(); err != nil {
				return Verdict{Failure: err}
			}
			s = x.subject(on)
		}
		if v, ok := g.applyFirst(x, rules.on(on), s, now, continued); ok {
			return v
		}
	}
}

// readHints reports whether hints of the subject's tool decide. The receiver may be nil.
func (e *enabled) readHints(s *rule.Subject, now time.Time) bool {
	reads := func(e *entry) bool { return e.ReadsHints(s, now) }
	return e != nil && (slices.ContainsFunc(e.requests, reads) || slices.ContainsFunc(e.answers, reads))
}

// refresh replaces a definition of the cached list by that of the connection for the call.
func (x *Exchange) refresh() error {
	if x.refreshed || x.Refresh == nil {
		return nil
	}
	if err := x.Refresh(); err != nil {
		return err
	}
	x.refreshed, x.judged = true, x.definition()
	return nil
}

// definition returns the digest of the tool's definition, or "" if the connection for the
// call lists another one.
func (x *Exchange) definition() string {
	if x.IsUnlisted || x.Target.Entry == nil {
		return ""
	}
	return state.Digest(x.Target.Entry.Own())
}

// IsOutdated reports whether rules decided by a definition, and whether Target has another
// one now.
func (x *Exchange) IsOutdated() (judged, outdated bool) {
	return x.refreshed, x.refreshed && x.judged != x.definition()
}

// applyFirst applies the first rule that matches. It returns false if that rule was
// replaced meanwhile. Then the new rules apply, so that no request passes during an edit.
func (g *Gate) applyFirst(x *Exchange, rules []*entry, s *rule.Subject, now time.Time, continued *sentRequest) (_ Verdict, ok bool) {
	for _, e := range rules {
		if !e.Matches(s, now) {
			continue
		}
		if continued != nil && e == continued.rule {
			x.note(e, "sent: it continues a request that was sent")
			x.allowed = continued
			return Verdict{Params: continued.params}, true
		}
		var stored []byte
		if e.Then == rule.Stale {
			x.keep = x.answerKey()
			if stored = g.previous.get(x.keep); stored == nil {
				continue
			}
		}
		if e.P != nil && rand.Float64() >= *e.P { //nolint:gosec // a fault for tests
			continue
		}
		ended, ok := g.hit(e)
		if !ok {
			return Verdict{}, false
		}
		return g.act(x, e, ended, stored), true
	}
	return Verdict{}, true
}

// subject describes the exchange for rules. The listed name comes first, so that a word of
// a rule matches it in each spelling.
func (x *Exchange) subject(on rule.On) *rule.Subject {
	r, t := x.Request, &x.Target
	s := &rule.Subject{
		Record: registry.TrafficRecord{
			Time: r.Started(), Number: r.Number(), Session: r.Session().ID(), Client: r.ClientName(), Profile: x.Profile,
			Direction: registry.ToServer, Server: x.Server, Method: r.Method(), Status: registry.StatusInFlight,
		},
		Params: x.Params,
	}
	for _, name := range []string{t.Listed, x.Name, t.Name} {
		if name != "" && !slices.Contains(s.Names, name) {
			s.Names = append(s.Names, name)
		}
	}
	if len(s.Names) > 0 {
		s.Record.Name, s.Record.Original = s.Names[0], t.Name
	}
	s.Destructive, s.ReadOnly = x.hints()
	if on == rule.OnAnswer {
		s.Answer = x.Answer
		s.Record.Duration, s.Record.UserWait, s.Record.Size = time.Since(r.Started()), x.UserWait, int64(len(x.Answer))
		s.Record.Status, s.Record.Code = outcome(r.Method(), x.Answer, x.Code)
	}
	return s
}

// hit counts a match and reports whether the rule still applies. ended is closed when it
// no longer does.
func (g *Gate) hit(e *entry) (ended <-chan struct{}, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.left == 0 || e.disabled || e.removed {
		return nil, false
	}
	e.hits++
	if e.left > 0 {
		if e.left--; e.left == 0 {
			g.updateLocked()
		}
	}
	g.showLocked()
	return e.ended, true
}

// act applies a rule's action. stored is the previous answer for stale ones.
func (g *Gate) act(x *Exchange, e *entry, ended <-chan struct{}, stored []byte) Verdict {
	if e.Delay > 0 {
		if x.wait(e.Delay, nil, nil) {
			x.note(e, "ended while it was delayed")
			return Verdict{Ended: true}
		}
		x.note(e, "delayed %s", termtext.Duration(e.Delay))
	}
	switch e.Then {
	case rule.Stop:
		return g.stop(x, e)
	case rule.Freeze:
		return x.freeze(e, ended)
	case rule.Deny:
		x.note(e, "denied")
		return deny(x, cmp.Or(e.Text, deniedByRule))
	case rule.Answer:
		result := e.Result
		if result == nil {
			result = textResult(x, e.Text)
		}
		if result == nil {
			x.note(e, "failed: it has a text, but no result for %s", x.Request.Method())
			return fail(0, "A rule of Goblin answers with a text, but results of "+x.Request.Method()+" have none. Add a result to the rule.")
		}
		x.note(e, "answered")
		return Verdict{Result: result}
	case rule.Fail:
		x.note(e, "failed")
		return fail(e.Code, e.Text)
	case rule.Drop:
		x.note(e, "dropped")
		return Verdict{Drop: true}
	case rule.Truncate:
		x.note(e, "truncated")
		return Verdict{Truncate: true}
	case rule.Stale:
		x.note(e, "answered with the previous answer")
		return Verdict{Result: stored}
	}
	return Verdict{}
}

// freeze waits until the rule ends. It does not hold up the end of the session.
func (x *Exchange) freeze(e *entry, ended <-chan struct{}) Verdict {
	defer x.Request.Detach()()
	start, stopping := time.Now(), x.Request.Session().Stopping()
	over := x.wait(cmp.Or(e.Timeout, maxFreeze), ended, stopping)
	x.note(e, "frozen for %s", termtext.Duration(time.Since(start)))
	return Verdict{Ended: over || isClosed(stopping)}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wait waits for a time, or until a channel is closed. It returns true if the request
// ended.
func (x *Exchange) wait(d time.Duration, ended, stopping <-chan struct{}) (over bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ended:
	case <-stopping:
	case <-x.Request.Context().Done():
	}
	return x.Request.Context().Err() != nil
}

// maxEvents limits the steps of a request.
const maxEvents = 32

func (x *Exchange) note(e *entry, format string, args ...any) {
	x.add(e, fmt.Sprintf(format, args...), false)
}

func (x *Exchange) add(e *entry, text string, quotes bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.events) < maxEvents {
		x.events = append(x.events, registry.RuleEvent{Time: time.Now(), Rule: e.id, Text: text, Quotes: quotes})
	}
}

// Events returns the steps of rules until now. It is safe for concurrent use.
func (x *Exchange) Events() []registry.RuleEvent {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.events)
}

// method of the requests that approvals and changes apply to, with the kind of its target.
var approvable = map[string]string{"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}

func equalJSON(a, b []byte) bool {
	return string(rawjson.AppendCanonical(nil, a)) == string(rawjson.AppendCanonical(nil, b))
}
