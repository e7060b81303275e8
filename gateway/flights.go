package gateway

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"goblin/gateway/downstream"
	"goblin/gateway/upstream"
)

// flight is one client request under way at a backend.
type flight struct {
	exchange *downstream.Exchange // nil where held is set
	held     *held                // of a stateless client, which may come back for it
	outer    *outer               // the call that the request was made for, nil for a client's own
	number   uint64               // counts up
	call     upstream.Call
	release  func() // gives the backend's limiter slot back; once
	landed   atomic.Bool
	asked    atomic.Bool // the backend asked the client something meanwhile
}

// at is the request that waits for the flight now, or did last.
func (x *flight) at() *downstream.Exchange {
	if x.held != nil {
		return x.held.request().Exchange
	}
	return x.exchange
}

// land gives the slot back, unless that was done already.
func (x *flight) land() {
	if !x.landed.Swap(true) {
		x.release()
	}
}

// pause stops the clocks that run for the flight until as many calls of resume:
// people are asked.
func (x *flight) pause() {
	x.call.Pause()
	x.outer.pause()
}

func (x *flight) resume() {
	x.call.Resume()
	x.outer.resume()
}

// flights knows the open connections and what is under way on each, so that
// what a backend asks or says in between can be traced to the client that
// caused it. On stdio nothing in the protocol tells; only when all calls
// under way belong to one client is the cause certain.
type flights struct {
	mu    sync.Mutex
	last  uint64
	links map[upstream.Conn]*link
}

// link is what the gateway keeps of an open connection.
type link struct {
	server  string
	of      *upstream.Server
	conn    upstream.Conn
	flights map[*flight]struct{}
	level   sync.Mutex // held while the backend is told a log level
	told    bool       // it was told one; guarded by level
	loan    loan
	waiting atomic.Bool // somebody waits for level, and will tell the newest
}

func (f *flights) init() { f.links = make(map[upstream.Conn]*link) }

// open notes a connection, before its first use.
func (f *flights) open(server *upstream.Server, conn upstream.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links[conn] = &link{server: server.Name(), of: server, conn: conn, flights: make(map[*flight]struct{})}
}

// drop forgets a connection that has ended.
func (f *flights) drop(conn upstream.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.links[conn]; l != nil {
		l.loan.stop()
	}
	delete(f.links, conn)
}

func (f *flights) add(conn upstream.Conn, x *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.links[conn]; l != nil {
		f.last++
		x.number = f.last
		l.flights[x] = struct{}{}
	}
}

func (f *flights) remove(conn upstream.Conn, x *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.links[conn]; l != nil {
		delete(l.flights, x)
	}
}

// link is what is kept of a connection; nil when it is not open.
func (f *flights) link(conn upstream.Conn) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.links[conn]
}

// all are the open connections.
func (f *flights) all() []*link {
	f.mu.Lock()
	defer f.mu.Unlock()
	links := make([]*link, 0, len(f.links))
	for _, l := range f.links {
		links = append(links, l)
	}
	return links
}

// of is the open connection to a server that carries a row of subscriptions; nil
// for none.
func (f *flights) of(server *upstream.Server, key subscriptionKey) upstream.Conn {
	for _, l := range f.all() {
		if l.of == server && key.on(l.conn) {
			return l.conn
		}
	}
	return nil
}

// busy reports whether anything is under way at a server.
func (f *flights) busy(server *upstream.Server) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.links {
		if l.of == server && len(l.flights) > 0 {
			return true
		}
	}
	return false
}

// causes finds the requests that may have made the backend speak: the one
// that the transport names, else all under way, provided that they are one
// session's. The newest is the last.
func (f *flights) causes(conn upstream.Conn, c *upstream.Call) []*flight {
	if c != nil {
		if x, ok := c.Cause.(*flight); ok {
			return []*flight{x}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.links[conn]
	if l == nil {
		return nil
	}
	found := make([]*flight, 0, len(l.flights))
	for x := range l.flights {
		if len(found) > 0 && found[0].at().Session() != x.at().Session() {
			return nil
		}
		found = append(found, x)
	}
	if len(found) > 1 && found[0].at().Session().Stateless() {
		return onlyBusy(found)
	}
	slices.SortFunc(found, func(a, b *flight) int { return cmp.Compare(a.number, b.number) })
	return found
}

// onlyBusy is the one of several stateless requests over HTTP that the server
// works on. Those that wait for an answer ask nothing meanwhile; of the others
// nothing is known but that their clients have the same token, so with two of
// them the cause is not certain.
func onlyBusy(all []*flight) []*flight {
	if one := all[0].held; one != nil && !slices.ContainsFunc(all, func(x *flight) bool { return x.held != one }) {
		return all // made for one and the same call
	}
	busy := slices.DeleteFunc(all, func(x *flight) bool { return x.held != nil && x.held.waits() })
	if len(busy) != 1 {
		return nil
	}
	return busy
}
