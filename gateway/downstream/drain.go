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
	drainTimeout        = 25 * time.Second // for requests in flight
	firstRequestTimeout = time.Second      // for the first request on a new connection
	// acceptQuiet is the time without a new connection after which a draining listener
	// closes. acceptTimeout bounds the wait: the system then resets the connections that
	// were not accepted.
	acceptQuiet   = 200 * time.Microsecond
	acceptTimeout = 500 * time.Millisecond
)

// addStream counts a request that lasts until the server stops, so that wait ignores it. The
// returned function removes it.
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

// wait blocks until no request is in flight, or for at most limit. With fresh it also waits
// for the first request of new connections.
func (l *limitListener) wait(limit time.Duration, fresh bool) {
	over := time.After(limit)
	for {
		l.mu.Lock()
		left := l.stateCounts[http.StateActive] - l.streams
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

// notifyLocked wakes wait.
func (l *limitListener) notifyLocked() {
	if l.wake != nil {
		close(l.wake)
		l.wake = nil
	}
}

// drain stops accepting and waits for the requests in flight if the cause of ctx is ErrDrain.
func (h *HTTP) drain(ctx context.Context, srv *http.Server) {
	if !errors.Is(context.Cause(ctx), ErrDrain) {
		return
	}
	h.listener.stopAccepting()
	srv.SetKeepAlivesEnabled(false) // tells clients to go elsewhere
	h.listener.wait(firstRequestTimeout, true)
	h.listener.wait(drainTimeout, false)
}

// stopAccepting closes the listener after all waiting connections were accepted. The system
// would reset waiting connections, with requests that must not be repeated.
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

// checkDraining returns the error that Accept must return, or nil to accept again. It closes a
// draining listener once no connection waits.
func (l *limitListener) checkDraining(err error) error {
	until := l.acceptDeadline.Load()
	late := errors.Is(err, os.ErrDeadlineExceeded)
	switch {
	case until == 0, err != nil && !late:
		return err
	case time.Now().UnixNano() > until, late && !hasPendingConn(l.Listener): // a connection may have come while this woke up
		return errors.Join(net.ErrClosed, l.Close())
	}
	return l.Listener.(interface{ SetDeadline(time.Time) error }).SetDeadline(time.Now().Add(acceptQuiet))
}
