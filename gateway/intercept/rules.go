package intercept

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/rule"
)

var origins = []string{registry.RuleFromUI, registry.RuleFromFlag, registry.RuleFromConfig}

// Set replaces the rules of an origin. Unchanged rules keep their hits and
// state. Requests that a removed rule stopped keep waiting, with its timeout and default.
func (g *Gate) Set(origin string, rules []*rule.Rule) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var kept, before []*entry
	for _, e := range g.rules {
		if e.origin == origin {
			before = append(before, e)
		} else {
			kept = append(kept, e)
		}
	}
	for _, r := range rules {
		text := r.String()
		i := slices.IndexFunc(before, func(e *entry) bool { return e.text == text })
		if i < 0 {
			kept = append(kept, g.newEntryLocked(origin, r))
			continue
		}
		before[i].line = r.Line
		kept, before = append(kept, before[i]), slices.Delete(before, i, i+1)
	}
	for _, e := range before {
		e.removeLocked()
	}
	slices.SortStableFunc(kept, func(a, b *entry) int { return slices.Index(origins, a.origin) - slices.Index(origins, b.origin) })
	g.rules = kept
	g.updateLocked()
}

func (g *Gate) newEntryLocked(origin string, r *rule.Rule) *entry {
	g.ids++
	e := &entry{Rule: r, id: g.ids, origin: origin, text: r.String(), line: r.Line, left: -1, ended: make(chan struct{})}
	if r.Count != nil {
		e.left = *r.Count
	}
	return e
}

// endLocked lets the requests that the rule froze continue.
func (e *entry) endLocked() {
	if !isClosed(e.ended) {
		close(e.ended)
	}
}

func (e *entry) removeLocked() {
	e.removed = true
	e.endLocked()
}

// Add adds a rule of the UI before all others and returns its id.
func (g *Gate) Add(r *rule.Rule) (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	own := 0
	for _, e := range g.rules {
		if e.origin == registry.RuleFromUI {
			own++
		}
	}
	if own >= maxRules {
		return 0, fmt.Errorf("there are %d rules already; remove one first", own)
	}
	e := g.newEntryLocked(registry.RuleFromUI, r)
	g.rules = slices.Insert(g.rules, 0, e)
	g.updateLocked()
	return e.id, nil
}

// Change replaces a rule of the UI at its place, without hits.
func (g *Gate) Change(id uint64, r *rule.Rule) error {
	return g.change(id, func(e *entry, i int) error {
		if e.origin != registry.RuleFromUI {
			return fmt.Errorf("this rule is from %s; change it there, or disable it", origin(e))
		}
		e.removeLocked()
		next := g.newEntryLocked(e.origin, r)
		next.id = e.id
		g.rules[i] = next
		return nil
	})
}

// SetEnabled enables or disables a rule until the gate's end. A rule without remaining
// hits starts counting again.
func (g *Gate) SetEnabled(id uint64, on bool) error {
	return g.change(id, func(e *entry, _ int) error {
		e.disabled = !on
		switch {
		case !on:
			e.endLocked()
			return nil
		case isClosed(e.ended):
			e.ended = make(chan struct{})
		}
		if e.left == 0 {
			e.left = *e.Count
		}
		return nil
	})
}

// Remove removes a rule of the UI.
func (g *Gate) Remove(id uint64) error {
	return g.change(id, func(e *entry, i int) error {
		if e.origin != registry.RuleFromUI {
			return fmt.Errorf("this rule is from %s; remove it there, or disable it", origin(e))
		}
		e.removeLocked()
		g.rules = slices.Delete(slices.Clone(g.rules), i, i+1)
		return nil
	})
}

func origin(e *entry) string {
	if e.line > 0 {
		return fmt.Sprintf("line %d of the config", e.line)
	}
	return "the " + e.origin
}

func (g *Gate) change(id uint64, do func(e *entry, i int) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.rules, func(e *entry) bool { return e.id == id })
	if i < 0 {
		return fmt.Errorf("there is no rule %d", id)
	}
	if err := do(g.rules[i], i); err != nil {
		return err
	}
	g.updateLocked()
	return nil
}

// updateLocked publishes the enabled rules.
func (g *Gate) updateLocked() {
	on := &enabled{}
	for _, e := range g.rules {
		switch {
		case e.disabled || e.left == 0:
		case e.On == rule.OnAnswer:
			on.answers = append(on.answers, e)
		default:
			on.requests = append(on.requests, e)
		}
	}
	if len(on.requests)+len(on.answers) == 0 {
		on = nil
	}
	g.enabled.Store(on)
	isStale := func(e *entry) bool { return e.Then == rule.Stale }
	if on == nil || !slices.ContainsFunc(on.requests, isStale) && !slices.ContainsFunc(on.answers, isStale) {
		g.previous.clear()
	}
	g.reviewLocked()
	g.publishLocked()
}

// showInterval is the minimum time between publications of hits and stops.
const showInterval = 50 * time.Millisecond

// showLocked publishes the state now, or soon if it was just published.
func (g *Gate) showLocked() {
	if g.showTimer {
		return
	}
	wait := showInterval - time.Since(g.shown)
	if wait <= 0 {
		g.publishLocked()
		return
	}
	g.showTimer = true
	time.AfterFunc(wait, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.showTimer = false
		g.publishLocked()
	})
}

// showStopsLocked publishes the state without a delay if there are few stops, since users
// wait for them.
func (g *Gate) showStopsLocked() {
	const few = 32
	if len(g.stops) <= few {
		g.publishLocked()
	} else {
		g.showLocked()
	}
}

// publishLocked publishes the state for the UI.
func (g *Gate) publishLocked() {
	g.shown = time.Now()
	s := &registry.RuleState{
		Rules: make([]registry.RuleEntry, 0, len(g.rules)), Stopped: make([]registry.StoppedRequest, 0, len(g.stops)),
		Approvals: slices.Concat(g.o.Approvals.All(), g.approvals),
	}
	for _, e := range g.rules {
		s.Rules = append(s.Rules, registry.RuleEntry{
			ID: e.id, Origin: e.origin, Line: e.line, Text: e.text, When: e.When, On: string(e.On), Then: e.Describe(),
			Enabled: !e.disabled, Hits: e.hits, Left: e.left, Problem: e.problem,
		})
	}
	for _, one := range g.stops {
		s.Stopped = append(s.Stopped, one.StoppedRequest)
	}
	g.o.Registry.SetRules(s)
}

// SetNames sets the names that rules can refer to, for [registry.RuleEntry.Problem].
func (g *Gate) SetNames(names rule.Names) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = names
	g.updateLocked()
}

// reviewLocked finds rules that never apply, or that apply to everything.
func (g *Gate) reviewLocked() {
	used := make([]*rule.Rule, len(g.rules))
	for i, e := range g.rules {
		if !e.disabled && e.left != 0 {
			used[i] = e.Rule
		}
	}
	for i, text := range rule.Review(used, g.names, func(i int) string { return fmt.Sprintf("rule %d", g.rules[i].id) }) {
		g.rules[i].problem = strings.ReplaceAll(text, "\n", "; ")
	}
}
