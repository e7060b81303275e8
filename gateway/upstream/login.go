package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"goblin/gateway/oauth"
	"goblin/gateway/upstream/stderr"
	"goblin/registry/secrettext"
	"goblin/registry/termtext"
)

// Authorizer returns the login of the server, or nil if it has none.
func (s *Server) Authorizer() *oauth.Authorizer { return s.opt.Authorizer }

// LoginError returns the Error of a request that requires a login by the user. why is the
// reason that the login is missing.
func (s *Server) LoginError(why, cause error) *Error {
	return s.newError(LoginRequired, fmt.Sprintf("needs login: %v; run \"%s\"", why, termtext.Goblin("login", s.cfg.Name)), cause)
}

// needsKey returns the Error for a 401 without a challenge. Most such servers want an API
// key in a header and have no logins.
func (s *Server) needsKey() *Error {
	e := s.newError(LoginRequired, "needs login: HTTP 401 Unauthorized without WWW-Authenticate", errLogin)
	e.Fix = "add its API key as a header: " + stderr.KeyHeader(&s.cfg, "Bearer")
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Headers)) {
		if secrettext.Looks(name, s.cfg.Headers[name]) {
			e.Reason = fmt.Sprintf("needs login: the configured %s header was refused (HTTP 401)", name)
			e.Fix = "set a valid key in headers: " + name
			break
		}
	}
	e.Fix += fmt.Sprintf("; if it supports logins, run \"%s\"", termtext.Goblin("login", s.cfg.Name))
	return e
}

// LoggedIn connects at once where a connection waits for a login. It leaves open
// connections alone and doesn't block.
func (s *Server) LoggedIn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.liveConnLocked() == nil {
		s.interruptLocked(errRestart)
	} else {
		s.closeUnitsLocked(func(u *unit) bool { return u.conn == nil && errors.Is(u.err, errLogin) })
	}
}

// LoggedOut closes all connections with a LoginError if the login is missing. It doesn't
// block.
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

// AwaitListed waits until the server has connected and listed, the connection failed, or
// ctx is done.
func (s *Server) AwaitListed(ctx context.Context) {
	for !s.isPerProject() { // a project connects at its next use
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
