package gateway

import (
	"goblin/gateway/serverreq"
	"goblin/gateway/view"
	"goblin/registry"
)

// maxLogins is how often a request is made again after a login: a server may want one,
// and then one with more rights.
const maxLogins = 2

// find resolves a name. The client may be asked to log in at the server that has it.
func (r *request) find(resolve view.Resolver, name string) (registry.Target, error) {
	t, err := r.gateway.Views.Find(r.Context(), r.Request, resolve, name)
	if err == nil {
		return t, nil
	}
	r.locating.Store(true) // its client may come back before the name is known
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
	if outer := r.outerCall(); outer != nil && serverreq.SupportsURLElicitation(r.Request) { // its time rests
		outer.Pause()
		defer outer.Resume()
	}
	return r.gateway.logins.Await(r.Request, err)
}
