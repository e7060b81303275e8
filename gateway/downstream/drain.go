package downstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// ErrDrain is the cause of a context by which [HTTP.Serve] ends for another process
// to take over, unnoticed by clients. No connection that was taken is lost, requests on
// it are served, and those under way have a while to be answered.
var ErrDrain = errors.New("asked to end when what is under way is done")

const (
	drainLimit = 25 * time.Second // for requests under way
	firstLimit = time.Second      // for the first request on a new connection
	// acceptPause is how long nobody may have come before the listener is closed,
	// and acceptLimit bounds that: what waits to be accepted then is lost.
	acceptPause = 200 * time.Microsecond
	acceptLimit = 500 * time.Millisecond
)

// outlasts marks the request of a connection as a stream that ends with the server only,
// so that wait does not wait for it, until ended is called.
func (l *connections) outlasts() (ended func()) {
	by := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.streams += n
		l.changedLocked()
	}
	by(1)
	return func() { by(-1) }
}

// wait blocks until no request is in flight or the limit is over. With fresh it also waits
// for the first request of new connections.
func (l *connections) wait(limit time.Duration, fresh bool) {
	over := time.After(limit)
	for {
		l.mu.Lock()
		left := l.in[http.StateActive] - l.streams
		if fresh {
			left += l.in[http.StateNew]
		}
		if l.wake == nil {
			l.wake = make(chan struct{})
		}
		wake := l.wake
		l.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-wake:
		case <-over:
			return
		}
	}
}

// changedLocked wakes wait.
func (l *connections) changedLocked() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// drain lets srv finish what came, and what comes on connections that are there, if
// that is wanted.
func (h *HTTP) drain(ctx context.Context, srv *http.Server) {
	if !errors.Is(context.Cause(ctx), ErrDrain) {
		return
	}
	h.conns.leave()
	srv.SetKeepAlivesEnabled(false) // tells clients to go elsewhere
	h.conns.wait(firstLimit, true)
	h.conns.wait(drainLimit, false)
}

// leave closes the listener when all waiting connections have been accepted: the
// system would end their connections, with requests that nobody may repeat.
func (l *connections) leave() {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok && d.SetDeadline(time.Now().Add(acceptPause)) == nil {
		l.leaving.Store(time.Now().Add(acceptLimit).UnixNano())
		select {
		case <-l.closed:
		case <-time.After(2 * acceptLimit):
		}
	}
	_ = l.Close()
}

// left decides Accept's next step while the listener is left: once nobody comes, it closes
// it.
func (l *connections) left(err error) error {
	until := l.leaving.Load()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case until == 0, err != nil && !late:
		return err
	case time.Now().UnixNano() > until, late && !waiting(l.Listener): // who came while this woke up
		return errors.Join(net.ErrClosed, l.Close())
	}
	return l.Listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(acceptPause))
}
