package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goblin/gateway/config"
)

// watchLiveness pings silent servers, and closes the connection if the server vanished.
// Machines and proxies may disappear without closing it.
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

// checkLiveness fails if no frame arrives within the server's timeout, or within the
// minimum for slow networks.
func (r *remote) checkLiveness() error {
	arrived, limit := r.framesReceived.Load(), max(r.srv.cfg.Timeout, r.srv.tune.livenessTimeout)
	c := Call{Context: r.ctx, Method: "ping", Timeout: limit, probe: true}
	if r.info.Load().Era == Modern {
		c.Method = "server/discover" // the modern era has no ping
	}
	_, err := r.Call(&c)
	if !errors.Is(err, context.DeadlineExceeded) || r.framesReceived.Load() != arrived {
		return nil
	}
	return r.srv.newError(ConnectionError, fmt.Sprintf("does not respond: no answer to %s within %s", c.Method, config.ShortDuration(limit)), err)
}

func (r *remote) hasStream() bool {
	if ls := r.listener.Load(); ls != nil {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		return ls.open != nil
	}
	return r.wire.isLegacyOnly() || r.streamOpen.Load()
}

// startLivenessWatch starts watchLiveness for remote servers. A child's exit is noticed
// anyway.
func (l *link) startLivenessWatch() {
	if r, ok := l.wire.(interface{ watchLiveness() }); ok {
		l.spawn(r.watchLiveness)
	}
}

func (l *link) requestLivenessCheck() {
	select {
	case l.livenessRequests <- struct{}{}:
	default: // already requested
	}
}
