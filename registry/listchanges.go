package registry

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"goblin/registry/cache"
	"goblin/registry/definition"
)

// Limits of [ListChangeJournal].
const (
	maxListChanges     = 2_000
	maxListChangeBytes = 8 << 20 // of all definitions
	// maxDefinition is the largest stored definition, in bytes.
	maxDefinition = 64 << 10
	// A server may cause changeBurst changes at once, and one more per changePause.
	changeBurst = 100
	changePause = 3 * time.Second
)

// Values of ListChange.Op.
const (
	OpAdded   = "added"
	OpRemoved = "removed"
	OpChanged = "changed"
)

// ListChange is a change of one definition by its server. All texts are untrusted.
type ListChange struct {
	Seq    uint64 // set by Append
	Time   time.Time
	Server string
	Kind   Kind
	Name   string // the server's own; "" in a summary
	Op     string
	// What describes a changed definition, see [definition.Meaning].
	What []string
	// Before and After are the server's own definitions. They are nil if there is none,
	// or if it is larger than 64 KiB.
	Before, After []byte
	// Count is the number of changes in a summary, otherwise 0. A server that changes
	// definitions faster than the journal's limit gets one summary per list.
	Count int
}

// ListChangeJournal keeps up to 2,000 changes with at most 8 MiB of definitions. When it
// is full, the server with the most changes loses its oldest one.
type ListChangeJournal struct {
	mu      sync.Mutex
	ring    cache.Ring[ListChange]
	bytes   int
	servers map[string]*listHistory
	feed    *feed
}

// listHistory is the state of one server between two lists.
type listHistory struct {
	mu       sync.Mutex          // held while two lists are compared
	known    [Kinds]bool         // a later list is compared with the current one
	refused  [Kinds][]Definition // valid but not admitted, sorted by name
	tokens   float64             // changes that may be recorded
	refilled time.Time
}

// ListChanges returns the journal of changed definitions. The first list of a server is
// no change, unless cached lists of an earlier process differ from it. Filters and
// overrides of the config, and approvals, cause no changes.
func (r *Registry) ListChanges() *ListChangeJournal { return &r.changes }

// Append adds a change and returns its number.
func (j *ListChangeJournal) Append(c ListChange) uint64 {
	c.Server, c.Name = cutString(c.Server, maxField), cutString(c.Name, maxField)
	j.mu.Lock()
	size := len(c.Before) + len(c.After) + len(c.Name)
	for j.bytes+size > maxListChangeBytes && j.bytes > 0 {
		j.ring.EvictLargest(j.subtractLocked)
	}
	j.bytes += size
	kept, seq := j.ring.Put(c.Server, size, j.subtractLocked)
	*kept = c
	kept.Seq = seq
	j.mu.Unlock()
	j.feed.publish(ListChanged)
	return seq
}

func (j *ListChangeJournal) subtractLocked(c *ListChange) int {
	size := len(c.Before) + len(c.After) + len(c.Name)
	j.bytes -= size
	return size
}

// Window returns at most n changes (all if n < 0), starting at number from. If that was
// evicted, it starts at the oldest one left. Callers must not modify definitions.
func (j *ListChangeJournal) Window(from uint64, n int) []ListChange {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]ListChange, 0, j.ring.Available(from, n))
	j.ring.Window(from, n, func(c *ListChange) { out = append(out, *c) })
	return out
}

// Stats returns the range and the losses of changes.
func (j *ListChangeJournal) Stats() JournalStats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ring.Stats()
}

func (j *ListChangeJournal) history(server string) *listHistory {
	j.mu.Lock()
	defer j.mu.Unlock()
	h := j.servers[server]
	if h == nil {
		if j.servers == nil {
			j.servers = make(map[string]*listHistory)
		}
		h = &listHistory{tokens: changeBurst}
		j.servers[server] = h
	}
	return h
}

func (j *ListChangeJournal) forget(server string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.servers, server)
}

// ListsComplete declares that all lists of a server were set, also the empty ones. Later
// lists are compared with them.
func (r *Registry) ListsComplete(server string) {
	h := r.changes.history(server)
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range h.known {
		h.known[k] = true
	}
}

// SetFirstList is [Registry.SetList] for a list that is not compared with the previous
// one.
func (r *Registry) SetFirstList(server string, kind Kind, items [][]byte) []Problem {
	h := r.changes.history(server)
	h.mu.Lock()
	h.known[kind] = false
	h.mu.Unlock()
	return r.SetList(server, kind, items)
}

// restartHistory makes the next lists of a server the first ones.
func (r *Registry) restartHistory(server string) {
	h := r.changes.history(server)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known, h.refused = [Kinds]bool{}, [Kinds][]Definition{}
}

