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

const loginCheck = time.Second

// Login logs the user in at a server with a browser and returns the user's name if known.
// Concurrent callers share one login.
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

// Logout revokes and deletes the tokens of a server.
func (f *Manager) Logout(ctx context.Context, server string) error {
	b, err := f.remoteServer(server)
	if err != nil {
		return err
	}
	err = b.sink.authorizer.Logout(ctx)
	b.updateLogin()
	return err
}

func (f *Manager) remoteServer(name string) (*Server, error) {
	b := f.Get(name)
	if b == nil {
		return nil, &UnknownError{Name: name, Known: f.Names()}
	}
	if b.sink.authorizer == nil {
		return nil, fmt.Errorf("server %q has no login: it is local, or its config has an Authorization header or oauth: off", name)
	}
	return b, nil
}

func (f *Manager) authorizer(s *config.Server) *oauth.Authorizer {
	if f.o.Logins == "" || s.URL == "" {
		return nil
	}
	path, err := config.Canonical(f.o.Config.Path)
	if err != nil {
		return nil
	}
	o, ok := oauth.ServerOptions(path, s, f.o.Version, f.o.Resolve)
	if !ok {
		return nil
	}
	return oauth.NewAuthorizer(f.o.Logins, o, f.log)
}

// invalidateLogin stops a server from sending its token if its new definition doesn't
// match the stored login. Calls in flight fail.
func (f *Manager) invalidateLogin(b *Server, next *config.Server) {
	if b.sink.authorizer == nil || reflect.DeepEqual(b.defined.OAuth, next.OAuth) {
		return
	}
	if a := f.authorizer(next); a != nil && b.sink.authorizer.Invalidate(a) {
		b.LoggedOut()
	}
}

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

// updateLogin publishes the current login and closes connections whose login was lost.
func (s *Server) updateLogin() {
	if s.sink.updateLogin(s.Name()) {
		s.LoggedOut()
	}
}

// updateLogin publishes the current login. lost is true if a connected server lost its
// login.
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
		o.readLoginLocked() // it may have waited for a login
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
