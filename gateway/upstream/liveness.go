package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// watchLiveness ends the connection if the server vanished without closing it, as machines and proxies may.
// A ping finds that out.
func (r *remote) watchLiveness() {
	silence := time.NewTimer(r.srv.tune.livenessInterval)
	defer silence.Stop()
	for {
		arrived := r.framesReceived.Load()
		silence.Reset(r.srv.tune.livenessInterval)
		select {
		case <-r.ctx.Done():
			return
		case <-r.livenessRequests:
		case <-silence.C:
			if r.framesReceived.Load() != arrived || !r.hasStream() {
				continue
			}
		}
		if err := r.checkLiveness(); err != nil {
			r.fail(err)
			return
		}
	}
}

// checkLiveness pings the server. It fails if no frame arrives within the server's timeout, or the minimum
// for slow networks.
func (r *remote) checkLiveness() error {
	arrived, limit := r.framesReceived.Load(), max(r.srv.cfg.Timeout, r.srv.tune.livenessTimeout)
	c := Call{Context: r.ctx, Method: "ping", Timeout: limit, probe: true}
	if r.info.Load().Era == Modern {
		c.Method = "server/discover" // which has no ping
	}
	_, err := r.Call(&c)
	if !errors.Is(err, context.DeadlineExceeded) || r.framesReceived.Load() != arrived {
		return nil
	}
	return r.srv.newError(ConnectionError, fmt.Sprintf("has vanished: no answer to %s within %v", c.Method, limit), err)
}

// hasStream reports whether the server has a stream for its own messages.
func (r *remote) hasStream() bool {
	if ls := r.listener.Load(); ls != nil {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return ls.open != nil
	}
	return r.wire.isLegacyOnly() || r.streamOpen.Load()
}

// startLivenessWatch starts watchLiveness, except for a child process, whose exit is noticed anyway.
func (l *link) startLivenessWatch() {
	if r, ok := l.wire.(interface{ watchLiveness() }); ok {
		l.spawn(r.watchLiveness)
	}
}

// requestLivenessCheck makes watchLiveness ping the server.
func (l *link) requestLivenessCheck() {
	select {
	case l.livenessRequests <- struct{}{}:
	default: // it will
	}
}
