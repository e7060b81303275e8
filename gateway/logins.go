package gateway

import (
	"goblin/gateway/serverreq"
	"goblin/gateway/view"
	"goblin/registry"
)

// maxLogins is the number of retries: a server may require a login, then more scopes.
const maxLogins = 2

// find resolves a name, possibly after a login at its server.
func (r *request) find(resolve view.Resolver, name string) (registry.Target, error) {
	t, err := r.gateway.Views.Find(r.Context(), r.Request, resolve, name)
	if err == nil {
		return t, nil
	}
	r.locating.Store(true) // the client may return earlier
	defer r.locating.Store(false)
	if err = r.awaitLogin(err); err != nil {
		return t, err
	}
	return r.gateway.Views.Find(r.Context(), r.Request, resolve, name)
}

// awaitLogin returns nil if the request can be repeated.
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
