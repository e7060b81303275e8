package upstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"goblin/gateway/config"
)

// A server that offers both eras is connected to in the legacy one: that
// connection is the server's own one, of its catalog and its health. Where the
// config does not choose one of them, a second one of the modern era, its twin, is
// opened beside it by the first client of that era, one for each isolation unit that
// has such a client, and kept as long as the server runs and the unit lives.
//
// Over HTTP both reach the same server. Over stdio they are two processes, so that
// the config has to ask for them (era: both):
// `initialize` chooses the era of a process (2026-07-28), so one
// cannot serve both, and what happens in one is announced by that one only. So
// each kind of list is fetched from the process that last said that it changed,
// and what is subscribed to over a connection is announced by it.

// offersBothEras reports whether a server with a legacy connection also offers the modern era and may use
// it.
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

// Modern is the connection of a unit ("" for the one that all share) in the
// modern era beside one of the legacy era, opened at its first use. It is nil
// where [Server.Conn] or [Server.Unit] serve clients of the modern era too: the
// server offers one era only, or the connection cannot be opened. It blocks
// while the first attempts to connect go on, but not for long, and until ctx
// ends at most.
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

// modernConn returns a unit's connection in the modern era. Without one, it returns a channel to wait for
// and the limit of that wait.
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
		u.startAttemptLocked() // superviseUnit is about to see the end
	}
	switch {
	case u != nil && u.opening != nil:
		// One that failed is tried again, but nobody waits for that.
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

// connectModern opens a connection of the modern era within startup_timeout.
func (s *Server) connectModern(ctx context.Context, unit string) (*link, error) {
	limit := s.cfg.StartupTimeout
	late := s.newError(ConnectionError, fmt.Sprintf("did not answer server/discover within %v (startup_timeout)", limit), context.DeadlineExceeded)
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
	s.log.Info("connected in the modern era too", append([]any{"transport", l.kind}, l.processAttrs()...)...)
	return l, nil
}

// handshakeModern opens a connection in the modern era alone.
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
		return l.srv.newError(BadReply, "does not offer revision "+modernRevision+", which the config wants (era: modern); era: auto takes what it offers", nil)
	case !discovered.modern:
		l.srv.versions.Store(&discovered.versions) // it was replaced meanwhile
		return l.srv.newError(BadReply, "does not offer revision "+modernRevision+" any more", nil)
	}
	return l.openModern(ctx, discovered)
}
