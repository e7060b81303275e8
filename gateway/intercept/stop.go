package intercept

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"goblin/gateway/downstream"
	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/rule"
)

// maxStops limits the stopped requests. The default applies to further ones.
const maxStops = 1000

// maxChanged is the maximum size of params and results from the UI, in bytes.
const maxChanged = 8 << 20

// stop is a request that waits for the user.
type stop struct {
	registry.StoppedRequest
	rule       *entry
	kind       string // of the target, for approvals; "" if they are impossible
	target     registry.Target
	isUnlisted bool // as in Exchange
	hasSession bool
	outer      uint64        // number of the client's own request
	deciding   bool          // guarded by Gate.mu
	expired    bool          // time was up while deciding; guarded by Gate.mu
	decided    chan decision // capacity 1
}

// decision is the user's, or the reason for the default.
type decision struct {
	registry.Decision
	noUser   string // "" if a user decided
	byClient bool   // the client's user decided
}

// ErrDecided means that a stopped request was decided before, or ended.
var ErrDecided = errors.New("this request no longer waits")

// stop waits for the user's decision about an exchange.
func (g *Gate) stop(x *Exchange, e *entry) Verdict {
	if how := g.approval(x, e); how != "" {
		x.note(e, "sent: approved %s", how)
		return Verdict{}
	}
	question := g.question(x, e)
	s, why := g.addStop(x, e, question != nil)
	if s == nil {
		x.note(e, "stopped, but %s", why)
		return byDefault(x, e)
	}
	defer g.removeStop(s)
	defer x.Request.Detach()()
	defer downstream.NotifyUserWait(x.Request.Context(), "waiting for the user")()
	if x.Pause != nil {
		defer x.Pause()()
	}
	start := time.Now()
	defer func() { x.UserWait += time.Since(start) }()
	if question != nil {
		defer g.askClient(x, s, question)()
	}
	timer := time.NewTimer(time.Until(s.Until))
	defer timer.Stop()
	select {
	case d := <-s.decided:
		return g.decide(x, s, d)
	case <-timer.C:
	case <-x.Request.Session().Stopping():
		x.note(e, "the session closed")
		return Verdict{Ended: true}
	case <-x.Request.Context().Done():
		x.note(e, "the client no longer waits")
		return Verdict{Ended: true}
	}
	g.mu.Lock()
	deciding := s.deciding
	s.deciding, s.expired = true, true // later decisions fail
	g.mu.Unlock()
	if deciding { // a decision arrived just in time
		return g.decide(x, s, <-s.decided)
	}
	x.note(e, "time is up")
	return byDefault(x, e)
}

func byDefault(x *Exchange, e *entry) Verdict {
	if e.Default == rule.DefaultSend {
		x.note(e, "sent by default")
		x.allowed = &sentRequest{rule: e}
		return Verdict{}
	}
	x.note(e, "denied by default")
	return deny(x, cmp.Or(e.Text, notApproved))
}

// addStop returns nil and the reason if no user can decide.
func (g *Gate) addStop(x *Exchange, e *entry, asksClient bool) (s *stop, why string) {
	r := x.Request
	now := time.Now()
	s = &stop{rule: e, kind: approvable[r.Method()], target: x.Target, isUnlisted: x.IsUnlisted, hasSession: !r.Session().Stateless(), outer: r.Outer().Number(), decided: make(chan decision, 1), StoppedRequest: registry.StoppedRequest{
		Rule: e.id, When: e.When, On: string(e.On), Since: now, Until: now.Add(cmp.Or(e.Timeout, rule.DefaultTimeout)),
		Default: cmp.Or(e.Default, rule.DefaultDeny), AsksClient: asksClient,
		Client: r.ClientName(), Session: r.Session().ID(), Server: x.Server, Method: r.Method(), Name: cmp.Or(x.Target.Listed, x.Name), Number: r.Number(),
		Params: slices.Clone(x.Params), Editable: x.Editable && e.On == rule.OnRequest,
	}}
	if e.On == rule.OnAnswer {
		s.kind = ""
		s.Answer, s.IsError = slices.Clone(x.Answer), x.Code != 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case len(g.stops) >= maxStops:
		return nil, "too many requests wait already"
	case !asksClient && !g.o.UIOpen():
		return nil, "no UI is open"
	}
	x.note(e, "stopped")
	s.Events = x.Events()
	g.ids++
	s.ID = g.ids
	g.stops = append(g.stops, s)
	g.showStopsLocked()
	return s, ""
}

