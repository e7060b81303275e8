package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Run supervises the server until ctx is done and returns when everything is stopped. It
// must be called once.
func (s *Server) Run(ctx context.Context) {
	run, cancel := context.WithCancel(ctx)
	defer s.memory.Release()
	s.mu.Lock()
	s.runCtx = run
	if s.opt.Replaces && s.enabled {
		s.hideLaterLocked()
	}
	s.mu.Unlock()
	for k := range s.known {
		s.known[k] = s.opt.Replaces || s.opt.CachedLists != nil
	}
	for run.Err() == nil {
		epoch, end := context.WithCancelCause(run)
		s.mu.Lock()
		s.interrupt = end
		off, asleep := !s.enabled || s.cfg.Problem != "", s.asleep
		s.mu.Unlock()
		switch {
		case off:
			s.awaitEnabled(epoch)
		case asleep:
			s.awaitWake(epoch)
		default:
			s.awaitStart(epoch)
			s.retry(epoch)
		}
		end(nil)
	}
	cancel()
	s.mu.Lock()
	s.interrupt = nil
	s.stopHidingLocked()
	s.mu.Unlock()
	// run is cancelled, so no new tasks start.
	s.tasks.Wait()
	s.mu.Lock()
	for range s.units {
		s.releaseProjectLocked()
	}
	s.units = make(map[string]*unit)
	s.mu.Unlock()
	s.endFirstAttempt(context.Background(), nil)
	s.setState(func(st *registry.ServerState) { st.State = registry.StateStopped; st.PID = 0 })
}

func (s *Server) awaitStart(ctx context.Context) {
	if s.opt.AwaitStart != nil {
		s.setState(func(st *registry.ServerState) { st.State = registry.StateConnecting })
		s.opt.AwaitStart(ctx)
	}
}

func (s *Server) awaitEnabled(ctx context.Context) {
	s.mu.Lock()
	enabled := s.enabled
	s.mu.Unlock()
	s.setState(func(st *registry.ServerState) {
		*st = registry.ServerState{Transport: st.Transport, Restarts: st.Restarts, State: registry.StateDisabled}
		if enabled && s.cfg.Problem != "" {
			st.State, st.LastError = registry.StateFailed, s.cfg.Problem
		}
	})
	s.listed.Store(false)
	s.hadConn = false // the next start is no restart
	s.endFirstAttempt(ctx, nil)
	<-ctx.Done()
}

