package upstream

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"goblin/gateway/config"
	"goblin/registry/rawjson"
)

// unit is an isolation unit. Its connection is the server's own one, which the
// supervisor keeps, or one that unitLife keeps.
type unit struct {
	name       string
	extensions []byte          // of its client beyond the default, a raw object or nil
	era        Era             // Modern for one of Server.twins
	ctx        context.Context // ends with the unit
	cancel     context.CancelFunc

	// Guarded by Server.mu.
	alone   bool          // unitLife keeps the connection
	opening chan struct{} // closed when the attempt under way has ended; nil when none is
	conn    *link         // the last one, nil when unitLife has seen its end
	err     error         // why unitLife has none
	began   time.Time     // of the attempt under way
	failed  bool          // the last attempt did
	lost    error         // why it had one until just now; nil once the next attempt has ended
}

func (s *Server) newUnitLocked(name string) *unit {
	u := &unit{name: name}
	u.ctx, u.cancel = context.WithCancel(s.running)
	s.units[name] = u
	return u
}

// declares returns the capabilities for a unit's connection that is opened in the legacy
// era.
func (s *Server) declares(unit string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.units[unit]; u != nil && u.extensions != nil {
		return rawjson.SetMember(s.opt.Capabilities, "extensions", u.extensions)
	}
	return s.opt.Capabilities
}

// Unit is the connection of an isolation unit. With isolation: session each
// unit has its own, opened at its first use (the first unit takes the one
// whose lists are the catalog) and kept until EndUnit: it is opened anew when
// it was lost. Otherwise it is [Server.Await]. It blocks while the connection
// is being opened, until ctx ends or the server's timeout is over, and for 2 s at most when
// it was lost.
func (s *Server) Unit(ctx context.Context, name string) (Conn, error) {
	return s.UnitWith(ctx, name, nil)
}

// UnitWith is Unit for a client that declares extensions beyond the default, nil for none.
func (s *Server) UnitWith(ctx context.Context, name string, extensions []byte) (Conn, error) {
	conn, u, wait, err := s.unitConn(name, extensions, nil)
	if wait == nil {
		return orNil(conn), err
	}
	limit, why := s.unitWait(u)
	timer := time.After(limit)
	for wait != nil {
		select {
		case <-wait:
			conn, u, wait, err = s.unitConn(name, extensions, u)
		case <-timer:
			return nil, s.failure(ConnectionError, why, context.DeadlineExceeded)
		case <-ctx.Done():
			return nil, s.failure(ConnectionError, "is still starting", context.Cause(ctx))
		}
	}
	return orNil(conn), err
}

// unitWait says how long to wait for a unit's connection, and what to tell then.
func (s *Server) unitWait(u *unit) (limit time.Duration, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u != nil && u.lost != nil:
		return s.tune.restart, "is being restarted: " + reasonOf(u.lost)
	case s.returningLocked():
		return s.tune.restart, s.downLocked().Reason
	case s.first && s.opt.CachedLists != nil:
		return s.cfg.StartupTimeout, fmt.Sprintf("is still starting after %v (startup_timeout)", s.cfg.StartupTimeout)
	}
	return s.cfg.Timeout, fmt.Sprintf("is still starting after %v (timeout)", s.cfg.Timeout)
}

// unitConn returns the unit's connection, or why there is none, or what to
// wait for. known is the unit as it was when waiting began, nil if there was
// none: one that has ended meanwhile is not made again.
func (s *Server) unitConn(name string, extensions []byte, known *unit) (conn *link, u *unit, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running == nil, s.cfg.Isolation != config.PerSession && !s.perProject():
		conn, wait, err = s.sharedLocked()
		return conn, nil, wait, err
	case s.running.Err() != nil, !s.enabled:
		return nil, nil, nil, s.downLocked()
	}
	switch u = s.units[name]; {
	case u == nil && known != nil:
		return nil, nil, nil, s.failure(ConnectionError, "the client has gone", nil)
	case u == nil:
	case u.opening != nil:
		return nil, u, u.opening, nil
	case u.conn != nil && u.conn.Err() == nil:
		return u.conn, u, nil, nil
	case u.alone && u.conn != nil && u.conn.ctx.Err() != nil: // unitLife is about to see the end
		u.loseLocked(u.conn.err)
		return nil, u, u.opening, nil
	case u.alone:
		why := u.err
		if u.conn != nil {
			why = u.conn.Err()
		}
		return nil, u, nil, s.failure(codeOf(why), "its connection for this client is not there: "+reasonOf(why), unsent(why))
	}
	return s.newConnLocked(name, extensions, u)
}

