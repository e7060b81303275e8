package servers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/oauth"
	"goblin/registry"
)

// loginCheck is how often it is looked whether somebody logged in or out by another
// process.
const loginCheck = time.Second

// Login logs the user in at a server by a browser; who else does meanwhile takes part
// in the same login. The result is who that is, as far as it is known. Nothing else of
// the server waits for it.
func (f *Manager) Login(ctx context.Context, server string, u oauth.UserPrompts) (user string, err error) {
	b, err := f.remote(server)
	if err != nil {
		return "", err
	}
	l, err := b.out.login.Login(ctx, u)
	if err != nil {
		return "", err
	}
	b.tellLogin()
	b.LoggedIn()
	return l.User, nil
}

// Logout has the tokens of a server taken back, and forgets them.
func (f *Manager) Logout(ctx context.Context, server string) error {
	b, err := f.remote(server)
	if err != nil {
		return err
	}
	err = b.out.login.Logout(ctx)
	b.tellLogin()
	return err
}

// remote is a server that can have a login.
func (f *Manager) remote(name string) (*Server, error) {
	b := f.Get(name)
	if b == nil {
		return nil, &UnknownError{Name: name, Known: f.Names()}
	}
	if b.out.login == nil {
		return nil, fmt.Errorf("server %q has no login: it is a local program, or its config has an Authorization header, or oauth: off", name)
	}
	return b, nil
}

// authorizer is the login at a server; nil if it has none.
func (f *Manager) authorizer(s *config.Server) *oauth.Authorizer {
	path, err := config.Canonical(f.o.Config.Path)
	if f.o.Logins == "" || err != nil {
		return nil
	}
	o, ok := oauth.ServerOptions(path, s, f.o.Version, f.o.Resolve)
	if !ok {
		return nil
	}
	return oauth.NewAuthorizer(f.o.Logins, o, f.log)
}

// voidLogin stops a server from sending its token if the stored login does not fit the
// definition that replaces the server's own. Its calls in flight fail.
func (f *Manager) voidLogin(b *Server, next *config.Server) {
	if b.out.login == nil || reflect.DeepEqual(b.defined.OAuth, next.OAuth) {
		return
	}
	if a := f.authorizer(next); a != nil && b.out.login.Invalidate(a) {
		b.LoggedOut()
	}
}

// followLogin tells who is logged in, until ctx ends.
func (s *Server) followLogin(ctx context.Context) {
	tick := time.NewTicker(loginCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.tellLogin()
		case <-ctx.Done():
			return
		}
	}
}

// tellLogin tells who is logged in now. If nobody is any more, nothing that is asked
// over the server's connections would be answered, so they end.
func (s *Server) tellLogin() {
	if s.out.tellLogin(s.Name()) {
		s.LoggedOut()
	}
}

// tellLogin reports whether a server that is connected has lost its login.
func (o *outlet) tellLogin(server string) (lost bool) {
	o.stating.Lock()
	defer o.stating.Unlock()
	before := o.who
	o.lookLocked()
	if !reflect.DeepEqual(before, o.who) && o.state.State != "" {
		o.setStateLocked(server)
	}
	return before != nil && o.who == nil && o.state.State == registry.StateReady
}

// lookLocked looks who is logged in.
func (o *outlet) lookLocked() {
	o.who = nil
	if is, ok := o.login.Identity(); ok {
		o.who = &registry.Account{User: is.User, Until: is.Expires, Renews: is.Renews}
	}
}

// SetState implements [upstream.Catalog].
func (o *outlet) SetState(server string, state registry.ServerState) {
	o.stating.Lock()
	defer o.stating.Unlock()
	if o.login != nil && state.State == registry.StateReady && o.state.State != state.State {
		o.lookLocked() // it may have waited for that
	}
	o.state = state
	o.setStateLocked(server)
	if whole(&state) {
		o.keepLocked(server)
	}
}

func (o *outlet) setStateLocked(server string) {
	state := o.state
	state.CanLogIn, state.Login = o.login != nil, o.who
	o.write(func() {
		o.Registry.SetState(server, state)
		o.fleet.o.Metrics.SetSleeping(server, state.State == registry.StateSleeping)
	})
}
