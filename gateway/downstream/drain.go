package downstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"time"
)

// ErrDrain as the cause of a context makes [HTTP.Serve] leave its address to another
// process: it serves all accepted connections and lets requests in flight finish.
var ErrDrain = errors.New("stopping after requests in flight")

const (
	drainTimeout        = 25 * time.Second // for requests in flight
	firstRequestTimeout = time.Second      // for the first request on a new connection
	// A draining listener closes after acceptQuiet without a new connection, at most
	// after acceptTimeout. The system then resets waiting connections.
	acceptQuiet   = 200 * time.Microsecond
	acceptTimeout = 500 * time.Millisecond
)

// addStream excludes a request that lasts until shutdown from wait, until the returned
// function is called.
func (l *limitListener) addStream() (ended func()) {
	by := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.streams += n
		l.notifyLocked()
	}
	by(1)
	return func() { by(-1) }
}

// wait blocks until no request is in flight, at most for limit. With fresh it also waits
// for the first requests of new connections.
func (l *limitListener) wait(limit time.Duration, fresh bool) {
	over := time.After(limit)
	for {
		l.mu.Lock()
		left := l.stateCounts[http.StateActive] + l.http2Requests - l.streams
		if fresh {
			left += l.stateCounts[http.StateNew]
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

func (l *limitListener) notifyLocked() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

func (h *HTTP) drain(ctx context.Context, srv *http.Server) {
	if !errors.Is(context.Cause(ctx), ErrDrain) {
		return
	}
	h.listener.stopAccepting()
	srv.SetKeepAlivesEnabled(false) // clients then use new connections
	h.listener.wait(firstRequestTimeout, true)
	h.listener.wait(drainTimeout, false)
}

// stopAccepting accepts all waiting connections and closes the listener. The system would
// reset them, although their requests may not be repeatable.
func (l *limitListener) stopAccepting() {
	if d, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok && d.SetDeadline(time.Now().Add(acceptQuiet)) == nil {
		l.acceptDeadline.Store(time.Now().Add(acceptTimeout).UnixNano())
		select {
		case <-l.closed:
		case <-time.After(2 * acceptTimeout):
		}
	}
	_ = l.Close()
}

// checkDraining returns the error for Accept, or nil to accept again. It closes a
// draining listener when no connection waits.
func (l *limitListener) checkDraining(err error) error {
	until := l.acceptDeadline.Load()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case until == 0, err != nil && !late:
		return err
	case time.Now().UnixNano() > until, late && !hasPendingConn(l.Listener): // one may have arrived meanwhile
		return errors.Join(net.ErrClosed, l.Close())
	}
	return l.Listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(acceptQuiet))
}
