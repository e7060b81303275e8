package search

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"goblin/registry"
)

// Index finds entries of a registry's catalog. Make one with [New]. Its
// methods may be called from any goroutine.
type Index struct {
	registry *registry.Registry
	state    atomic.Pointer[state]
	writer   chan struct{} // taken while the next state is made
	now      func() time.Time
	list     int // most bytes of the index of a list
	burst    int // bytes of a list that are read at once
	// budgets limits reads of lists that were read lately; writer guards it.
	budgets map[listKey]*rate.Limiter
	views   views
}

// state is the index of one snapshot. It is immutable.
type state struct {
	snapshot *registry.Snapshot
	sources  []*source // of the snapshot's parts
	due      time.Time // when lists may be read that were not; zero: none was left
}

// current reports whether there is nothing to read for a snapshot.
func (s *state) current(of *registry.Snapshot, now time.Time) bool {
	return s.snapshot == of && (s.due.IsZero() || now.Before(s.due))
}

// source is the index of one part: of its entries when the list was read last.
type source struct {
	*segment // nil: not read yet
	part     registry.Part
	late     bool    // the part has changed since
	at       []int32 // of one that is late, per document: number of the entry, -1 when it is gone
}

// New returns an index of a registry's catalog. The first query, or Run,
// reads it.
func New(reg *registry.Registry) *Index {
	x := &Index{registry: reg, writer: make(chan struct{}, 1), now: time.Now, list: maxList, burst: readBurst, budgets: make(map[listKey]*rate.Limiter)}
	x.state.Store(&state{})
	return x
}

// pause is how long changes may gather before Run reads them: a query that
// comes first does not wait for it.
const pause = 100 * time.Millisecond

