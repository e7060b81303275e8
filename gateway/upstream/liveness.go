package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watch ends the connection when the server is gone and nothing says so: a
// machine or a proxy on the way that vanished leaves connections that are half
// open. The server is asked for a sign of life when a call was not answered
// within timeout, and where it is to be heard of its own accord, after a while without a
// word, as what it announces would be missed.
func (r *remote) watch() {
	silence := time.NewTimer(r.srv.tune.pulse)
	defer silence.Stop()
	for {
		arrived := r.arrived.Load()
		silence.Reset(r.srv.tune.pulse)
		select {
		case <-r.ctx.Done():
			return
		case <-r.doubts:
		case <-silence.C:
			if r.arrived.Load() != arrived || !r.listening() {
				continue
			}
		}
		if err := r.feel(); err != nil {
			r.fail(err)
			return
		}
	}
}

// feel pings the server, and fails when no frame at all arrives within the server's
// timeout, or what a slow network may take if that is longer. An error is an answer,
// too, and a server that is slow with other answers is not taken for dead: no call may
// take longer without a word.
func (r *remote) feel() error {
	arrived, limit := r.arrived.Load(), max(r.srv.cfg.Timeout, r.srv.tune.sign)
	c := Call{Context: r.ctx, Method: "ping", Timeout: limit, own: true}
	if r.info.Load().Era == Modern {
		c.Method = "server/discover" // which has no ping
	}
	_, err := r.Call(&c)
	if !errors.Is(err, context.DeadlineExceeded) || r.arrived.Load() != arrived {
		return nil
	}
	return r.srv.failure(ConnectionError, fmt.Sprintf("has vanished: no answer to %s within %v", c.Method, limit), err)
}

// listening reports whether the server has a stream on which it may speak of
// its own accord.
func (r *remote) listening() bool {
	if ls := r.listens.Load(); ls != nil {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return ls.open != nil
	}
	return r.wire.old() || r.hears.Load()
}

// guard starts watch, which a child does not need: its end shows.
func (l *link) guard() {
	if r, ok := l.wire.(interface{ watch() }); ok {
		l.spawn(r.watch)
	}
}

// doubt makes watch ask for a sign of life.
func (l *link) doubt() {
	select {
	case l.doubts <- struct{}{}:
	default: // it will
	}
}