// newConnLocked is unitConn for a unit that has no connection of its own yet; u is
// nil for one that is new.
func (s *Server) newConnLocked(name string, extensions []byte, u *unit) (conn *link, _ *unit, wait <-chan struct{}, err error) {
	if s.perProject() {
		if u, err = s.projectLocked(name); err != nil {
			return nil, nil, nil, err
		}
		s.startLocked(u)
		s.broadcastLocked()
		return nil, u, u.opening, nil
	}
	if conn, wait, err = s.sharedLocked(); conn == nil {
		return nil, u, wait, err
	}
	if u == nil {
		u = s.newUnitLocked(name)
		u.extensions = bytes.Clone(extensions)
	}
	switch {
	case s.heir == u && s.first:
		return nil, u, s.changed, nil
	case s.heir == u, s.owner == u: // the supervisor is about to see the end
		return nil, u, nil, s.failure(ConnectionError, "is not connected", unsent(conn.Err()))
	case s.owner == nil && conn.Err() == nil && u.extensions == nil:
		s.owner, u.conn = u, conn
		conn.unit.Store(&u.name)
		conn.adopted <- struct{}{}
		return conn, u, nil, nil
	}
	s.startLocked(u)
	return nil, u, u.opening, nil
}

// sharedLocked is the server's own connection in the same way.
func (s *Server) sharedLocked() (conn *link, wait <-chan struct{}, err error) {
	switch {
	case s.aliveLocked() != nil:
		return s.conn, nil, nil
	case s.first, s.returningLocked():
		return nil, s.changed, nil
	}
	return nil, nil, s.downLocked()
}

// startLocked gives a unit a connection of its own, for as long as it lives.
func (s *Server) startLocked(u *unit) {
	u.alone = true
	u.openLocked()
	s.tasks.Go(func() { s.unitLife(u) })
}

// unitLife keeps a unit's connection until the unit's end.
func (s *Server) unitLife(u *unit) {
	defer s.abandon(u)
	pause := s.tune.retry
	pause.Reset()
	why := "" // as was logged last
	for {
		up, err := s.unitConnection(u)
		if u.ctx.Err() != nil {
			return
		}
		if u.era == Modern && !s.dual() {
			return
		}
		if reason := reasonOf(err); up > 0 || reason != why {
			why = reason
			s.log.Warn("no connection for a client", "era", u.era, "err", err)
		} else { // for as long as the client stays
			s.log.Debug("still no connection for a client", "era", u.era, "err", err)
		}
		if config.IsUnresolved(err) {
			<-u.ctx.Done()
		}
		if sleep(u.ctx, pause.Next(up, s.tune.settled)) != nil {
			return
		}
		s.mu.Lock()
		u.openLocked()
		s.mu.Unlock()
	}
}

// openLocked marks the beginning of an attempt.
func (u *unit) openLocked() {
	if u.opening == nil {
		u.opening, u.began = make(chan struct{}), time.Now()
	}
}

// loseLocked lets callers that need the connection, which has ended, wait for the next.
func (u *unit) loseLocked(why error) {
	u.openLocked()
	u.lost = why
}

// abandon lets go the callers that wait for a unit that gets no connection any more.
func (s *Server) abandon(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.cancel()
	if u.opening != nil {
		close(u.opening)
		u.opening = nil
	}
	if s.twins[u.name] == u {
		delete(s.twins, u.name)
	}
}

// unitConnection is one connection of a unit from the attempt to its end. up
// is how long it was there, zero when the attempt failed.
func (s *Server) unitConnection(u *unit) (up time.Duration, err error) {
	connect := s.connect
	if u.era == Modern {
		connect = s.connectTwin
	}
	l, err := connect(u.ctx, u.name)
	if err == nil {
		s.opt.Handler.ConnOpened(s, l)
		s.sendNotices(l)
		if s.checked() {
			l.spawn(l.followTools)
		}
	}
	s.mu.Lock()
	close(u.opening)
	u.opening, u.conn, u.err, u.failed, u.lost = nil, l, err, err != nil, nil
	s.mu.Unlock()
	s.projectsChanged()
	if err != nil {
		return 0, err
	}
	since := time.Now()
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		s.prepare(l.ctx, l)
	}()
	select {
	case <-l.done:
	case <-u.ctx.Done():
		l.fail(s.failure(ConnectionError, "the connection of the client has ended", u.ctx.Err()))
	}
	err = l.Err()
	s.mu.Lock()
	u.conn, u.err = nil, err
	u.loseLocked(err)
	s.mu.Unlock()
	s.projectsChanged()
	<-ready
	s.unlisted(l)
	s.opt.Handler.ConnClosed(s, l)
	<-l.gone
	return max(time.Since(since), 1), err
}

// CloseUnit closes the connection of a unit that is gone. It does not wait; Run
// does.
func (s *Server) CloseUnit(name string) {
	s.endUnit(name)
	s.projectsChanged()
}

func (s *Server) endUnit(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if twin := s.twins[name]; twin != nil {
		delete(s.twins, name)
		twin.cancel()
	}
	u := s.units[name]
	if u == nil {
		return
	}
	delete(s.units, name)
	u.cancel()
	s.leaveProjectLocked()
	if s.heir == u {
		s.heir = nil
	}
	if s.owner == u {
		// What the unit left behind in the server must not meet another one.
		s.interruptLocked(errRecycle)
	}
}
