package downstream

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connections is a listener that limits its open connections. A new connection above the
// limit closes the one that has been quiet for longest: it waits for its next request, or
// has not sent the first. Connections with a request in flight stay, and new ones wait.
type connections struct {
	net.Listener               // set before the first use
	room         chan struct{} // one element per open connection
	closed       chan struct{}
	once         sync.Once
	// leaving is when accepting ends at the latest, in nanoseconds; 0 for never.
	leaving atomic.Int64

	mu      sync.Mutex
	quiet   list.List // of *connection, the longest quiet first
	wanted  bool      // the next one that turns quiet is closed
	in      [http.StateClosed + 1]int
	streams int           // requests in flight that end with the server only
	wake    chan struct{} // closed at the next change of in or streams; nil while nobody waits
}

func newConnections(limit int) *connections {
	return &connections{room: make(chan struct{}, limit), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (l *connections) Accept() (net.Conn, error) {
	if err := l.left(nil); err != nil {
		return nil, err
	}
	c, err := l.Listener.Accept()
	if err != nil {
		if err = l.left(err); err == nil {
			return l.Accept()
		}
		return nil, err
	}
	select {
	case l.room <- struct{}{}:
		return newConnection(c, l), nil
	default:
	}
	l.evict()
	select {
	case l.room <- struct{}{}:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wanted = false
		return newConnection(c, l), nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
}

// Close implements [net.Listener].
func (l *connections) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// turned records the state of a connection. It is a hook of [http.Server].
func (l *connections) turned(conn net.Conn, state http.ConnState) {
	c := conn.(*connection)
	l.mu.Lock()
	l.in[c.state]--
	l.in[state]++
	c.state = state
	l.changedLocked()
	if c.at != nil {
		l.quiet.Remove(c.at)
		c.at = nil
	}
	var out *connection
	if state == http.StateNew || state == http.StateIdle {
		c.at = l.quiet.PushBack(c)
		if l.wanted && state == http.StateIdle {
			out = l.longestLocked()
		}
	}
	l.mu.Unlock()
	if out != nil {
		_ = out.Close() // its server sees the end
	}
}

// evict ends the connection that has been quiet for longest, or the next one
// that turns quiet.
func (l *connections) evict() {
	l.mu.Lock()
	out := l.longestLocked()
	l.wanted = out == nil
	l.mu.Unlock()
	if out != nil {
		_ = out.Close() // its server sees the end
	}
}

// longestLocked takes out the connection that has been quiet for longest; nil for none.
func (l *connections) longestLocked() *connection {
	at := l.quiet.Front()
	if at == nil {
		return nil
	}
	l.wanted = false
	c := l.quiet.Remove(at).(*connection)
	c.at = nil
	return c
}

// connection is an accepted connection. Its fields are guarded by of.mu.
type connection struct {
	net.Conn
	of    *connections
	at    *list.Element // in quiet, or nil
	state http.ConnState
	once  sync.Once
}

func newConnection(c net.Conn, of *connections) *connection {
	return &connection{Conn: c, of: of, state: http.StateClosed} // until its server calls turned
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.once.Do(func() { <-c.of.room })
	return c.Conn.Close()
}
