package cache

import "slices"

// Ring stores the last Max records of several servers, numbered from 1. When it is full,
// a new record replaces the oldest one of the server with the most records. Thus a server
// cannot displace the records of others, and numbers have gaps.
//
// The cost of Put depends on the number of servers, not of records. A Ring is not safe
// for concurrent use.
type Ring[T any] struct {
	Max           int
	slots         []slot[T]
	firstFree     int32      // first unused slot; the next ones follow by slot.next
	positions     []position // by number, including evicted records
	firstPosition int        // in positions: all previous are evicted
	lastNumber    uint64     // number of records ever put or skipped
	skipped       uint64
	count         int

	usageByServer map[string]*usage
	usages        []*usage
	lastUsage     *usage // of the server of the last Put
}

const noSlot = -1

// Stats describes a [Ring].
type Stats struct {
	First   uint64 // number of the oldest record, 0 if empty
	Next    uint64 // number of the next record; the first is 1
	Dropped uint64 // evicted records
}

type slot[T any] struct {
	rec  T
	seq  uint64
	next int32 // next record of the server; or next unused slot
}

type position struct {
	seq  uint64
	slot int32
}

type usage struct {
	server         string
	oldest, newest int32
	records, bytes int
}

// Put reserves a slot for a record of the given bytes and returns it with the record's
// number. The slot may contain old data. gone is called with an evicted record and
// returns its bytes; it may be nil if bytes are not counted.
func (g *Ring[T]) Put(server string, bytes int, gone func(*T) int) (*T, uint64) {
	if g.count == g.Max {
		g.evictOldest(g.largest(func(h *usage) int { return h.records }), gone)
	}
	at := g.firstFree
	if g.count == len(g.slots) {
		at = int32(len(g.slots))
		g.slots = append(g.slots, slot[T]{})
	} else {
		g.firstFree = g.slots[at].next
	}
	h := g.lastUsage
	if h == nil || h.server != server {
		h = g.usageOf(server)
		g.lastUsage = h
	}
	g.lastNumber++
	g.count++
	s := &g.slots[at]
	s.seq, s.next = g.lastNumber, noSlot
	if h.newest == noSlot {
		h.oldest = at
	} else {
		g.slots[h.newest].next = at
	}
	h.newest = at
	h.records++
	h.bytes += bytes
	if len(g.positions) >= 2*g.Max {
		g.positions = slices.DeleteFunc(g.positions, func(p position) bool { return g.slots[p.slot].seq != p.seq })
		g.firstPosition = 0
	}
	g.positions = append(g.positions, position{g.lastNumber, at})
	return &s.rec, g.lastNumber
}

// Skip returns the next number, for a record stored elsewhere.
func (g *Ring[T]) Skip() uint64 {
	g.lastNumber++
	g.skipped++
	return g.lastNumber
}

func (g *Ring[T]) usageOf(server string) *usage {
	h := g.usageByServer[server]
	if h == nil {
		h = &usage{server: server, oldest: noSlot, newest: noSlot}
		if g.usageByServer == nil {
			g.usageByServer = make(map[string]*usage)
		}
		g.usageByServer[server] = h
		g.usages = append(g.usages, h)
	}
	return h
}

// Oldest returns the number of a server's oldest record, or 0.
func (g *Ring[T]) Oldest(server string) uint64 {
	if h := g.usageByServer[server]; h != nil {
		return g.slots[h.oldest].seq
	}
	return 0
}

func (g *Ring[T]) largest(of func(*usage) int) *usage {
	found := g.usages[0]
	for _, h := range g.usages[1:] {
		if of(h) > of(found) {
			found = h
		}
	}
	return found
}

// EvictLargest evicts the oldest record of the server with the most bytes. It calls gone
// like Put.
func (g *Ring[T]) EvictLargest(gone func(*T) int) {
	var none T
	g.evictOldest(g.largest(func(h *usage) int { return h.bytes }), gone).rec = none
}

// evictOldest returns the slot, which still holds the evicted record.
func (g *Ring[T]) evictOldest(h *usage, gone func(*T) int) *slot[T] {
	at := h.oldest
	s := &g.slots[at]
	if gone != nil {
		h.bytes -= gone(&s.rec)
	}
	h.oldest = s.next
	if h.records--; h.records == 0 {
		delete(g.usageByServer, h.server)
		g.usages = slices.DeleteFunc(g.usages, func(o *usage) bool { return o == h })
		g.lastUsage = nil
	}
	s.seq, s.next = 0, g.firstFree
	g.firstFree = at
	g.count--
	return s
}

// Find returns a record by its number, or nil if it was evicted.
func (g *Ring[T]) Find(seq uint64) *T {
	i, ok := g.search(seq)
	if !ok || g.slots[g.positions[i].slot].seq != seq {
		return nil
	}
	return &g.slots[g.positions[i].slot].rec
}

func (g *Ring[T]) search(seq uint64) (int, bool) {
	return slices.BinarySearchFunc(g.positions, seq, func(p position, seq uint64) int {
		switch {
		case p.seq < seq:
			return -1
		case p.seq > seq:
			return 1
		}
		return 0
	})
}

// Window calls yield for at most n records (all if n < 0), starting at number from.
func (g *Ring[T]) Window(from uint64, n int, yield func(*T)) {
	i, _ := g.search(from)
	for _, p := range g.positions[i:] {
		if n == 0 {
			return
		}
		if s := &g.slots[p.slot]; s.seq == p.seq {
			yield(&s.rec)
			n--
		}
	}
}

// Available returns the maximum number of records that Window yields.
func (g *Ring[T]) Available(from uint64, n int) int {
	i, _ := g.search(from)
	most := min(len(g.positions)-i, g.count)
	if n >= 0 {
		most = min(most, n)
	}
	return most
}

// Stats returns the range and the losses of records.
func (g *Ring[T]) Stats() Stats {
	s := Stats{Next: g.lastNumber + 1, Dropped: g.lastNumber - g.skipped - uint64(g.count)}
	for ; g.count > 0; g.firstPosition++ {
		if p := g.positions[g.firstPosition]; g.slots[p.slot].seq == p.seq {
			s.First = p.seq
			break
		}
	}
	return s
}
