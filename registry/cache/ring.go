package cache

import "slices"

// Ring stores the last Max records of several servers, numbered from 1. A new record of a
// full ring replaces the oldest one of the server with most records. So a server cannot
// displace the records of others, and the numbers of the stored records have gaps.
//
// The cost of Put depends on the number of servers, not of records. A Ring is not safe for
// concurrent use.
type Ring[T any] struct {
	Max   int
	slots []slot[T]
	free  int32   // first of the slots in nobody's use; next leads on
	order []place // where records went, by number; those that are gone, too
	begin int     // of order: all before it are gone
	next  uint64  // number of records ever put, and of those skipped
	skips uint64  // numbers that were skipped
	left  int     // records that are here

	servers map[string]*share
	all     []*share // of servers, for finding who has most
	last    *share   // whose record was put last
}

const nowhere = -1

// Stats describes the content of a [Ring].
type Stats struct {
	First   uint64 // number of the oldest record, 0 when empty
	Next    uint64 // number of the next record; the first ever is 1
	Dropped uint64 // records that were replaced
}

// slot holds a record, which is gone when seq is 0.
type slot[T any] struct {
	rec  T
	seq  uint64
	next int32 // of the same server, newer; or the next free one
}

type place struct {
	seq uint64
	at  int32
}

// share counts the rows of one server in a ring.
type share struct {
	server         string
	oldest, newest int32
	records, bytes int
}

// Put makes a place for a record of so many bytes and returns it with the record's
// number: the caller writes it there, over what may be left of another. gone is called
// with the record that has to make room for it, if one has, and returns its bytes; nil if
// none are counted.
func (g *Ring[T]) Put(server string, bytes int, gone func(*T) int) (*T, uint64) {
	if g.left == g.Max {
		g.evict(g.most(func(h *share) int { return h.records }), gone)
	}
	at := g.free
	if g.left == len(g.slots) {
		at = int32(len(g.slots))
		g.slots = append(g.slots, slot[T]{})
	} else {
		g.free = g.slots[at].next
	}
	h := g.last
	if h == nil || h.server != server {
		h = g.share(server)
		g.last = h
	}
	g.next++
	g.left++
	s := &g.slots[at]
	s.seq, s.next = g.next, nowhere
	if h.newest == nowhere {
		h.oldest = at
	} else {
		g.slots[h.newest].next = at
	}
	h.newest = at
	h.records++
	h.bytes += bytes
	if len(g.order) >= 2*g.Max {
		g.order = slices.DeleteFunc(g.order, func(p place) bool { return g.slots[p.at].seq != p.seq })
		g.begin = 0
	}
	g.order = append(g.order, place{g.next, at})
	return &s.rec, g.next
}

// Skip returns the next number for a record that is kept elsewhere.
func (g *Ring[T]) Skip() uint64 {
	g.next++
	g.skips++
	return g.next
}

// share is that of a server, which may have no record yet.
func (g *Ring[T]) share(server string) *share {
	h := g.servers[server]
	if h == nil {
		h = &share{server: server, oldest: nowhere, newest: nowhere}
		if g.servers == nil {
			g.servers = make(map[string]*share)
		}
		g.servers[server] = h
		g.all = append(g.all, h)
	}
	return h
}

// Oldest is the number of a server's oldest record, 0 when it has none.
func (g *Ring[T]) Oldest(server string) uint64 {
	if h := g.servers[server]; h != nil {
		return g.slots[h.oldest].seq
	}
	return 0
}

// most is the server that has most of something.
func (g *Ring[T]) most(of func(*share) int) *share {
	found := g.all[0]
	for _, h := range g.all[1:] {
		if of(h) > of(found) {
			found = h
		}
	}
	return found
}

// EvictLargest takes the oldest record of the server that has the most bytes out, and
// calls gone like Put.
func (g *Ring[T]) EvictLargest(gone func(*T) int) {
	var none T
	g.evict(g.most(func(h *share) int { return h.bytes }), gone).rec = none
}

// evict takes the oldest record of a server out, and returns the place where it still
// stands.
func (g *Ring[T]) evict(h *share, gone func(*T) int) *slot[T] {
	at := h.oldest
	s := &g.slots[at]
	if gone != nil {
		h.bytes -= gone(&s.rec)
	}
	h.oldest = s.next
	if h.records--; h.records == 0 {
		delete(g.servers, h.server)
		g.all = slices.DeleteFunc(g.all, func(o *share) bool { return o == h })
		g.last = nil
	}
	s.seq, s.next = 0, g.free
	g.free = at
	g.left--
	return s
}

// Find returns a record by its number, nil when it is gone.
func (g *Ring[T]) Find(seq uint64) *T {
	i, ok := g.search(seq)
	if !ok || g.slots[g.order[i].at].seq != seq {
		return nil
	}
	return &g.slots[g.order[i].at].rec
}

func (g *Ring[T]) search(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(g.order, seq, func(p place, seq uint64) int {
		switch {
		case p.seq < seq:
			return -1
		case p.seq > seq:
			return 1
		}
		return 0
	})
}

// Window calls yield with at most n records, all when n < 0, from number from
// on.
func (g *Ring[T]) Window(from uint64, n int, yield func(*T)) {
	i, _ := g.search(from)
	for _, p := range g.order[i:] {
		if n == 0 {
			return
		}
		if s := &g.slots[p.at]; s.seq == p.seq {
			yield(&s.rec)
			n--
		}
	}
}

// Available is how many records Window finds at most.
func (g *Ring[T]) Available(from uint64, n int) int {
	i, _ := g.search(from)
	most := min(len(g.order)-i, g.left)
	if n >= 0 {
		most = min(most, n)
	}
	return most
}

// Stats says which records are there.
func (g *Ring[T]) Stats() Stats {
	s := Stats{Next: g.next + 1, Dropped: g.next - g.skips - uint64(g.left)}
	for ; g.left > 0; g.begin++ {
		if p := g.order[g.begin]; g.slots[p.at].seq == p.seq {
			s.First = p.seq
			break
		}
	}
	return s
}