// compareLists records the changes from one list to the next. refused are the valid
// definitions of the new list that are not listed.
func (r *Registry) compareLists(server string, kind Kind, was, is *run, refused []Definition) (changed []ListChange) {
	h := r.changes.history(server)
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.refused[kind]
	h.refused[kind] = refused
	if !h.known[kind] {
		h.known[kind] = true
		return nil
	}
	c := comparison{kind: kind}
	c.runs(was, is)
	c.refused(before, refused)
	now := r.opt.Now()
	room := h.room(now)
	changed, rest := c.changes(room)
	h.tokens -= float64(len(changed))
	for i := range changed {
		changed[i].Server, changed[i].Kind, changed[i].Time = server, kind, now
	}
	if rest.Count > 0 {
		rest.Server, rest.Kind, rest.Time = server, kind, now
		changed = append(changed, rest)
	}
	for _, one := range changed {
		r.changes.Append(one)
	}
	return changed
}

func (h *listHistory) room(now time.Time) int {
	if passed := now.Sub(h.refilled); passed > 0 {
		h.tokens = min(h.tokens+float64(passed)/float64(changePause), changeBurst)
	}
	h.refilled = now
	return int(h.tokens)
}

// comparison pairs the definitions of two lists by name.
type comparison struct {
	kind Kind
	gone map[string][]byte // only in the old list
	new  map[string][]byte // only in the new list
	both []pair            // with different bytes
}

type pair struct {
	name          string
	before, after []byte
}

// runs pairs entries by their listed names, which differ from pairs by name only after a
// change of overrides.
func (c *comparison) runs(was, is *run) {
	c.gone, c.new = make(map[string][]byte), make(map[string][]byte)
	if was == is {
		return
	}
	var a, b []Entry
	if was != nil {
		a = was.entries
	}
	if is != nil {
		b = is.entries
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && b[0].Listed < a[0].Listed:
			c.add(&b[0])
			b = b[1:]
		case len(b) == 0 || a[0].Listed < b[0].Listed:
			c.remove(&a[0])
			a = a[1:]
		case a[0].Name != b[0].Name:
			c.remove(&a[0])
			c.add(&b[0])
			a, b = a[1:], b[1:]
		default:
			if a[0].Original != nil && b[0].Original != nil && !bytes.Equal(a[0].Original, b[0].Original) ||
				(a[0].Original == nil || b[0].Original == nil) && !bytes.Equal(a[0].json, b[0].json) {
				c.both = append(c.both, pair{a[0].Name, a[0].Own(), b[0].Own()})
			}
			a, b = a[1:], b[1:]
		}
	}
}

func (c *comparison) add(e *Entry)    { c.new[e.Name] = e.Own() }
func (c *comparison) remove(e *Entry) { c.gone[e.Name] = e.Own() }

func (c *comparison) refused(before, after []Definition) {
	for _, d := range before {
		c.gone[d.Name] = d.JSON
	}
	for _, d := range after {
		c.new[d.Name] = d.JSON
	}
	for name, json := range c.gone {
		if now, ok := c.new[name]; ok {
			c.both = append(c.both, pair{name, json, now})
			delete(c.gone, name)
			delete(c.new, name)
		}
	}
}

// changes returns at most room changes by name, and a summary of the others.
func (c *comparison) changes(room int) (all []ListChange, rest ListChange) {
	pairs := c.both
	for name, json := range c.gone {
		pairs = append(pairs, pair{name, json, nil})
	}
	for name, json := range c.new {
		pairs = append(pairs, pair{name, nil, json})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	counts := make(map[string]int)
	for _, p := range pairs {
		op := p.op()
		if len(all) >= room {
			if !bytes.Equal(p.before, p.after) {
				rest.Count++
				counts[op]++
			}
			continue
		}
		one := ListChange{Name: strings.Clone(p.name), Op: op, Before: storedDefinition(p.before), After: storedDefinition(p.after)}
		if op == OpChanged {
			if one.What = definition.Meaning(c.kind.String(), p.before, p.after); one.What == nil {
				continue // only spelled differently
			}
		}
		all = append(all, one)
	}
	if rest.Count > 0 {
		rest.Op, rest.What = OpChanged, []string{summary(rest.Count, counts)}
	}
	return all, rest
}

func (p *pair) op() string {
	switch {
	case p.before == nil:
		return OpAdded
	case p.after == nil:
		return OpRemoved
	}
	return OpChanged
}

func summary(n int, counts map[string]int) string {
	var parts []string
	for _, op := range []string{OpAdded, OpRemoved, OpChanged} {
		if counts[op] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[op], op))
		}
	}
	return fmt.Sprintf("%s: %s", count(uint64(n), "further change"), strings.Join(parts, ", "))
}

func storedDefinition(json []byte) []byte {
	if len(json) > maxDefinition {
		return nil
	}
	return bytes.Clone(json)
}

// refusedDefinitions copies the definitions that are not admitted.
func refusedDefinitions(all []Definition, admitted []bool) (refused []Definition) {
	for i, yes := range admitted {
		if !yes {
			refused = append(refused, Definition{strings.Clone(all[i].Name), bytes.Clone(all[i].JSON)})
		}
	}
	return refused
}
