package downstream

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// limitListener limits the open connections. A new one above the limit closes the longest
// idle one, or waits while all have requests in flight.
type limitListener struct {
	net.Listener               // set before the first use
	slots        chan struct{} // one per open connection
	closed       chan struct{}
	once         sync.Once
	// acceptDeadline is the end of accepting while draining, in Unix nanoseconds, or 0.
	acceptDeadline atomic.Int64

	mu            sync.Mutex
	idle          list.List // of *limitConn, longest idle first
	closeNextIdle bool
	stateCounts   [http.StateClosed + 1]int
	http2Requests int           // in flight
	streams       int           // requests that last until shutdown
	wake          chan struct{} // closed at a change of stateCounts or streams; may be nil
}

func newLimitListener(limit int) *limitListener {
	return &limitListener{slots: make(chan struct{}, limit), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (l *limitListener) Accept() (net.Conn, error) {
	if err := l.checkDraining(nil); err != nil {
		return nil, err
	}
	c, err := l.Listener.Accept()
	if err != nil {
		if err = l.checkDraining(err); err == nil {
			return l.Accept()
		}
		return nil, err
	}
	select {
	case l.slots <- struct{}{}:
		return newLimitConn(c, l), nil
	default:
	}
	l.evict()
	select {
	case l.slots <- struct{}{}:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.closeNextIdle = false
		return newLimitConn(c, l), nil
	case <-l.closed:
		return nil, errors.Join(net.ErrClosed, c.Close())
	}
}

// Close implements [net.Listener].
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// setState is the ConnState hook of [http.Server].
func (l *limitListener) setState(conn net.Conn, state http.ConnState) {
	c := conn.(*limitConn)
	l.mu.Lock()
	if !c.isHTTP2 {
		l.stateCounts[c.state]--
		l.stateCounts[state]++
	}
	c.state = state
	l.notifyLocked()
	if c.idleElement != nil {
		l.idle.Remove(c.idleElement)
		c.idleElement = nil
	}
	var out *limitConn
	if state == http.StateNew || state == http.StateIdle {
		c.idleElement = l.idle.PushBack(c)
		if l.closeNextIdle && state == http.StateIdle {
			out = l.popIdleLocked()
		}
	}
	l.mu.Unlock()
	if out != nil {
		_ = out.Close() // its server notices
	}
}

// evict closes the longest idle connection, or the next one to become idle.
func (l *limitListener) evict() {
	l.mu.Lock()
	out := l.popIdleLocked()
	l.closeNextIdle = out == nil
	l.mu.Unlock()
	if out != nil {
		_ = out.Close() // its server notices
	}
}

func (l *limitListener) popIdleLocked() *limitConn {
	at := l.idle.Front()
	if at == nil {
		return nil
	}
	l.closeNextIdle = false
	c := l.idle.Remove(at).(*limitConn)
	c.idleElement = nil
	return c
}

// limitConn is an accepted connection. listener.mu guards its fields.
type limitConn struct {
	net.Conn
	listener    *limitListener
	idleElement *list.Element // may be nil
	state       http.ConnState
	isHTTP2     bool // not in stateCounts
	once        sync.Once
	reading     lazyDeadline
	writing     lazyDeadline
}

func newLimitConn(c net.Conn, of *limitListener) *limitConn {
	return &limitConn{
		Conn: c, listener: of, state: http.StateClosed, // until the first setState
		reading: lazyDeadline{apply: c.SetReadDeadline}, writing: lazyDeadline{apply: c.SetWriteDeadline},
	}
}

// Read implements [net.Conn].
func (c *limitConn) Read(p []byte) (n int, err error) {
	if err = c.reading.begin(); err != nil {
		return 0, err
	}
	for {
		if n, err = c.Conn.Read(p); !c.reading.retry(err) {
			return n, err
		}
	}
}

// Write implements [net.Conn].
func (c *limitConn) Write(p []byte) (n int, err error) {
	if err = c.writing.begin(); err != nil {
		return 0, err
	}
	for {
		wrote, err := c.Conn.Write(p[n:])
		n += wrote
		if !c.writing.retry(err) {
			return n, err
		}
	}
}

// SetReadDeadline implements [net.Conn].
func (c *limitConn) SetReadDeadline(t time.Time) error { return c.reading.set(t) }

// SetWriteDeadline implements [net.Conn].
func (c *limitConn) SetWriteDeadline(t time.Time) error { return c.writing.set(t) }

// SetDeadline implements [net.Conn].
func (c *limitConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements [net.Conn].
func (c *limitConn) Close() error {
	c.once.Do(func() { <-c.listener.slots })
	return c.Conn.Close()
}
