package inflight

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
)

// Table knows the open connections and what is under way on each, so that
// what a backend asks or says in between can be traced to the client that
// caused it. On stdio nothing in the protocol tells; only when all calls
// under way belong to one client is the cause certain.
type Table struct {
	mu    sync.Mutex
	links map[upstream.Conn]*Link
	paces paces
}

// Link is an open connection to a server.
type Link struct {
	Server *upstream.Server
	Conn   upstream.Conn
	newest *Request // of those under way
	// broken are the sessions, by id, whose calls lately ended without an answer, and
	// until when their server may still ask because of them.
	broken map[string]time.Time
}

// NewTable returns one without connections.
func NewTable() *Table {
	return &Table{links: make(map[upstream.Conn]*Link), paces: paces{seed: maphash.MakeSeed()}}
}

// Open notes a connection, before its first use.
func (t *Table) Open(server *upstream.Server, conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links[conn] = &Link{Server: server, Conn: conn}
}

// Close forgets a connection that has ended.
func (t *Table) Close(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.links, conn)
}

func (t *Table) add(conn upstream.Conn, x *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.links[conn]; l != nil {
		x.link, x.older = l, l.newest
		if l.newest != nil {
			l.newest.newer = x
		}
		l.newest = x
	}
}

// Do makes a call over a connection and waits for the answer: by do, if it is not nil.
func (t *Table) Do(conn upstream.Conn, u *Request, do func() (jsonrpc.Reply, error)) (reply jsonrpc.Reply, err error) {
	defer u.Release()
	t.add(conn, u)
	if do != nil {
		reply, err = do()
	} else {
		reply, err = conn.Call(&u.Call)
	}
	t.remove(u, err == nil)
	return reply, err
}

// DoAsync is Do without the wait: see [upstream.Conn]. The caller calls End when the call
// has ended.
func (t *Table) DoAsync(conn upstream.Conn, u *Request, caller upstream.Caller) bool {
	t.add(conn, u)
	started := conn.CallAsync(&u.Call, caller)
	if !started {
		t.End(u, true)
	}
	return started
}

// End takes a call that was started off the table; answered says that it ended with an
// answer.
func (t *Table) End(u *Request, answered bool) {
	t.remove(u, answered)
	u.Release()
}

// brokenTime is how long a server may still ask because of a call that was
// cancelled or took too long.
const brokenTime = 10 * time.Second

// remove notes the end of a call; answered says that it ended with an answer.
func (t *Table) remove(x *Request, answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
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
	l.broken[x.Exchange.Session().ID()] = now.Add(brokenTime)
}

// others reports whether a call of another session than s ended without an
// answer so lately that its server may still ask because of it.
func (l *Link) others(s *downstream.Session) bool {
	for other, until := range l.broken {
		if other != s.ID() && time.Now().Before(until) {
			return true
		}
	}
	return false
}

// Server names the server of a connection; "" when it is not open.
func (t *Table) Server(conn upstream.Conn) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.links[conn]; l != nil {
		return l.Server.Name()
	}
	return ""
}

// Links are the open connections.
func (t *Table) Links() []*Link {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.links))
}

// Busy reports whether anything is under way at a server.
func (t *Table) Busy(server *upstream.Server) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		if l.Server == server && l.newest != nil {
			return true
		}
	}
	return false
}

// Candidates finds the requests that may have made the backend speak, the newest
// last: the one that the transport names, else all under way. certain says that
// there are some and that they are one client's.
func (t *Table) Candidates(conn upstream.Conn, c *upstream.Call) (found []*Request, certain bool) {
	if c != nil {
		if x, ok := c.Cause.(*Request); ok {
			return []*Request{x}, true
		}
	}
	t.mu.Lock()
	if l := t.links[conn]; l != nil {
		for x := l.newest; x != nil; x = x.older {
			found = append(found, x)
		}
	}
	t.mu.Unlock()
	slices.Reverse(found)
	return found, t.SingleClient(conn, found)
}

// SingleClient reports whether all requests on a connection are one client's, so that what
// the server says can have no other cause. Those of stateless clients over HTTP have
// nothing but a token in common: two of them may be two clients', also when one
// waits for its client to come back, since its server may ask more meanwhile.
func (t *Table) SingleClient(conn upstream.Conn, all []*Request) bool {
	if len(all) == 0 {
		return false
	}
	s := all[0].Exchange.Session()
	for _, x := range all {
		if x.Exchange.Session() != s {
			return false
		}
	}
	one := all[0].Exchange.Outer()
	if s.Stateless() && slices.ContainsFunc(all[1:], func(x *Request) bool { return x.Exchange.Outer() != one }) {
		return false // and not all made for one and the same call
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.links[conn]
	return l == nil || !l.others(s)
}

// Newest is the last of the causes; nil for none.
func Newest(all []*Request) *Request {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// DelayAfterAnswers puts the answers of all requests that may be the cause of a notification
// behind it.
func DelayAfterAnswers(causes []*Request, mark jsonrpc.QueuePosition) {
	if !mark.IsBlocked() {
		return
	}
	for _, u := range causes {
		u.Exchange.AnswerAfter(mark)
	}
}

// PauseTimeouts lets requests wait for a human, who may take minutes: their time-outs
// rest until the function that it returns is called, and their slots are free
// for others meanwhile.
func PauseTimeouts(causes []*Request) (resume func()) {
	for _, u := range causes {
		u.Pause()
		u.Release()
	}
	return func() {
		for _, u := range causes {
			u.Resume()
		}
	}
}
