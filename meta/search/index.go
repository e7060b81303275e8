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

// Index finds entries of a registry's catalog. Create it with [New]. It is safe for
// concurrent use.
type Index struct {
	registry    *registry.Registry
	state       atomic.Pointer[state]
	writer      chan struct{} // held while building the next state
	now         func() time.Time
	maxListSize int // bytes for one list
	readBurst   int // bytes of a list read at once
	maxCompared int // terms compared with misspelled words
	// budgets limits repeated reads of lists. It is guarded by writer.
	budgets map[listKey]*rate.Limiter
	views   viewCache
}

// state is the immutable index of one snapshot.
type state struct {
	snapshot *registry.Snapshot
	sources  []*source // of the snapshot's parts
	due      time.Time // when to read delayed lists, or zero
}

func (s *state) isCurrent(of *registry.Snapshot, now time.Time) bool {
	return s.snapshot == of && (s.due.IsZero() || now.Before(s.due))
}

// source is the index of one part, with its entries when the list was last read.
type source struct {
	*segment     // nil: not read yet
	part         registry.Part
	stale        bool    // the part has changed since
	entryNumbers []int32 // if stale, by document: entry, or -1 if removed
}

// New returns an index of a registry's catalog. The first query, or Run, reads it.
func New(reg *registry.Registry) *Index {
	x := &Index{registry: reg, writer: make(chan struct{}, 1), now: time.Now, maxListSize: maxList, readBurst: readBurst, maxCompared: maxCompared, budgets: make(map[listKey]*rate.Limiter)}
	x.state.Store(&state{})
	return x
}

// gatherDelay is the time in which Run collects changes. Queries do not wait for it.
const gatherDelay = 100 * time.Millisecond

// Run keeps the index up to date until ctx is done, so that queries have little to read.
// Without it, queries still see every change.
func (x *Index) Run(ctx context.Context) {
	changes := x.registry.Watch(ctx, registry.Tools, registry.Prompts, registry.Resources, registry.Templates, registry.Skills)
	for {
		old := x.state.Load()
		s, err := x.current(ctx)
		if err != nil {
			return
		}
		registry.FreeAfterList(s.readSize(old))
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
		case <-time.After(gatherDelay):
		}
	}
}

func (s *state) readSize(old *state) (size int) {
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

// Limits of the index, in bytes. Larger lists are indexed in part.
const (
	maxList = 24 << 20 // of one list
	maxAll  = 64 << 20 // of all
)

// availableSize returns the bytes that a new list may use: half of the rest, to leave
// some for later lists.
func (x *Index) availableSize(others int) int { return max(0, min(x.maxListSize, (maxAll-others)/2)) }

// Limits of reading a list that changes often, in bytes. readPerSecond costs at most a
// tenth of a core.
const (
	readBurst     = 32 << 20
	readPerSecond = 512 << 10
)

type listKey struct {
	server string
	kind   registry.Kind
}

func listKeyOf(p registry.Part) listKey { return listKey{p.Server(), p.Kind()} }

// current returns the index of the current catalog, after reading changes. It fails only
// if ctx is done first.
func (x *Index) current(ctx context.Context) (*state, error) {
	if s := x.state.Load(); s.isCurrent(x.registry.Load(), x.now()) {
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
	if old.isCurrent(snapshot, now) {
		return old, nil
	}
	known := make(map[listKey]*source, len(old.sources))
	for _, s := range old.sources {
		known[listKeyOf(s.part)] = s
	}
	size := 0
	for p := range snapshot.Parts() {
		if s := known[listKeyOf(p)]; s != nil {
			size += s.size()
		}
	}
	s := &state{snapshot: snapshot}
	for p := range snapshot.Parts() {
		key := listKeyOf(p)
		before := known[key]
		budget := x.budgets[key]
		if budget == nil {
			budget = rate.NewLimiter(readPerSecond, x.readBurst)
		}
		tokens := budget.TokensAt(now)
		next, err := before.update(ctx, p, tokens > 0, x.availableSize(size-before.size()))
		if err != nil {
			return nil, err
		}
		size += next.size() - before.size()
		if next != before && !next.stale {
			budget.ReserveN(now, min(next.read, x.readBurst)) // the balance may become negative
			x.budgets[key] = budget
			x.logTruncated(before, next)
		}
		if next.stale {
			due := now.Add(time.Second + time.Duration(-tokens/readPerSecond*float64(time.Second)))
			if s.due.IsZero() || due.Before(s.due) {
				s.due = due
			}
		}
		s.sources = append(s.sources, next)
	}
	maps.DeleteFunc(x.budgets, func(_ listKey, b *rate.Limiter) bool { return b.TokensAt(now) >= float64(x.readBurst) })
	x.state.Store(s)
	return s, nil
}

// logTruncated logs once that the index of a list is incomplete.
func (x *Index) logTruncated(before, next *source) {
	n := next.partial
	if n == 0 || before != nil && before.segment != nil && before.partial > 0 {
		return
	}
	x.registry.Logs().Append(registry.LogRecord{
		Time: time.Now(), Server: next.part.Server(), Level: slog.LevelWarn, Source: registry.SourceGoblin,
		Text: fmt.Sprintf("search: too much text: %d of %d %ss are found only by name, or not at all",
			n, next.part.Len(), next.part.Kind()),
	})
}

func (s *source) size() int {
	if s == nil || s.segment == nil {
		return 0
	}
	return s.segment.size() + 4*len(s.entryNumbers)
}

// update returns the index of the list p in at most room bytes. s is the previous one, or
// nil. Without leave to read, new entries are missing.
func (s *source) update(ctx context.Context, p registry.Part, leave bool, room int) (*source, error) {
	switch {
	case s != nil && s.part == p && (!s.stale || !leave):
		return s, nil
	case leave:
		all, err := newSegment(ctx, p, room)
		return &source{segment: all, part: p}, err
	case s == nil || s.segment == nil:
		return &source{part: p, stale: true}, nil
	}
	return s.withoutRemoved(p), nil
}

// withoutRemoved returns the index of a changed list without reading it: removed and
// changed entries are dropped.
func (s *source) withoutRemoved(p registry.Part) *source {
	to := &source{segment: s.segment, part: p, stale: true, entryNumbers: make([]int32, s.docs)}
	next := 0 // entry of p
	for doc := range to.entryNumbers {
		to.entryNumbers[doc] = -1
		i := s.entry(doc)
		if i < 0 {
			continue
		}
		e := s.part.At(i)
		for next < p.Len() && p.At(next).Listed < e.Listed {
			next++
		}
		if next < p.Len() && sameWords(e, p.At(next)) {
			to.entryNumbers[doc] = int32(next)
			next++
		}
	}
	return to
}

func sameWords(a, b *registry.Entry) bool {
	return a.Listed == b.Listed && a.Name == b.Name && bytes.Equal(a.JSON(), b.JSON())
}

func (s *source) entry(doc int) int {
	if s.entryNumbers == nil {
		return doc
	}
	return int(s.entryNumbers[doc])
}
