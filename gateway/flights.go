package gateway

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry/rawjson"
)

// flight is one client request under way at a backend, or at a local tool.
type flight struct {
	exchange *downstream.Exchange
	outer    *flight // of the call that the request was made for, nil for a client's own
	call     upstream.Call
	release  func() // gives the backend's limiter slot back; once
	landed   atomic.Bool
	asked    atomic.Bool              // the backend asked the client something meanwhile
	lacking  atomic.Pointer[[]string] // a capability that the client did not declare, but was needed
	thinking thinking

	link         *link   // where it is under way, nil before and after
	older, newer *flight // under way there
}

// thinking is the time that people took to answer the questions of a flight.
type thinking struct {
	mu     sync.Mutex
	open   int           // questions that people think about now
	since  time.Time     // of the first of them
	before time.Duration // for those before
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
	for ; x != nil; x = x.outer {
		x.asked.Store(true)
		t := &x.thinking
		t.mu.Lock()
		if t.open++; t.open == 1 {
			t.since = time.Now()
		}
		t.mu.Unlock()
	}
}

func (x *flight) resume() {
	x.call.Resume()
	for ; x != nil; x = x.outer {
		t := &x.thinking
		t.mu.Lock()
		if t.open--; t.open == 0 {
			t.before += time.Since(t.since)
		}
		t.mu.Unlock()
	}
}

// waited is how long people have been asked so far.
func (x *flight) waited() time.Duration {
	t := &x.thinking
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open > 0 {
		return t.before + time.Since(t.since)
	}
	return t.before
}

// lacks notes a capability that the client did not declare, but was needed.
func (x *flight) lacks(path []string) {
	for x.outer != nil {
		x = x.outer
	}
	x.lacking.Store(&path)
}

// missing is the error for a stateless request that failed for want of a capability;
// nil for others.
func (x *flight) missing(server string, reply jsonrpc.Reply) error {
	path := x.lacking.Load()
	if path == nil || reply.Error == nil && string(rawjson.Get(reply.Result, "isError")) != "true" {
		return nil
	}
	return missingCapability(server, *path)
}

// missingCapability is the error for a request that cannot be served without
// what its client did not declare (2026-07-28, SEP-2575).
func missingCapability(server string, path []string) *jsonrpc.Error {
	need := emptyResult
	for _, name := range slices.Backward(path) {
		need = rawjson.SetMember(emptyResult, name, need)
	}
	e := jsonrpc.Errorf(downstream.CodeMissingCapability, "Server '%s' needs a capability that the client did not declare: %s", server, path[len(path)-1])
	e.Data = rawjson.SetMember(emptyResult, "requiredCapabilities", need)
	return e
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
	server string
	of     *upstream.Server
	conn   upstream.Conn
	newest *flight // of those under way
	// broken are the sessions, by id, whose calls lately ended without an answer, and
	// until when their server may still ask because of them.
	broken  map[string]time.Time
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
	f.links[conn] = &link{server: server.Name(), of: server, conn: conn}
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
		if x.link, x.older = l, l.newest; l.newest != nil {
			l.newest.newer = x
		}
		l.newest = x
	}
}

// brokenTime is how long a server may still ask because of a call that was
// cancelled or took too long.
const brokenTime = 10 * time.Second

// remove notes the end of a call; answered says that it ended with an answer.
func (f *flights) remove(x *flight, answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := x.link
	if l == nil {
		return // the connection had ended
	}
	if x.older != nil {
		x.older.newer = x.newer
	}
	if x.newer != nil {
		x.newer.older = x.older
	} else {
		l.newest = x.older
	}
	x.link, x.newer, x.older = nil, nil, nil
	if answered {
		return
	}
	now := time.Now()
	if l.broken == nil {
		l.broken = make(map[string]time.Time)
	}
	maps.DeleteFunc(l.broken, func(_ string, until time.Time) bool { return now.After(until) })
	l.broken[x.exchange.Session().ID()] = now.Add(brokenTime)
}

// others reports whether a call of another session than s ended without an
// answer so lately that its server may still ask because of it.
func (l *link) others(s *downstream.Session) bool {
	for other, until := range l.broken {
		if other != s.ID() && time.Now().Before(until) {
			return true
		}
	}
	return false
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
		if l.of == server && l.newest != nil {
			return true
		}
	}
	return false
}

// causes finds the requests that may have made the backend speak, the newest
// last: the one that the transport names, else all under way. certain says that
// there are some and that they are one client's.
func (f *flights) causes(conn upstream.Conn, c *upstream.Call) (found []*flight, certain bool) {
	if c != nil {
		if x, ok := c.Cause.(*flight); ok {
			return []*flight{x}, true
		}
	}
	f.mu.Lock()
	if l := f.links[conn]; l != nil {
		for x := l.newest; x != nil; x = x.older {
			found = append(found, x)
		}
	}
	f.mu.Unlock()
	slices.Reverse(found)
	return found, f.oneClients(conn, found)
}

// oneClients reports whether what a connection says can only be because of one
// client, whose requests all are. Those of stateless clients over HTTP have
// nothing but a token in common: two of them may be two clients', also when one
// waits for its client to come back, since its server may ask more meanwhile.
func (f *flights) oneClients(conn upstream.Conn, all []*flight) bool {
	if len(all) == 0 {
		return false
	}
	s := all[0].exchange.Session()
	for _, x := range all {
		if x.exchange.Session() != s {
			return false
		}
	}
	one := all[0].exchange.Outer()
	if s.Stateless() && slices.ContainsFunc(all[1:], func(x *flight) bool { return x.exchange.Outer() != one }) {
		return false // and not all made for one and the same call
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.links[conn]
	return l == nil || !l.others(s)
}
