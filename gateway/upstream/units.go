package upstream

import (
	"context"
	"time"

	"goblin/gateway/config"
)

// unit is an isolation unit's connection, now and again.
type unit struct {
	name   string
	ctx    context.Context // ends with the unit
	cancel context.CancelFunc

	// Guarded by Server.mu.
	opening chan struct{} // closed when the attempt under way has ended; nil when none is
	conn    *link         // nil before the first attempt ended well
	err     error         // of the last attempt
	pause   backoffs
	until   time.Time // no attempt before
}

// Unit is the connection of an isolation unit. With isolation: session each
// unit has its own, opened at its first use (the first unit takes the one
// whose lists are the catalog) and opened again when it is used after its
// end; otherwise it is [Server.Await]. It blocks while the connection is being
// opened, until ctx ends.
func (s *Server) Unit(ctx context.Context, name string) (Conn, error) {
	conn, err := s.Await(ctx)
	if err != nil || s.cfg.Isolation != config.PerSession {
		return conn, err
	}
	for {
		conn, opening, err := s.unitConn(name)
		if opening == nil {
			if err != nil {
				return nil, err
			}
			return conn, nil
		}
		select {
		case <-opening:
		case <-ctx.Done():
			return nil, s.failure(ConnectionError, "its connection for this client is still starting", context.Cause(ctx))
		}
	}
}

// unitConn returns the unit's connection, or why there is none, or what to
// wait for.
func (s *Server) unitConn(name string) (conn *link, opening <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil || s.running.Err() != nil || !s.enabled {
		return nil, nil, s.downLocked()
	}
	u := s.units[name]
	if u == nil {
		u = &unit{name: name, pause: s.tune.retry}
		u.pause.reset()
		u.ctx, u.cancel = context.WithCancel(s.running)
		s.units[name] = u
	}
	switch {
	case u.opening != nil:
		return nil, u.opening, nil
	case u.conn != nil && u.conn.Err() == nil:
		return u.conn, nil, nil
	case s.conn != nil && s.owner == nil && s.conn.Err() == nil:
		s.owner, u.conn = u, s.conn
		u.conn.unit.Store(&name)
		return u.conn, nil, nil
	case time.Now().Before(u.until):
		return nil, nil, s.failure(ConnectionError, "its connection for this client is not there: "+reasonOf(u.err), u.err)
	}
	u.opening = make(chan struct{})
	s.tasks.Go(func() { s.unitLife(u) })
	return nil, u.opening, nil
}

// unitLife opens a unit's connection and stays until its end.
func (s *Server) unitLife(u *unit) {
	l, err := s.connect(u.ctx, u.name)
	if err == nil {
		s.opt.Handler.Opened(s, l)
	}
	s.mu.Lock()
	close(u.opening)
	u.opening = nil
	if err != nil {
		u.err = err
		u.until = time.Now().Add(u.pause.failed.NextBackOff())
		s.mu.Unlock()
		s.log.Warn("no connection for a client", "err", err)
		return
	}
	u.conn = l
	s.mu.Unlock()

	since := time.Now()
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		s.prepare(l.ctx, l)
	}()
	select {
	case <-l.done:
	case <-u.ctx.Done():
	}
	s.mu.Lock()
	u.err = l.Err()
	if time.Since(since) >= s.tune.settled {
		u.pause.reset()
	} else {
		u.until = time.Now().Add(u.pause.lost.NextBackOff())
	}
	s.mu.Unlock()
	l.fail(s.failure(ConnectionError, "the connection of the client has ended", u.ctx.Err()))
	<-ready
	s.opt.Handler.Down(s, l)
	<-l.gone
}

// EndUnit closes the connection of a unit that is gone. It does not wait; Run
// does.
func (s *Server) EndUnit(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.units[name]
	if u == nil {
		return
	}
	delete(s.units, name)
	u.cancel()
	if s.heir == u {
		s.heir = nil
	}
	if s.owner == u {
		// What the unit left behind in the server must not meet another one.
		s.interruptLocked(errRecycle)
	}
}