// Run keeps the index close to the catalog until ctx ends, so that queries
// find little left to read. Queries see every change without it, too.
func (x *Index) Run(ctx context.Context) {
	changes := x.registry.Watch(ctx, registry.Tools, registry.Prompts, registry.Resources, registry.Templates, registry.Skills)
	for {
		old := x.state.Load()
		s, err := x.current(ctx)
		if err != nil {
			return
		}
		registry.FreeAfterList(s.read(old))
		var due <-chan time.Time
		if !s.due.IsZero() {
			due = time.After(s.due.Sub(x.now()))
		}
		select {
		case _, ok := <-changes:
			if !ok {
				return
			}
		case <-due:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// read is how many bytes of definitions were read for s that were not for old.
func (s *state) read(old *state) (size int) {
	known := make(map[*segment]bool, len(old.sources))
	for _, o := range old.sources {
		known[o.segment] = true
	}
	for _, n := range s.sources {
		if !known[n.segment] {
			for i := range n.part.Len() {
				size += n.part.At(i).JSONLen()
			}
		}
	}
	return size
}

// Bounds of the index, in bytes. A list that grows beyond them is found by what
// there was room for.
const (
	maxList = 24 << 20 // of one list
	maxAll  = 64 << 20 // of all
)

// room is how much a new list may take. Half of what is left leaves some for those
// that come later, however many they are.
func (x *Index) room(others int) int { return max(0, min(x.list, (maxAll-others)/2)) }

// Limits of reading a list that changes often, in bytes. readPerSecond costs a tenth of
// a core or less.
const (
	readBurst     = 32 << 20
	readPerSecond = 512 << 10
)

// listKey names a list.
type listKey struct {
	server string
	kind   registry.Kind
}

func keyOf(p registry.Part) listKey { return listKey{p.Server(), p.Kind()} }

// current returns the index of the catalog as it stands, after reading what
// changed. It fails only when ctx ends first.
func (x *Index) current(ctx context.Context) (*state, error) {
	if s := x.state.Load(); s.current(x.registry.Load(), x.now()) {
		return s, ctx.Err()
	}
	select {
	case x.writer <- struct{}{}:
		defer func() { <-x.writer }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	old, now := x.state.Load(), x.now()
	snapshot := x.registry.Load()
	if old.current(snapshot, now) {
		return old, nil
	}
	known := make(map[listKey]*source, len(old.sources))
	for _, s := range old.sources {
		known[keyOf(s.part)] = s
	}
	size := 0
	for p := range snapshot.Parts() {
		if s := known[keyOf(p)]; s != nil {
			size += s.size()
		}
	}
	s := &state{snapshot: snapshot}
	for p := range snapshot.Parts() {
		key := keyOf(p)
		before := known[key]
		budget := x.budgets[key]
		if budget == nil {
			budget = rate.NewLimiter(readPerSecond, x.burst)
		}
		tokens := budget.TokensAt(now)
		next, err := before.update(ctx, p, tokens > 0, x.room(size-before.size()))
		if err != nil {
			return nil, err
		}
		size += next.size() - before.size()
		if next != before && !next.late {
			budget.ReserveN(now, min(next.read, x.burst)) // may leave less than no tokens
			x.budgets[key] = budget
			x.tell(before, next)
		}
		if next.late {
			due := now.Add(time.Second + time.Duration(-tokens/readPerSecond*float64(time.Second)))
			if s.due.IsZero() || due.Before(s.due) {
				s.due = due
			}
		}
		s.sources = append(s.sources, next)
	}
	maps.DeleteFunc(x.budgets, func(_ listKey, b *rate.Limiter) bool { return b.TokensAt(now) >= float64(x.burst) })
	x.state.Store(s)
	return s, nil
}

// tell says once of a list that there is no room for all of it.
func (x *Index) tell(before, next *source) {
	n := next.partly
	if n == 0 || before != nil && before.segment != nil && before.partly > 0 {
		return
	}
	x.registry.Logs().Append(registry.LogRecord{
		Time: time.Now(), Server: next.part.Server(), Level: slog.LevelWarn, Source: registry.SourceGoblin,
		Text: fmt.Sprintf("search: the list of %ss has too much text: %d of %d are found by their names only, or not at all",
			next.part.Kind(), n, next.part.Len()),
	})
}

// size is how many bytes the index of a list takes; of nil none.
func (s *source) size() int {
	if s == nil || s.segment == nil {
		return 0
	}
	return s.segment.size() + 4*len(s.at)
}

// update returns the index of a list as it is now, in so many bytes; s is that of
// the list before, or nil. Without leave to read, what came is not found yet.
func (s *source) update(ctx context.Context, p registry.Part, leave bool, room int) (*source, error) {
	switch {
	case s != nil && s.part == p && (!s.late || !leave):
		return s, nil
	case leave:
		all, err := newSegment(ctx, p, room)
		return &source{segment: all, part: p}, err
	case s == nil || s.segment == nil:
		return &source{part: p, late: true}, nil
	}
	return s.follow(p), nil
}

// follow is the index of a list that was not read since it changed: what differs
// is gone from it.
func (s *source) follow(p registry.Part) *source {
	to := &source{segment: s.segment, part: p, late: true, at: make([]int32, s.docs)}
	next := 0 // entry of p
	for doc := range to.at {
		to.at[doc] = -1
		i := s.entry(doc)
		if i < 0 {
			continue
		}
		e := s.part.At(i)
		for next < p.Len() && p.At(next).Listed < e.Listed {
			next++
		}
		if next < p.Len() && equal(e, p.At(next)) {
			to.at[doc] = int32(next)
			next++
		}
	}
	return to
}

// equal reports whether two entries of one server and kind are found by the
// same words.
func equal(a, b *registry.Entry) bool {
	return a.Listed == b.Listed && a.Name == b.Name && bytes.Equal(a.JSON(), b.JSON())
}

// entry returns the number of a document's entry in the part, -1 when it is
// gone.
func (s *source) entry(doc int) int {
	if s.at == nil {
		return doc
	}
	return int(s.at[doc])
}