func (g *Gate) removeStop(s *stop) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stops = slices.DeleteFunc(g.stops, func(one *stop) bool { return one == s })
	g.showStopsLocked()
}

// EachStop calls f with each stopped request: the number of the client's own request, the
// server, and the wait so far. f must not call the gate.
func (g *Gate) EachStop(f func(number uint64, server string, waited time.Duration)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.stops {
		f(s.outer, s.Server, time.Since(s.Since))
	}
}

// Decide decides about a stopped request. The error explains an invalid decision or an
// approval that could not be saved, or is [ErrDecided].
func (g *Gate) Decide(id uint64, d registry.Decision) error {
	return g.submit(id, decision{Decision: d})
}

func (g *Gate) submit(id uint64, d decision) error {
	g.mu.Lock()
	i := slices.IndexFunc(g.stops, func(s *stop) bool { return s.ID == id })
	if i < 0 || g.stops[i].deciding {
		g.mu.Unlock()
		return ErrDecided
	}
	s := g.stops[i]
	err := s.check(&d.Decision, g.o.Depth)
	s.deciding = err == nil
	g.mu.Unlock()
	if err != nil {
		return err
	}
	if d.Remember != "" { // without the lock: it writes a file
		if err := g.remember(s, d.Remember); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			if s.deciding = s.expired; s.expired {
				s.decided <- decision{noUser: "time is up"}
			}
			return err
		}
	}
	s.decided <- d
	return nil
}

// check reports why a decision is invalid. It copies bodies and makes them one line.
func (s *stop) check(d *registry.Decision, depth int) error {
	if d.Remember != "" && (d.Action != registry.DecideSend || d.Params != nil || d.Result != nil) {
		return errors.New("only a request that is sent unchanged can be remembered")
	}
	switch d.Action {
	case registry.DecideSend:
	case registry.DecideAnswer:
		if d.Result == nil {
			return errors.New("the result is missing")
		}
		d.Params = nil
	case registry.DecideDeny, registry.DecideFail:
		d.Params, d.Result = nil, nil
		return nil
	default:
		return fmt.Errorf("unknown action %q; use send, deny, answer or fail", d.Action)
	}
	if d.Params != nil {
		if !s.Editable {
			return errors.New("the params of this request cannot be changed")
		}
		if err := s.checkParams(d.Params, depth); err != nil {
			return err
		}
		d.Params = rawjson.OneLine(slices.Clone(d.Params))
	}
	if d.Result != nil {
		if d.Action == registry.DecideSend && s.Answer == nil {
			return errors.New("this request has no answer yet; choose answer")
		}
		if err := checkObject("the result", d.Result, rawjson.Result(s.Method), depth); err != nil {
			return err
		}
		d.Result = rawjson.OneLine(slices.Clone(d.Result))
	}
	return nil
}

