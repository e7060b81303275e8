package search

import (
	"bytes"
	"context"
	"sync/atomic"
	"time"

	"goblin/registry"
)

// Index finds entries of a registry's catalog. Make one with [New]. Its
// methods may be called from any goroutine.
type Index struct {
	registry *registry.Registry
	state    atomic.Pointer[state]
	writer   chan struct{} // taken by who makes the next state
	short    int           // entries of a list that is read again at every change
}

// state is the index of one snapshot. It is immutable.
type state struct {
	snapshot *registry.Snapshot
	sources  []*source // of the snapshot's parts
}

// source is the index of one part: of all entries at the time of base, and of
// those that came or changed since.
type source struct {
	part  registry.Part
	base  placed
	delta placed
}

// placed is a segment, and where its documents are in the part as it is now.
type placed struct {
	*segment         // nil: no documents
	at       []int32 // per document: number of the entry, -1 when it is gone; nil: the same
	gone     int     // documents that are gone
}

// New returns an index of a registry's catalog. The first query, or Run,
// reads it.
func New(reg *registry.Registry) *Index {
	x := &Index{registry: reg, writer: make(chan struct{}, 1), short: 1000}
	x.state.Store(&state{})
	return x
}

// pause is how long changes may gather before Run reads them: a query that
// comes first does not wait for it.
const pause = 100 * time.Millisecond

// Run keeps the index close to the catalog until ctx ends, so that queries
// find little left to read. Queries see every change without it, too.
func (x *Index) Run(ctx context.Context) {
	changes := x.registry.Watch(ctx, registry.Tools, registry.Prompts, registry.Resources, registry.Templates)
	for {
		old := x.state.Load()
		s, err := x.current(ctx)
		if err != nil {
			return
		}
		registry.Tidy(s.read(old))
		if _, ok := <-changes; !ok {
			return
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
		known[o.base.segment] = true
	}
	for _, n := range s.sources {
		if !known[n.base.segment] {
			for i := range n.part.Len() {
				size += len(n.part.At(i).JSON)
			}
		}
	}
	return size
}

// current returns the index of the catalog as it stands, after reading what
// changed. It fails only when ctx ends while another is reading.
func (x *Index) current(ctx context.Context) (*state, error) {
	if s := x.state.Load(); s.snapshot == x.registry.Load() {
		return s, ctx.Err()
	}
	select {
	case x.writer <- struct{}{}:
		defer func() { <-x.writer }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	old := x.state.Load()
	snapshot := x.registry.Load()
	if old.snapshot == snapshot {
		return old, nil
	}
	type list struct {
		server string
		kind   registry.Kind
	}
	known := make(map[list]*source, len(old.sources))
	for _, s := range old.sources {
		known[list{s.part.Server(), s.part.Kind()}] = s
	}
	s := &state{snapshot: snapshot}
	for p := range snapshot.Parts() {
		s.sources = append(s.sources, known[list{p.Server(), p.Kind()}].update(p, x.short))
	}
	x.state.Store(s)
	return s, nil
}

// deltas: a list is read again when a part of it, one in so many entries, is
// not in its base any more.
const deltas = 4

// update returns the index of a list as it is now, from what s, or nil, knew
// of it. Short lists are read again; of longer ones, only what differs.
func (s *source) update(p registry.Part, short int) *source {
	switch {
	case s == nil:
	case s.part == p:
		return s
	case p.Len() > short:
		if next := s.differ(p); next != nil {
			return next
		}
	}
	return &source{part: p, base: placed{segment: newSegment(p, nil)}}
}

// differ reads only entries that the base does not have, or returns nil when
// they are too many.
func (s *source) differ(p registry.Part) *source {
	moved, most := survivors(s.part, p), p.Len()/deltas
	base := placed{segment: s.base.segment, at: make([]int32, s.base.docs)}
	known := make([]bool, p.Len())
	for doc := range base.at {
		base.at[doc] = -1
		if i := s.base.entry(doc); i >= 0 && moved[i] >= 0 {
			base.at[doc] = moved[i]
			known[moved[i]] = true
		} else {
			base.gone++
		}
	}
	if base.gone > most || p.Len()-(base.docs-base.gone) > most {
		return nil
	}
	var fresh []int32
	for i, ok := range known {
		if !ok {
			fresh = append(fresh, int32(i))
		}
	}
	next := &source{part: p, base: base}
	if fresh != nil {
		next.delta = placed{segment: newSegment(p, fresh), at: fresh}
	}
	return next
}

// survivors returns, for each entry of one list, its number in another, or -1
// when it is not there or differs.
func survivors(from, to registry.Part) []int32 {
	moved := make([]int32, from.Len())
	j := 0
	for i := range moved {
		e := from.At(i)
		for j < to.Len() && to.At(j).Listed < e.Listed {
			j++
		}
		moved[i] = -1
		if j < to.Len() && equal(e, to.At(j)) {
			moved[i] = int32(j)
			j++
		}
	}
	return moved
}

// equal reports whether two entries of one server and kind are found by the
// same words.
func equal(a, b *registry.Entry) bool {
	return a.Listed == b.Listed && a.Name == b.Name && bytes.Equal(a.JSON, b.JSON)
}

// entry returns the number of a document's entry in the part, -1 when it is
// gone.
func (p *placed) entry(doc int) int {
	if p.at == nil {
		return doc
	}
	return int(p.at[doc])
}

// count returns how many documents that are not gone have a term.
func (p *placed) count(term int) int {
	n, list := p.postings(term)
	if p.gone == 0 {
		return n
	}
	doc, live := 0, 0
	for range n {
		var d uint32
		d, _, list = next(list)
		doc += int(d)
		if p.at[doc] >= 0 {
			live++
		}
	}
	return live
}
