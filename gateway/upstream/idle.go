package upstream

import (
	"context"
	"log/slog"

	"goblin/registry"
)

// awaitWake waits until the server is used.
func (s *Server) awaitWake(ctx context.Context) {
	s.setState(func(st *registry.ServerState) {
		st.State, st.LastError, st.PID, st.Stale = registry.StateSleeping, "", 0, !st.CachedAt.IsZero()
	})
	if s.hadConn {
		s.note(slog.LevelInfo, "stopped: nobody uses it; its next use starts it")
	}
	s.hadConn = false // what comes next is no restart
	<-ctx.Done()
}

// Wake starts a server that sleeps, once, however many call it, and has [Server.Await] wait
// for it. It does not wait itself.
func (s *Server) Wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asleep {
		s.interruptLocked(nil)
		s.hideLaterLocked()
	}
}

// Idle reports whether the server is connected and works on nothing that clients may not
// know of; uses counts how often its connection was wanted.
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

// Sleep stops the server until [Server.Wake], unless its connection was wanted since Idle
// told uses. Its entries stay.
func (s *Server) Sleep(uses uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses != uses || !s.idleLocked() {
		return
	}
	s.interruptLocked(nil)
	s.asleep, s.stopping, s.firstAttempt, s.reconnecting = true, true, false, false
}

// SetKeepAwake notes what keeps the server from sleeping although nobody calls it; "" for nothing.
func (s *Server) SetKeepAwake(why string) {
	s.setState(func(st *registry.ServerState) { st.KeepAwakeReason = why })
}
