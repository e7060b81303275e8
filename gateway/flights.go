package gateway

import (
	"sync"
	"sync/atomic"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
)

// flight is one client request under way at a backend.
type flight struct {
	exchange *downstream.Exchange
	call     upstream.Call
	release  func() // gives the backend's limiter slot back; once
	landed   atomic.Bool
}

// land gives the slot back, unless that was done already.
func (x *flight) land() {
	if !x.landed.Swap(true) {
		x.release()
	}
}

// ask puts a question of the backend to a human. That may take minutes: the
// call's time-out rests and its slot is free for others meanwhile.
func (x *flight) ask(ask func() (jsonrpc.Reply, error)) (jsonrpc.Reply, error) {
	x.call.Pause()
	defer x.call.Resume()
	x.land()
	return ask()
}

// flights knows the open connections and what is under way on each, so that
// what a backend asks or says in between can be traced to the client that
// caused it. On stdio nothing in the protocol tells; only when all calls
// under way belong to one client is the cause certain.
type flights struct {
	mu    sync.Mutex
	links map[upstream.Conn]*link
}

// link is what the gateway keeps of an open connection.
type link struct {
	server  string
	conn    upstream.Conn
	flights map[*flight]struct{}
	level   sync.Mutex // held while the backend is told a log level
}

func (f *flights) init() { f.links = make(map[upstream.Conn]*link) }

// open notes a connection, before its first use.
func (f *flights) open(server string, conn upstream.Conn) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &link{server: server, conn: conn, flights: make(map[*flight]struct{})}
	f.links[conn] = l
	return l
}

// drop forgets a connection that has ended.
func (f *flights) drop(conn upstream.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.links, conn)
}

func (f *flights) add(conn upstream.Conn, x *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.links[conn]; l != nil {
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

// of is the open connection of a unit to a server; nil for none.
func (f *flights) of(server, unit string) upstream.Conn {
	for _, l := range f.all() {
		if l.server == server && l.conn.Unit() == unit {
			return l.conn
		}
	}
	return nil
}

// cause finds the request that made the backend speak: the one that the
// transport names, else any of those under way when all are one session's.
func (f *flights) cause(conn upstream.Conn, c *upstream.Call) *flight {
	if c != nil {
		if x, ok := c.Cause.(*flight); ok {
			return x
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.links[conn]
	if l == nil {
		return nil
	}
	var found *flight
	for x := range l.flights {
		if found != nil && found.exchange.Session() != x.exchange.Session() {
			return nil
		}
		found = x
	}
	return found
}
