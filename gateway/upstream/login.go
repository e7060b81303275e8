package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"goblin/gateway/config"
	"goblin/gateway/oauth"
	"goblin/gateway/upstream/stderr"
	"goblin/registry/termtext"
)

// Authorizer has the login of the server's user; nil for a server that has none.
func (s *Server) Authorizer() *oauth.Authorizer { return s.opt.Authorizer }

// LoginError is the Error of a request that a login by the user would mend; why says why
// there is none.
func (s *Server) LoginError(why, cause error) *Error {
	return s.newError(LoginRequired, fmt.Sprintf("needs login: %v; run \"%s\"", why, termtext.Goblin("login", s.cfg.Name)), cause)
}

// needsKey returns the Error of a request that was refused by 401 without a challenge: most
// such servers want a key in a header, and have no logins.
func (s *Server) needsKey() *Error {
	e := s.newError(LoginRequired, "needs login: HTTP 401 Unauthorized without WWW-Authenticate", errLogin)
	e.Fix = "put its API key into a header: " + stderr.KeyHeader(&s.cfg, "Bearer")
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Headers)) {
		if config.LooksSecret(name, s.cfg.Headers[name]) {
			e.Reason = fmt.Sprintf("needs login: the configured %s header was refused (HTTP 401)", name)
			e.Fix = "put a key that is valid into headers: " + name
			break
		}
	}
	e.Fix += fmt.Sprintf("; if it has logins, run \"%s\"", termtext.Goblin("login", s.cfg.Name))
	return e
}

// LoggedIn connects at once where connections wait for a login, and leaves those that are
// there alone. It does not wait.
func (s *Server) LoggedIn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.liveConnLocked() == nil {
		s.interruptLocked(errRestart)
	} else {
		s.closeUnitsLocked(func(u *unit) bool { return u.conn == nil && errors.Is(u.err, errLogin) })
	}
}

// LoggedOut ends the connections if nobody is logged in any more, which their calls are told.
// It does not wait.
func (s *Server) LoggedOut() {
	why := s.opt.Authorizer.MissingLogin()
	if why == nil {
		return
	}
	s.mu.Lock()
	links := []*link{s.conn}
	for _, units := range []map[string]*unit{s.units, s.modernUnits} {
		for _, u := range units {
			links = append(links, u.conn)
		}
	}
	s.mu.Unlock()
	for _, l := range links {
		if l != nil {
			l.fail(s.LoginError(why, errLogin))
		}
	}
}

// AwaitListed returns when the server is connected and has listed, or cannot connect, or
// ctx ends.
func (s *Server) AwaitListed(ctx context.Context) {
	for !s.isPerProject() { // a project's connects at its next use
		s.mu.Lock()
		l, first, changed := s.liveConnLocked(), s.firstAttempt, s.changed
		s.mu.Unlock()
		if l != nil && l.listsFetched.Load() || l == nil && !first {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
