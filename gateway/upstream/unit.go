package upstream

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"goblin/gateway/config"
	"goblin/registry/rawjson"
)

// unit is an isolation unit. Its connection is either the server's own, kept by the
// supervisor, or its own, kept by superviseUnit.
type unit struct {
	name       string
	extensions []byte // of its client, raw object or nil
	era        Era    // Modern if in Server.modernUnits
	ctx        context.Context
	cancel     context.CancelFunc

	// Guarded by Server.mu.
	hasOwnConn   bool          // kept by superviseUnit
	opening      chan struct{} // closed after the current attempt; nil without
	conn         *link         // last one; nil once superviseUnit noticed its end
	err          error
	attemptStart time.Time
	failed       bool
	lostErr      error // why the last connection closed; nil after the next attempt
}

func (s *Server) newUnitLocked(name string) *unit {
	u := &unit{name: name}
	u.ctx, u.cancel = context.WithCancel(s.runCtx)
	s.units[name] = u
	return u
}

func (s *Server) unitCapabilities(unit string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u := s.units[unit]; u != nil && u.extensions != nil {
		return rawjson.SetMember(s.opt.Capabilities, "extensions", u.extensions)
	}
	return s.opt.Capabilities
}

// Unit returns the connection of an isolation unit. With isolation: session, each unit
// has its own until CloseUnit, opened at first use and reopened after a loss. The first
// unit adopts the server's own. Otherwise it is [Server.Await]. It waits until the
// connection is open, ctx is done or the server's timeout passed. After a loss it waits
// at most 2 s.
func (s *Server) Unit(ctx context.Context, name string) (Conn, error) {
	return s.UnitWith(ctx, name, nil)
}

// UnitWith is Unit for a client with additional extensions, which may be nil.
func (s *Server) UnitWith(ctx context.Context, name string, extensions []byte) (Conn, error) {
	conn, u, wait, err := s.unitConn(name, extensions, nil)
	if wait == nil {
		return orNil(conn), err
	}
	limit, why := s.unitTimeout(u)
	timer := time.After(limit)
	for wait != nil {
		select {
		case <-wait:
			conn, u, wait, err = s.unitConn(name, extensions, u)
		case <-timer:
			return nil, s.newError(ConnectionError, why, context.DeadlineExceeded)
		case <-ctx.Done():
			return nil, s.newError(ConnectionError, "is still starting", context.Cause(ctx))
		}
	}
	return orNil(conn), err
}

// unitTimeout returns the maximum wait for a unit's connection and the error text after
// it.
func (s *Server) unitTimeout(u *unit) (limit time.Duration, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case u != nil && u.lostErr != nil:
		return s.reconnectWait(), "is being restarted: " + errorReason(u.lostErr)
	case s.isReconnectingLocked():
		return s.reconnectWait(), s.downErrorLocked().Reason
	case s.firstAttempt && s.opt.CachedLists != nil:
		return s.cfg.StartupTimeout, fmt.Sprintf("is still starting after %s (startup_timeout)", config.ShortDuration(s.cfg.StartupTimeout))
	}
	return s.cfg.Timeout, fmt.Sprintf("is still starting after %s (timeout)", config.ShortDuration(s.cfg.Timeout))
}

// unitConn returns the unit's connection, an error, or a channel to wait for. known is
// the unit when waiting began, or nil; it is not created again if it was closed
// meanwhile.
func (s *Server) unitConn(name string, extensions []byte, known *unit) (conn *link, u *unit, wait <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.runCtx == nil, s.cfg.Isolation != config.PerSession && !s.isPerProject():
		conn, wait, err = s.sharedConnLocked()
		return conn, nil, wait, err
	case s.runCtx.Err() != nil, !s.enabled:
		return nil, nil, nil, s.downErrorLocked()
	}
	switch u = s.units[name]; {
	case u == nil && known != nil:
		return nil, nil, nil, s.newError(ConnectionError, "the client disconnected", nil)
	case u == nil:
	case u.opening != nil:
		return nil, u, u.opening, nil
	case u.conn != nil && u.conn.Err() == nil:
		return u.conn, u, nil, nil
	case u.hasOwnConn && u.conn != nil && u.conn.ctx.Err() != nil: // superviseUnit hasn't noticed yet
		u.connLostLocked(u.conn.err)
		return nil, u, u.opening, nil
	case u.hasOwnConn:
		why := u.err
		if u.conn != nil {
			why = u.conn.Err()
		}
		return nil, u, nil, s.newError(errorCode(why), "not connected for this client: "+errorReason(why), unsentCause(why))
	}
	return s.newConnLocked(name, extensions, u)
}

