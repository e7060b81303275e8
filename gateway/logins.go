package gateway

import (
	"goblin/gateway/serverreq"
	"goblin/gateway/view"
	"goblin/registry"
)

// maxLogins is the number of retries of a request after a login. A server may first
// require a login and then more scopes.
const maxLogins = 2

// find resolves a name. If its server needs a login, the client may be sent the login
// page.
func (r *request) find(resolve view.Resolver, name string) (registry.Target, error) {
	t, err := r.gateway.Views.Find(r.Context(), r.Request, resolve, name)
	if err == nil {
		return t, nil
	}
	r.locating.Store(true) // the client may return before the name is known
	defer r.locating.Store(false)
	if err = r.awaitLogin(err); err != nil {
		return t, err
	}
	return r.gateway.Views.Find(r.Context(), r.Request, resolve, name)
}

// awaitLogin waits for a login if err requires one. It returns nil if the request can be
// repeated.
func (r *request) awaitLogin(err error) error {
	if !serverreq.IsLoginRequired(err) {
		return err
	}
	if outer := r.outerCall(); outer != nil && serverreq.SupportsURLElicitation(r.Request) { // stop its timeout
		outer.Pause()
		defer outer.Resume()
	}
	return r.gateway.logins.Await(r.Request, err)
}
