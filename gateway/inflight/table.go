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

// Table tracks the open connections and the requests in flight on each, so that a server's
// request or notification can be traced to the client that caused it. On stdio the protocol
// does not tell the cause: it is certain only if all calls in flight belong to one client.
type Table struct {
	mu          sync.Mutex
	connections map[upstream.Conn]*Connection
	latencies   latencyTable
}

// Connection is an open connection to a server.
type Connection struct {
	Server *upstream.Server
	Conn   upstream.Conn
	newest *Request // of the requests in flight
	// unanswered holds the sessions, by id, with a recent call that ended without an
	// answer, and until when their server may still ask because of it.
	unanswered map[string]time.Time
}

// NewTable returns one without connections.
func NewTable() *Table {
	return &Table{connections: make(map[upstream.Conn]*Connection), latencies: latencyTable{seed: maphash.MakeSeed()}}
}

// Open notes a connection, before its first use.
func (t *Table) Open(server *upstream.Server, conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connections[conn] = &Connection{Server: server, Conn: conn}
}

// Close forgets a connection that has ended.
func (t *Table) Close(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.connections, conn)
}

func (t *Table) add(conn upstream.Conn, x *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.connections[conn]; l != nil {
		x.connection, x.older = l, l.newest
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

// End removes a call of DoAsync; answered reports whether it ended with an answer.
func (t *Table) End(u *Request, answered bool) {
	t.remove(u, answered)
	u.Release()
}

// unansweredTime is how long a server may still ask because of a call that was cancelled or
// timed out.
const unansweredTime = 10 * time.Second

// remove notes the end of a call; answered says that it ended with an answer.
func (t *Table) remove(x *Request, answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := x.connection
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
	x.connection, x.newer, x.older = nil, nil, nil
	if answered {
		return
	}
	now := time.Now()
	if l.unanswered == nil {
		l.unanswered = make(map[string]time.Time)
	}
	maps.DeleteFunc(l.unanswered, func(_ string, until time.Time) bool { return now.After(until) })
	l.unanswered[x.ClientRequest.Session().ID()] = now.Add(unansweredTime)
}

// otherUnanswered reports whether a session other than s has a recent call without an answer,
// so that its server may still ask because of it.
func (l *Connection) otherUnanswered(s *downstream.Session) bool {
	for other, until := range l.unanswered {
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
	if l := t.connections[conn]; l != nil {
		return l.Server.Name()
	}
	return ""
}

// Connections returns the open connections.
func (t *Table) Connections() []*Connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.connections))
}

// Busy reports whether anything is under way at a server.
func (t *Table) Busy(server *upstream.Server) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.connections {
		if l.Server == server && l.newest != nil {
			return true
		}
	}
	return false
}

// Candidates returns the requests that may have caused a server's message, the newest last:
// the one that the transport names, otherwise all in flight. certain reports whether there are
// some and all belong to one client.
func (t *Table) Candidates(conn upstream.Conn, c *upstream.Call) (found []*Request, certain bool) {
	if c != nil {
		if x, ok := c.Cause.(*Request); ok {
			return []*Request{x}, true
		}
	}
	t.mu.Lock()
	if l := t.connections[conn]; l != nil {
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
	s := all[0].ClientRequest.Session()
	for _, x := range all {
		if x.ClientRequest.Session() != s {
			return false
		}
	}
	one := all[0].ClientRequest.Outer()
	if s.Stateless() && slices.ContainsFunc(all[1:], func(x *Request) bool { return x.ClientRequest.Outer() != one }) {
		return false // and not all made for one and the same call
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.connections[conn]
	return l == nil || !l.otherUnanswered(s)
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
		u.ClientRequest.AnswerAfter(mark)
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
