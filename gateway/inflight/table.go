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

// Table tracks the open connections and their requests in flight. It traces a server's
// request or notification to the client that caused it. On stdio the protocol doesn't
// name the cause: it is certain only if all calls in flight belong to one client.
type Table struct {
	mu          sync.Mutex
	connections map[upstream.Conn]*Connection
	latencies   latencyTable
}

// Connection is an open connection to a server.
type Connection struct {
	Server *upstream.Server
	Conn   upstream.Conn
	newest *Request
	// unanswered maps session ids to the end of the time for requests of a cancelled or
	// timed-out call.
	unanswered map[string]time.Time
}

// NewTable returns an empty Table.
func NewTable() *Table {
	return &Table{connections: make(map[upstream.Conn]*Connection), latencies: latencyTable{seed: maphash.MakeSeed()}}
}

// Open adds a connection. Call it before the first use of the connection.
func (t *Table) Open(server *upstream.Server, conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.connections[conn] = &Connection{Server: server, Conn: conn}
}

// Close removes a closed connection.
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

// Do makes a call over a connection and waits for the answer. If do is not nil, it makes
// the call.
func (t *Table) Do(conn upstream.Conn, u *Request, do func() (jsonrpc.Reply, error)) (reply jsonrpc.Reply, err error) {
	defer u.Release()
	t.add(conn, u)
	if do != nil {
		reply, err = do()
	} else {
		reply, err = conn.Call(&u.Call)
	}
	u.Trace.End(reply, err)
	t.remove(u, err == nil)
	return reply, err
}

// DoAsync is Do without waiting; see [upstream.Conn]. If it returns true, the caller must
// call End when the call finishes.
func (t *Table) DoAsync(conn upstream.Conn, u *Request, caller upstream.Caller) bool {
	t.add(conn, u)
	started := conn.CallAsync(&u.Call, caller)
	if !started {
		t.End(u, true)
	}
	return started
}

// End removes a call of DoAsync. answered reports whether the server answered it.
func (t *Table) End(u *Request, answered bool) {
	t.remove(u, answered)
	u.Release()
}

// unansweredTime limits how long requests from a server may still belong to a cancelled
// or timed-out call.
const unansweredTime = 10 * time.Second

func (t *Table) remove(x *Request, answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := x.connection
	if l == nil {
		return
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

// otherUnanswered reports whether another session has a recent unanswered call that the
// server may still send requests for.
func (l *Connection) otherUnanswered(s *downstream.Session) bool {
	for other, until := range l.unanswered {
		if other != s.ID() && time.Now().Before(until) {
			return true
		}
	}
	return false
}

// Server returns the name of a connection's server, or "" if the connection is not open.
func (t *Table) Server(conn upstream.Conn) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.connections[conn]; l != nil {
		return l.Server.Name()
	}
	return ""
}

// Connections returns the open connections in no particular order.
func (t *Table) Connections() []*Connection {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.connections))
}

// Busy reports whether a server has requests in flight.
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

// Candidates returns the requests that may have caused a server's message, the newest
// last. If the transport names the cause, it is the only one. certain reports whether all
// candidates belong to one client; it is false without candidates.
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

// SingleClient reports whether all requests on a connection belong to one client.
// Stateless HTTP clients share only a token, so two of their requests may come from two
// clients. That also holds while one waits for its client to retry, since the server may
// send more requests.
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
		return false // they may come from two clients
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.connections[conn]
	return l == nil || !l.otherUnanswered(s)
}

// Newest returns the newest cause, or nil if all is empty.
func Newest(all []*Request) *Request {
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// DelayAfterAnswers makes the answers of all possible causes wait for a notification.
func DelayAfterAnswers(causes []*Request, mark jsonrpc.QueuePosition) {
	if !mark.IsBlocked() {
		return
	}
	for _, u := range causes {
		u.ClientRequest.AnswerAfter(mark)
	}
}

// PauseTimeouts pauses the timeouts of requests while a user is prompted, and frees their
// limiter slots. The returned function resumes the timeouts.
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
