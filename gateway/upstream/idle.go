package upstream

import (
	"context"
	"log/slog"

	"goblin/registry"
)

func (s *Server) awaitWake(ctx context.Context) {
	s.setState(func(st *registry.ServerState) {
		st.State, st.LastError, st.PID, st.Stale = registry.StateSleeping, "", 0, !st.CachedAt.IsZero()
	})
	if s.hadConn {
		s.note(slog.LevelInfo, "stopped because idle; starts on next use")
	}
	s.hadConn = false // the next start is no restart
	<-ctx.Done()
}

// Wake starts an idle server without waiting. [Server.Await] then waits for the start.
// Extra calls do nothing.
func (s *Server) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asleep {
		s.interruptLocked(nil)
		s.hideLaterLocked()
	}
}

// Idle reports whether the server is connected and has no work of its own. uses counts
// the requests for its connection.
func (s *Server) Idle() (uses uint64, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uses, s.idleLocked()
}

func (s *Server) idleLocked() bool {
	l := s.liveConnLocked()
	if l == nil || len(s.units) > 0 || !s.Listed() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.requests) == 0
}

// Sleep stops an idle server until [Server.Wake], keeping its entries. It does nothing if
// the connection was requested since Idle returned uses.
func (s *Server) Sleep(uses uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses != uses || !s.idleLocked() {
		return
	}
	s.interruptLocked(nil)
	s.asleep, s.stopping, s.firstAttempt, s.reconnecting = true, true, false, false
}

// SetKeepAwake sets the displayed reason why an idle server keeps running, or "".
func (s *Server) SetKeepAwake(why string) {
	s.setState(func(st *registry.ServerState) { st.KeepAwakeReason = why })
}
