package downstream

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connections bounds how many connections accepted from a listener are open.
// When all places are taken, the one that has been quiet for longest makes room:
// it waits for its next request, or has not sent the first. Those with a request
// under way stay, and new connections wait.
type connections struct {
	net.Listener
	room   chan struct{}
	closed chan struct{}
	once   sync.Once
	// leaving is when accepting ends at the latest, in nanoseconds; 0 for never.
	leaving atomic.Int64

	mu     sync.Mutex
	quiet  list.List // of *connection, the longest first
	wanted bool      // the next one that turns quiet makes room
}

func limitListener(l net.Listener, n int) *connections {
	return &connections{Listener: l, room: make(chan struct{}, n), closed: make(chan struct{})}
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
		return &connection{Conn: c, of: l}, nil
	default:
	}
	l.evict()
	select {
	case l.room <- struct{}{}:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wanted = false
		return &connection{Conn: c, of: l}, nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
}

// Close implements [net.Listener].
func (l *connections) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// turned notes what a connection does now: it is a hook of [http.Server].
func (l *connections) turned(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*connection)
	if !ok {
		return
	}
	l.mu.Lock()
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

// connection is an open one.
type connection struct {
	net.Conn
	of   *connections
	at   *list.Element // in quiet, nil for none; guarded by of.mu
	once sync.Once
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.once.Do(func() { <-c.of.room })
	return c.Conn.Close()
}