func checkObject(what string, text []byte, members *rawjson.KeyTree, depth int) error {
	valid := rawjson.Checker{Depth: depth}
	switch err := valid.End(text); {
	case len(text) > maxChanged:
		return fmt.Errorf("%s must have at most %d MiB", what, maxChanged>>20)
	case err != nil:
		return fmt.Errorf("%s must be valid JSON: %w", what, err)
	case !rawjson.IsObject(text):
		return fmt.Errorf("%s must be a JSON object", what)
	}
	if err := members.Check(text); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// checkParams permits changed arguments. The target was chosen by the other members.
func (s *stop) checkParams(params []byte, depth int) error {
	if err := checkObject("params", params, rawjson.Params(s.Method), depth); err != nil {
		return err
	}
	const member = "arguments"
	if args := rawjson.Get(params, member); args != nil && !rawjson.IsObject(args) {
		return errors.New("arguments must be a JSON object")
	}
	if !equalJSON(rawjson.RemoveMember(params, member), rawjson.RemoveMember(s.Params, member)) {
		return errors.New("only the arguments can be changed; keep the name and all other members")
	}
	return nil
}

// decide applies a decision.
func (g *Gate) decide(x *Exchange, s *stop, d decision) Verdict {
	by := "by the user"
	switch {
	case d.noUser != "":
		x.note(s.rule, "%s", d.noUser)
		return byDefault(x, s.rule)
	case d.byClient:
		by = "by the client's user"
	}
	switch d.Action {
	case registry.DecideDeny:
		x.note(s.rule, "denied %s", by)
		return deny(x, cmp.Or(d.Text, s.rule.Text, deniedByUser))
	case registry.DecideFail:
		x.note(s.rule, "failed %s", by)
		return fail(d.Code, d.Text)
	case registry.DecideAnswer:
		x.note(s.rule, "answered %s", by)
		return Verdict{Result: d.Result}
	}
	switch {
	case d.Params != nil:
		x.note(s.rule, "changed and sent %s", by)
		g.noteChanges(x, s.rule, rawjson.Get(s.Params, "arguments"), rawjson.Get(d.Params, "arguments"))
	case d.Result != nil:
		x.note(s.rule, "changed %s", by)
		g.noteChanges(x, s.rule, s.Answer, d.Result)
	case d.Remember != "":
		x.note(s.rule, "sent and approved for later calls %s", by)
	default:
		x.note(s.rule, "sent %s", by)
	}
	if s.On == string(rule.OnRequest) {
		x.allowed = &sentRequest{rule: s.rule, params: d.Params}
	}
	return Verdict{Params: d.Params, Result: d.Result}
}

// Limits of a recorded change.
const (
	maxNotedMembers = 8
	maxNotedValue   = 160 // bytes
)

// noteChanges records the changed members of an object, with secrets masked.
func (g *Gate) noteChanges(x *Exchange, e *entry, before, after []byte) {
	text := func(v []byte) string {
		if v == nil {
			return "nothing"
		}
		head := string(g.o.Mask(v, maxNotedValue))
		if len(v) > maxNotedValue {
			head += "…"
		}
		return head
	}
	noted, more := 0, 0
	compare := func(name string, was, is []byte) {
		switch {
		case was != nil && is != nil && equalJSON(was, is):
		case noted == maxNotedMembers:
			more++
		default:
			noted++
			x.add(e, fmt.Sprintf("%s: %s → %s", text([]byte(name)), text(was), text(is)), true)
		}
	}
	for k, v := range rawjson.Members(before) {
		compare(string(k.Name()), v, rawjson.Get(after, string(k.Name())))
	}
	for k, v := range rawjson.Members(after) {
		if rawjson.Get(before, string(k.Name())) == nil {
			compare(string(k.Name()), nil, v)
		}
	}
	if more > 0 {
		x.note(e, "and %d more", more)
	}
}

// UIClosed applies the defaults after the last UI closed, except to requests whose client
// is asked.
func (g *Gate) UIClosed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.applyDefaultsLocked("the UI closed")
}

// clientFailed leaves the decision about s to UIs.
func (g *Gate) clientFailed(s *stop) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s.AsksClient = false
	g.applyDefaultsLocked("the client did not answer")
	g.showStopsLocked()
}

// applyDefaultsLocked decides about the requests that no user can decide about.
func (g *Gate) applyDefaultsLocked(reason string) {
	if g.o.UIOpen() {
		return
	}
	for _, s := range g.stops {
		if !s.deciding && !s.AsksClient {
			s.deciding = true
			s.decided <- decision{noUser: reason}
		}
	}
}

// SessionClosed removes the approvals and stored answers of a session.
func (g *Gate) SessionClosed(session string) {
	g.previous.drop(session)
	g.mu.Lock()
	defer g.mu.Unlock()
	n := len(g.approvals)
	g.approvals = slices.DeleteFunc(g.approvals, func(a registry.CallApproval) bool { return a.Session == session })
	if len(g.approvals) < n {
		g.showLocked()
	}
}
