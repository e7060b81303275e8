package gateway

import "goblin/registry"

// permitted holds a target, which the client called name, to what the config
// allows and denies now. Lists are held to that, too, but a target may be older
// than the config, or not be listed at all.
func (g *Gateway) permitted(t registry.Target, name string) error {
	b := g.Servers.Get(t.Server)
	if t.Local != nil || b == nil || b.PermitsTarget(t) {
		return nil
	}
	return forbidden(t, name)
}

// forbidden is the error for a target that the config denies: the same as for
// one that is not there.
func forbidden(t registry.Target, name string) error {
	e := &registry.NotFoundError{Kind: registry.Resource, Name: name, Reason: registry.ReasonNotFound}
	if t.Entry != nil {
		e.Kind = t.Entry.Kind
	}
	return e
}
