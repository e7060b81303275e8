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
	b, err := f.remoteServer(server)
	if err != nil {
		return "", err
	}
	l, err := b.sink.authorizer.Login(ctx, u)
	if err != nil {
		return "", err
	}
	b.updateLogin()
	b.LoggedIn()
	return l.User, nil
}

// Logout has the tokens of a server taken back, and forgets them.
func (f *Manager) Logout(ctx context.Context, server string) error {
	b, err := f.remoteServer(server)
	if err != nil {
		return err
	}
	err = b.sink.authorizer.Logout(ctx)
	b.updateLogin()
	return err
}

// remoteServer returns a server that can have a login.
func (f *Manager) remoteServer(name string) (*Server, error) {
	b := f.Get(name)
	if b == nil {
		return nil, &UnknownError{Name: name, Known: f.Names()}
	}
	if b.sink.authorizer == nil {
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

// invalidateLogin stops a server from sending its token if the stored login does not fit the
// definition that replaces the server's own. Its calls in flight fail.
func (f *Manager) invalidateLogin(b *Server, next *config.Server) {
	if b.sink.authorizer == nil || reflect.DeepEqual(b.defined.OAuth, next.OAuth) {
		return
	}
	if a := f.authorizer(next); a != nil && b.sink.authorizer.Invalidate(a) {
		b.LoggedOut()
	}
}

// watchLogin publishes who is logged in, until ctx ends.
func (s *Server) watchLogin(ctx context.Context) {
	tick := time.NewTicker(loginCheck)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.updateLogin()
		case <-ctx.Done():
			return
		}
	}
}

// updateLogin publishes who is logged in. If a login was lost, it closes the server's connections.
func (s *Server) updateLogin() {
	if s.sink.updateLogin(s.Name()) {
		s.LoggedOut()
	}
}

// updateLogin publishes who is logged in. It reports whether a connected server has lost its login.
func (o *sink) updateLogin(server string) (lost bool) {
	o.stateMu.Lock()
	defer o.stateMu.Unlock()
	before := o.account
	o.readLoginLocked()
	if !reflect.DeepEqual(before, o.account) && o.state.State != "" {
		o.setStateLocked(server)
	}
	return before != nil && o.account == nil && o.state.State == registry.StateReady
}

// readLoginLocked reads who is logged in.
func (o *sink) readLoginLocked() {
	o.account = nil
	if is, ok := o.authorizer.Identity(); ok {
		o.account = &registry.Account{User: is.User, Until: is.Expires, AutoRenews: is.Renews}
	}
}

// SetState implements [upstream.Catalog].
func (o *sink) SetState(server string, state registry.ServerState) {
	o.stateMu.Lock()
	defer o.stateMu.Unlock()
	if o.authorizer != nil && state.State == registry.StateReady && o.state.State != state.State {
		o.readLoginLocked() // it may have waited for that
	}
	o.state = state
	o.setStateLocked(server)
	if isComplete(&state) {
		o.saveLocked(server)
	}
}

func (o *sink) setStateLocked(server string) {
	state := o.state
	state.CanLogIn, state.Login = o.authorizer != nil, o.account
	o.write(func() {
		o.Registry.SetState(server, state)
		o.manager.o.Metrics.SetSleeping(server, state.State == registry.StateSleeping)
	})
}
