package upstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"goblin/gateway/config"
)

// If a server offers both eras, its own connection is legacy; the catalog and state
// describe it. The first client of the modern era opens a modern connection beside it,
// one per isolation unit.
//
// Over HTTP both reach the same server. Over stdio they are two processes (`initialize`
// fixes a process's era), so the config must request it (era: both). Each process
// announces only its own changes. So a list comes from the process that last announced a
// change, and updates from the connection that subscribed.

func (s *Server) offersBothEras() bool {
	switch s.cfg.Era {
	case config.LegacyEra:
		return false
	case config.BothEras:
	default:
		if s.cfg.Type != config.HTTP {
			return false
		}
	}
	spoken := s.versions.Load()
	return s.legacy.Load() && s.cfg.Type != config.SSE && spoken != nil && slices.Contains(*spoken, modernRevision)
}

// Modern returns the modern connection of a unit beside its legacy one, opening it at
// first use. unit is "" for the shared connection. It returns nil if [Server.Conn] or
// [Server.Unit] must serve modern clients too. It waits for the first attempts for a
// limited time, or until ctx is done.
func (s *Server) Modern(ctx context.Context, unit string) Conn {
	conn, wait, limit := s.modernConn(unit)
	if wait == nil {
		return orNil(conn)
	}
	timer := time.After(limit)
	for wait != nil {
		select {
		case <-wait:
			conn, wait, _ = s.modernConn(unit)
		case <-timer:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return orNil(conn)
}

func orNil(l *link) Conn {
	if l == nil {
		return nil
	}
	return l
}

// modernConn returns a channel to wait for, and the maximum wait, if there is no
// connection.
func (s *Server) modernConn(name string) (conn *link, wait <-chan struct{}, limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runCtx == nil || s.runCtx.Err() != nil || !s.enabled {
		return nil, nil, 0
	}
	u := s.modernUnits[name]
	if u != nil && u.conn != nil {
		if u.conn.Err() == nil {
			return u.conn, nil, 0
		}
		u.startAttemptLocked() // superviseUnit hasn't noticed yet
	}
	switch {
	case u != nil && u.opening != nil:
		// A failed attempt is repeated, but requests don't wait for it.
		if limit = time.Until(u.attemptStart.Add(s.tune.modernWait)); u.failed || limit <= 0 {
			return nil, nil, 0
		}
		return nil, u.opening, limit
	case u != nil && u.hasOwnConn:
		return nil, nil, 0
	case s.conn == nil && s.firstAttempt:
		return nil, s.changed, s.cfg.Timeout
	case s.conn == nil || s.conn.info.Load().Era == Modern || !s.offersBothEras():
		return nil, nil, 0
	}
	if u == nil {
		u = s.newModernUnitLocked(name)
	}
	s.startUnitLocked(u)
	return nil, u.opening, s.tune.modernWait
}

func (s *Server) newModernUnitLocked(name string) *unit {
	u := &unit{name: name, era: Modern}
	u.ctx, u.cancel = context.WithCancel(s.runCtx)
	s.modernUnits[name] = u
	return u
}

func (s *Server) connectModern(ctx context.Context, unit string) (*link, error) {
	limit := s.cfg.StartupTimeout
	late := s.newError(ConnectionError, fmt.Sprintf("did not answer server/discover within %s (startup_timeout)", config.ShortDuration(limit)), context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	dial := dialStdio
	if s.cfg.Type == config.HTTP {
		dial = dialHTTP
	}
	l, err := dial(ctx, s, unit)
	if err != nil {
		return nil, err
	}
	l.second = true
	if err = l.handshakeModern(ctx, 2*limit); err != nil {
		l.fail(err)
		<-l.closed
		return nil, err
	}
	l.startLivenessWatch()
	s.log.Info("connected in the modern era", append([]any{"transport", l.kind}, l.processAttrs()...)...)
	return l, nil
}

func (l *link) handshakeModern(ctx context.Context, limit time.Duration) error {
	discovered := l.discover(ctx, limit)
	defer discovered.stop()
	<-discovered.done
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case l.Err() != nil:
		return l.Err()
	case discovered.err != nil:
		return discovered.err
	case !discovered.modern && !l.second:
		return l.srv.newError(BadReply, "does not offer revision "+modernRevision+", as era: modern requires; set era: auto", nil)
	case !discovered.modern:
		l.srv.versions.Store(&discovered.versions) // the server was replaced
		return l.srv.newError(BadReply, "no longer offers revision "+modernRevision, nil)
	}
	return l.openModern(ctx, discovered)
}
