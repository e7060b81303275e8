package downstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
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

// calm knows how many connections are in use, but for streams that last.
type calm struct {
	mu      sync.Mutex
	states  map[net.Conn]http.ConnState
	fresh   int           // have not sent a request
	busy    int           // have a request under way
	lasting int           // of these, streams that end with the server only
	wake    chan struct{} // closed at the next change; nil while nobody waits
}

func newCalm() *calm {
	return &calm{states: make(map[net.Conn]http.ConnState)}
}

func (t *calm) changedLocked() {
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// turned notes what a connection does now: it is a hook of [http.Server].
func (t *calm) turned(c net.Conn, state http.ConnState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := func(state http.ConnState, by int) {
		switch state {
		case http.StateNew:
			t.fresh += by
		case http.StateActive:
			t.busy += by
		}
	}
	if was, ok := t.states[c]; ok {
		count(was, -1)
	}
	count(state, 1)
	t.states[c] = state
	if state == http.StateClosed || state == http.StateHijacked {
		delete(t.states, c)
	}
	t.changedLocked()
}

// lasts takes a long-lived stream out of the count until ended is called.
func (t *calm) lasts() (ended func()) {
	by := func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.lasting += n
		t.changedLocked()
	}
	by(1)
	return func() { by(-1) }
}

// wait waits until nothing is under way, and nothing about to be if fresh is set.
func (t *calm) wait(limit time.Duration, fresh bool) {
	over := time.After(limit)
	for {
		t.mu.Lock()
		left := t.busy - t.lasting
		if fresh {
			left += t.fresh
		}
		if t.wake == nil {
			t.wake = make(chan struct{})
		}
		wake := t.wake
		t.mu.Unlock()
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

// drain lets srv finish what came, and what comes on connections that are there, if
// that is wanted.
func (h *HTTP) drain(ctx context.Context, srv *http.Server, open *connections) {
	if !errors.Is(context.Cause(ctx), ErrDrain) {
		return
	}
	open.leave()
	srv.SetKeepAlivesEnabled(false) // tells clients to go elsewhere
	h.calm.wait(firstLimit, true)
	h.calm.wait(drainLimit, false)
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
