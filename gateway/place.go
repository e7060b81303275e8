package gateway

import (
	"net"

	"goblin/gateway/downstream"
	"goblin/gateway/memory"
)

// place is what a call that waits for its client takes, and whose it is. What is
// not said otherwise is guarded by holds.mu.
//
// Clients on byte streams are told apart by their sessions. Those of stateless HTTP
// have nothing but an address, which all on one machine share, and a connection,
// of which a client may have many. So room is made by the address with most calls,
// and there by the connection with most.
type place struct {
	session *downstream.Session // nil for stateless HTTP
	address string
	port    string
	number  uint64        // counts up
	piece   *memory.Piece // nil while it is small
}

// claim says whose the place is.
func (p *place) claim(r *request) {
	if !r.Session().Stateless() {
		p.session = r.Session()
		return
	}
	if host, port, err := net.SplitHostPort(r.Modern().Remote); err == nil {
		p.address, p.port = host, port
	}
}

// client is whom the place counts for first, connection whom it does then.
func (p *place) client() place { return place{session: p.session, address: p.address} }

func (p *place) connection() place {
	return place{session: p.session, address: p.address, port: p.port}
}

// farthest is the oldest call of whoever has most, next included. The lock is
// held, and there is at least one call.
func (t *holds) farthest(next *place) *held {
	all := make([]*held, 0, len(t.all))
	for _, h := range t.all {
		all = append(all, h)
	}
	all = most(all, next, (*place).client)
	all = most(all, next, (*place).connection)
	oldest := all[0]
	for _, h := range all {
		if h.place.number < oldest.place.number {
			oldest = h
		}
	}
	return oldest
}

// most are the calls of those who have most of them, next included.
func most(all []*held, next *place, who func(*place) place) []*held {
	counts := map[place]int{who(next): 1}
	for _, h := range all {
		counts[who(&h.place)]++
	}
	best, found := 0, []*held(nil)
	for _, h := range all {
		n := counts[who(&h.place)]
		if n > best {
			best, found = n, nil
		}
		if n == best {
			found = append(found, h)
		}
	}
	return found
}

// hold counts n bytes more that a call holds while its client is away. The lock is
// held.
func (t *holds) hold(h *held, n int) {
	switch {
	case h.place.piece != nil:
		h.place.piece.Grow(int64(n))
	case n > memory.Free:
		h.place.piece = t.large.Add(int64(n), func() {
			t.drop(h)
			h.oust()
		})
	default:
		return
	}
	t.account.Grow(int64(n))
}

// grow is hold for a call that may be forgotten already.
func (t *holds) grow(h *held, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[h.ticket.id] == h {
		t.hold(h, n)
	}
}