func (s *Server) retry(ctx context.Context) {
	pause := s.tune.retry
	pause.Reset()
	s.loggedReason = ""
	for ctx.Err() == nil {
		up, err := s.runConn(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := pause.Next(up, s.tune.settled)
		s.recordFailure(ctx, err, up > 0, wait)
		if config.IsUnresolved(err) {
			<-ctx.Done()
			return
		}
		if errors.Is(err, errLogin) && s.opt.Authorizer != nil {
			s.awaitLogin(ctx)
			continue
		}
		_ = sleep(ctx, wait)
	}
}

// awaitLogin waits until a user has logged in, in any process. The server gets no
// requests before.
func (s *Server) awaitLogin(ctx context.Context) {
	for sleep(ctx, time.Second) == nil && s.opt.Authorizer.NeedsUser() {
	}
}

func (s *Server) recordFailure(ctx context.Context, err error, lost bool, wait time.Duration) {
	reason := errorReason(err)
	s.setState(func(st *registry.ServerState) {
		switch {
		case errors.Is(err, errLogin):
			st.State = registry.StateNeedsLogin
		case lost:
			st.State, st.Attempts = registry.StateRetrying, 0
		default:
			st.State = registry.StateFailed
		}
		st.LastError, st.PID, st.Stale, st.Attempts, st.NextAttempt = reason, 0, st.Listed, st.Attempts+1, time.Now().Add(wait)
	})
	if s.loggedReason != reason {
		s.loggedReason = reason
		s.note(slog.LevelError, reason)
		s.log.WarnContext(journaled, "not connected", "err", err)
	} else { // may repeat for weeks
		s.log.DebugContext(journaled, "still not connected", "err", err)
	}
	if !lost {
		s.mu.Lock()
		s.reconnecting = false
		s.mu.Unlock()
	}
	if lost && !s.listed.Load() && !s.lostUnlisted { // the next process may list
		s.lostUnlisted = true
		return
	}
	s.endFirstAttempt(ctx, err)
}

// up is the connection's lifetime, or zero if the attempt failed; err is the reason for
// its end.
func (s *Server) runConn(ctx context.Context) (up time.Duration, err error) {
	if s.isPerProject() {
		return s.followProject(ctx)
	}
	s.setState(func(st *registry.ServerState) { st.State = registry.StateConnecting })
	l, err := s.connect(ctx, "")
	if err != nil {
		return 0, err
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l *link) (up time.Duration, err error) {
	since := time.Now()
	ls := s.publish(l)

	alive, cancel := context.WithCancel(l.ctx)
	var wg sync.WaitGroup
	own := !s.isPerProject() // otherwise its unit does the rest
	if own {
		wg.Go(func() { s.prepare(alive, l) })
	}
	wg.Go(func() { ls.run(alive) })
	select {
	case <-l.done:
	case <-ctx.Done():
	}
	err = l.Err()
	s.unpublish(ctx)
	cancel()
	wg.Wait()
	if own {
		l.fail(s.newError(ConnectionError, "connection closed", jsonrpc.ErrClosed)) // before ConnClosed
		s.opt.Handler.ConnClosed(s, l)
		<-l.closed
	}
	return max(time.Since(since), 1), err
}

// prepare calls ConnReady for the connection, and again when a unit adopts it, until ctx
// is done.
func (s *Server) prepare(ctx context.Context, l *link) {
	for {
		s.opt.Handler.ConnReady(ctx, s, l)
		select {
		case <-l.adopted:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) publish(l *link) *lists {
	s.mu.Lock()
	s.connUnit, s.nextUnit = s.nextUnit, nil
	if u := s.connUnit; u != nil {
		l.unit.Store(&u.name)
	}
	s.mu.Unlock()
	s.sendNotices(l)
	if !s.isPerProject() {
		s.opt.Handler.ConnOpened(s, l)
	}
	ls := newLists(s, l)
	s.lists.Store(ls)
	again := s.hadConn && !s.isPerProject() // otherwise it may be another project's
	s.hadConn, s.loggedReason = true, ""
	s.setState(func(st *registry.ServerState) {
		info := l.Info()
		if again {
			st.Restarts++
		}
		st.State, st.LastError, st.Stale = registry.StateReady, "", st.Listed
		st.Transport, st.Era, st.ProtocolVersion = l.kind, info.Era.String(), info.Protocol
		st.ServerName = rawjson.GetString(info.ServerInfo, "name")
		st.ServerTitle = rawjson.GetString(info.ServerInfo, "title")
		st.ServerVersion = rawjson.GetString(info.ServerInfo, "version")
		st.Capabilities, st.Instructions = info.Capabilities, info.Instructions
		st.PID = l.pid
	})
	s.log.Info("connected", append([]any{"transport", l.kind, "protocol", l.Info().Protocol}, l.processAttrs()...)...)
	if s.opt.Hooks.ConnectionChanged != nil {
		s.opt.Hooks.ConnectionChanged(s.cfg.Name, true)
	}
	if again && s.opt.Hooks.Restarted != nil {
		s.opt.Hooks.Restarted(s.cfg.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = l
	if s.connUnit != nil {
		s.connUnit.conn = l
	}
	for _, u := range s.units {
		if !u.hasOwnConn && u != s.connUnit && u != s.nextUnit {
			s.startUnitLocked(u) // it had a connection before a restart
		}
	}
	for _, u := range s.modernUnits {
		if !u.hasOwnConn && l.info.Load().Era == Legacy && s.offersBothEras() {
			s.startUnitLocked(u)
		}
	}
	s.firstAttempt, s.reconnecting, s.lastErr = false, false, nil
	s.broadcastLocked()
	s.setAttempted()
	return ls
}

// ctx is done if the connection was closed on purpose.
func (s *Server) unpublish(ctx context.Context) {
	s.lists.Store(nil)
	s.mu.Lock()
	s.lastErr = s.conn.Err()
	if s.connUnit != nil {
		s.nextUnit = s.units[s.connUnit.name]
		if s.nextUnit != nil && s.nextUnit.hasOwnConn {
			s.nextUnit = nil
		}
	}
	s.conn, s.connUnit = nil, nil
	rests := s.stopping
	s.stopping = false
	s.reconnecting = s.enabled && s.runCtx.Err() == nil && !rests
	if errors.Is(context.Cause(ctx), errRecycle) {
		s.hadConn = false // no restart: its unit was closed
	}
	if s.reconnecting {
		s.hideLaterLocked()
	}
	s.broadcastLocked()
	s.mu.Unlock()
	if s.opt.Hooks.ConnectionChanged != nil {
		s.opt.Hooks.ConnectionChanged(s.cfg.Name, false)
	}
}

// hideLaterLocked hides the entries after the grace time, unless a list arrives earlier.
func (s *Server) hideLaterLocked() {
	if s.hideTimer != nil || s.opt.KeepEntries {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(s.tune.grace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.hideTimer == timer {
			s.opt.Registry.SetVisible(s.cfg.Name, false)
		}
	})
	s.hideTimer = timer
}

func (s *Server) stopHidingLocked() {
	if s.hideTimer != nil {
		s.hideTimer.Stop()
		s.hideTimer = nil
	}
}

// showEntries shows the entries again after a list of l arrived. Kinds that did not
// arrive yet stay outdated.
func (s *Server) showEntries(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == l && s.enabled {
		s.stopHidingLocked()
		s.opt.Registry.SetVisible(s.cfg.Name, true)
		s.broadcastLocked()
	}
}

func (s *Server) allListed(l *link) {
	l.listsFetched.Store(true)
	s.listed.Store(true)
	s.showEntries(l)
	s.setState(func(st *registry.ServerState) { st.Listed, st.Stale, st.CachedAt = true, false, time.Time{} })
	s.firstOnce.Do(func() { close(s.firstList) })
}

func (s *Server) connect(ctx context.Context, unit string) (*link, error) {
	limit := s.cfg.StartupTimeout
	first := "initialize"
	if s.cfg.Era == config.ModernEra {
		first = "server/discover"
	}
	late := s.newError(ConnectionError, fmt.Sprintf("did not answer %s within %s (startup_timeout)", first, config.ShortDuration(limit)), context.DeadlineExceeded)
	whole := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	switch s.cfg.Type {
	case config.SSE:
		l, err := s.dialAndShake(ctx, unit, dialSSE)
		if err == nil || !isOtherTransport(err) {
			return l, err
		}
		return nil, s.wrongTypeError(whole, unit, err, config.HTTP, dialHTTP)
	case config.HTTP:
		l, err := s.dialAndShake(ctx, unit, dialHTTP)
		var status errStatus
		switch {
		case s.cfg.Era == config.ModernEra || !errors.As(err, &status) || !isLegacyStatus(status):
			return l, err
		case s.cfg.TypeSet:
			return nil, s.wrongTypeError(whole, unit, err, config.SSE, dialSSE)
		}
		if l, sseErr := s.dialAndShake(ctx, unit, dialSSE); sseErr == nil || ctx.Err() != nil {
			return l, sseErr
		}
		return nil, err
	default:
		return s.dialAndShake(ctx, unit, dialStdio)
	}
}

const otherTransportTime = 5 * time.Second

// wrongTypeError tries the other transport of HTTP. It returns an error that names the
// correct type, or why if that fails too.
func (s *Server) wrongTypeError(ctx context.Context, unit string, why error, other config.Type, dial func(context.Context, *Server, string) (*link, error)) error {
	// The first attempt may have used all of startup_timeout.
	ctx, cancel := context.WithTimeout(ctx, min(s.cfg.StartupTimeout, otherTransportTime))
	defer cancel()
	l, err := s.dialAndShake(ctx, unit, dial)
	if err != nil {
		return why
	}
	title := map[config.Type]string{config.SSE: "SSE, the transport of 2024-11-05", config.HTTP: "Streamable HTTP"}[other]
	e := s.newError(ConnectionError, fmt.Sprintf("the server uses %s, but type is %s", title, s.cfg.Type), why)
	e.Fix = fmt.Sprintf("set %s in %q", s.cfg.Entry("type", string(other)), s.cfg.Name)
	l.fail(e)
	<-l.closed
	return e
}

// isOtherTransport reports whether a Streamable HTTP server may have sent this answer to
// an SSE request.
func isOtherTransport(err error) bool {
	var status errStatus
	return errors.Is(err, errNoStream) || errors.As(err, &status) && status >= 400 && status < 500 && status != 429
}

// explain adds the child's stderr.
func (s *Server) explain(err error, l *link) error {
	child, ok := l.wire.(*stdio)
	failure, own := errors.AsType[*Error](err)
	if !ok || !own || len(failure.Lines) > 0 {
		return err
	}
	e := *failure // others may hold it
	return child.explain(&e, errors.Is(err, context.DeadlineExceeded))
}

// isLegacyStatus reports whether servers of 2024-11-05 answer initialize by POST with a
// status (2025-11-25, transports, Backwards Compatibility).
func isLegacyStatus(status errStatus) bool { return status == 400 || status == 404 || status == 405 }

func (s *Server) dialAndShake(ctx context.Context, unit string, dial func(context.Context, *Server, string) (*link, error)) (*link, error) {
	l, err := dial(ctx, s, unit)
	if err != nil {
		return nil, err
	}
	asked := !s.legacy.Load() && !s.modernOnly.Load()
	// The context limits the handshake; the call's timeout must not come first.
	if err = l.handshake(ctx, 2*s.cfg.StartupTimeout); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		err = s.explain(err, l)
		again := asked && ctx.Err() == nil && l.isDiscoverFault(err)
		l.fail(err)
		<-l.closed
		if again {
			return s.dialAndShake(ctx, unit, dial)
		}
		return nil, err
	}
	l.startLivenessWatch()
	return l, nil
}