// newConnLocked is unitConn for a unit without its own connection. u is nil for a new
// unit.
func (s *Server) newConnLocked(name string, extensions []byte, u *unit) (conn *link, _ *unit, wait <-chan struct{}, err error) {
	if s.isPerProject() {
		if u, err = s.projectLocked(name); err != nil {
			return nil, nil, nil, err
		}
		s.startUnitLocked(u)
		s.broadcastLocked()
		return nil, u, u.opening, nil
	}
	if conn, wait, err = s.sharedConnLocked(); conn == nil {
		return nil, u, wait, err
	}
	if u == nil {
		u = s.newUnitLocked(name)
		u.extensions = bytes.Clone(extensions)
	}
	switch {
	case s.nextUnit == u && s.firstAttempt:
		return nil, u, s.changed, nil
	case s.nextUnit == u, s.connUnit == u: // the supervisor hasn't noticed yet
		return nil, u, nil, s.newError(ConnectionError, "is not connected", unsentCause(conn.Err()))
	case s.connUnit == nil && conn.Err() == nil && u.extensions == nil:
		s.connUnit, u.conn = u, conn
		conn.unit.Store(&u.name)
		conn.adopted <- struct{}{}
		return conn, u, nil, nil
	}
	s.startUnitLocked(u)
	return nil, u, u.opening, nil
}

// sharedConnLocked returns the server's own connection. If it is nil, wait and err are as
// in unitConn.
func (s *Server) sharedConnLocked() (conn *link, wait <-chan struct{}, err error) {
	switch {
	case s.liveConnLocked() != nil:
		return s.conn, nil, nil
	case s.firstAttempt, s.isReconnectingLocked():
		return nil, s.changed, nil
	}
	return nil, nil, s.downErrorLocked()
}

func (s *Server) startUnitLocked(u *unit) {
	u.hasOwnConn = true
	u.startAttemptLocked()
	s.tasks.Go(func() { s.superviseUnit(u) })
}

func (s *Server) superviseUnit(u *unit) {
	defer s.releaseWaiters(u)
	pause := s.tune.retry
	pause.Reset()
	why := ""
	for {
		up, err := s.runUnitConn(u)
		if u.ctx.Err() != nil {
			return
		}
		if u.era == Modern && !s.offersBothEras() {
			return
		}
		if reason := errorReason(err); up > 0 || reason != why {
			why = reason
			s.log.Warn("no connection for a client", "era", u.era, "err", err)
		} else { // may repeat as long as the client stays
			s.log.Debug("still no connection for a client", "era", u.era, "err", err)
		}
		if config.IsUnresolved(err) {
			<-u.ctx.Done()
		}
		if sleep(u.ctx, pause.Next(up, s.tune.settled)) != nil {
			return
		}
		s.mu.Lock()
		u.startAttemptLocked()
		s.mu.Unlock()
	}
}

func (u *unit) startAttemptLocked() {
	if u.opening == nil {
		u.opening, u.attemptStart = make(chan struct{}), time.Now()
	}
}

func (u *unit) connLostLocked(why error) {
	u.startAttemptLocked()
	u.lostErr = why
}

func (s *Server) releaseWaiters(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.cancel()
	if u.opening != nil {
		close(u.opening)
		u.opening = nil
	}
	if s.modernUnits[u.name] == u {
		delete(s.modernUnits, u.name)
	}
}

// up is the connection's lifetime, or zero if the attempt failed.
func (s *Server) runUnitConn(u *unit) (up time.Duration, err error) {
	connect := s.connect
	if u.era == Modern {
		connect = s.connectModern
	}
	l, err := connect(u.ctx, u.name)
	if err == nil {
		s.opt.Handler.ConnOpened(s, l)
		s.sendNotices(l)
		l.ownTools.Store(true)
		if s.verifiesLists() {
			l.startFollowing()
		}
	}
	s.mu.Lock()
	close(u.opening)
	u.opening, u.conn, u.err, u.failed, u.lostErr = nil, l, err, err != nil, nil
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
		l.fail(s.newError(ConnectionError, "the client disconnected", u.ctx.Err()))
	}
	err = l.Err()
	s.mu.Lock()
	u.conn, u.err = nil, err
	u.connLostLocked(err)
	s.mu.Unlock()
	s.projectsChanged()
	<-ready
	s.relistEnded(l)
	s.opt.Handler.ConnClosed(s, l)
	<-l.closed
	return max(time.Since(since), 1), err
}

// CloseUnit closes the connection of a unit without waiting. Run waits for it.
func (s *Server) CloseUnit(name string) {
	s.endUnit(name)
	s.projectsChanged()
}

func (s *Server) endUnit(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if twin := s.modernUnits[name]; twin != nil {
		delete(s.modernUnits, name)
		twin.cancel()
	}
	u := s.units[name]
	if u == nil {
		return
	}
	delete(s.units, name)
	u.cancel()
	s.releaseProjectLocked()
	if s.nextUnit == u {
		s.nextUnit = nil
	}
	if s.connUnit == u {
		// Its state in the server must not reach another unit.
		s.interruptLocked(errRecycle)
	}
}
