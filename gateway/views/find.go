package views

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/fleet"
	"goblin/gateway/logins"
	"goblin/gateway/refusals"
	"goblin/registry"
)

// Resolver is one of the methods of a catalog that find the target of a name.
type Resolver = func(*registry.Snapshot, string) (registry.Target, error)

// Find resolves a name for the client of a request.
func (v *Views) Find(ctx context.Context, x *downstream.Exchange, resolve Resolver, name string) (registry.Target, error) {
	return v.find(ctx, func() *registry.Snapshot { return v.Of(x) }, resolve, name)
}

// FindFor is Find for the client of a session.
func (v *Views) FindFor(ctx context.Context, s *downstream.Session, resolve Resolver, name string) (registry.Target, error) {
	return v.find(ctx, func() *registry.Snapshot { return v.OfSession(s) }, resolve, name)
}

// find resolves a name. While servers have not listed yet, it waits for them
// when the name is unknown so far, or is not a listed one: whose it is, or
// whether it is several servers', shows only when all have listed.
func (v *Views) find(ctx context.Context, seen func() *registry.Snapshot, resolve Resolver, name string) (registry.Target, error) {
	t, err := resolve(seen(), name)
	if err != nil || name != t.Listed {
		if len(refusals.Awaited(err, seen().Only(v.servers.Starting()))) > 0 {
			v.servers.AwaitListsIn(ctx, seen())
		}
		// Also when nobody starts any more: they may have listed just now.
		now := seen()
		t, err = resolve(now, name)
		var unknown *registry.NotFoundError
		if errors.As(err, &unknown) {
			if pending := refusals.Awaited(err, now.Only(v.servers.Starting())); len(pending) > 0 {
				return t, &refusals.Pending{Err: err, Servers: pending}
			}
			return t, v.unlisted(now, unknown)
		}
	}
	if err == nil {
		err = v.permitted(t, name)
	}
	return t, err
}

// permitted holds a target, which the client called name, to what the config
// allows and denies now. Lists are held to that, too, but a target may be older
// than the config, or not be listed at all.
func (v *Views) permitted(t registry.Target, name string) error {
	b := v.servers.Get(t.Server)
	if t.Local != nil || b == nil || b.PermitsTarget(t) {
		return nil
	}
	return Forbidden(t, name)
}

// Forbidden is the error for a target that the config denies: the same as for
// one that is not there.
func Forbidden(t registry.Target, name string) error {
	e := &registry.NotFoundError{Kind: registry.Resource, Name: name, Reason: registry.ReasonNotFound}
	if t.Entry != nil {
		e.Kind = t.Entry.Kind
	}
	return e
}

// unlisted is err, with a word about why the tool or prompt may be missing from what the
// client sees: it is withheld, or the server whose names begin like this one is not there
// to list it.
func (v *Views) unlisted(seen *registry.Snapshot, err *registry.NotFoundError) error {
	if b := v.servers.Get(err.Owner); b != nil && !b.Listed() {
		if _, down := b.Conn(); logins.Required(down) {
			return down
		}
	}
	if err.Kind != registry.Tool && err.Kind != registry.Prompt {
		return err
	}
	told := *err
	if c, ok := seen.Choice().(*choice); ok && c.hidesAll(err.Owner) {
		told.Absent = "all " + err.Kind.String() + "s may be hidden because " + unknownOff
		return &told
	}
	if err.Kind == registry.Tool {
		if slices.Contains(config.OwnTools(), err.Name) {
			told.Absent = "it is Goblin's own"
			if c, ok := seen.Choice().(*choice); ok {
				_, why := c.missing(err.Name)
				told.Absent += ", " + why
			}
			return &told
		}
		if p := seen.Withheld(err.Name); p != nil {
			told.Absent = fleet.Withheld(p)
			return &told
		}
	}
	for _, s := range v.registry.StatesIn(seen) {
		if s.Name != err.Owner || s.Listed || s.State == registry.StateReady {
			continue
		}
		is := "is "
		switch s.State {
		case registry.StateFailed:
			is = "has "
		case registry.StateNeedsLogin:
			is = ""
		}
		told.Absent = fmt.Sprintf("server %q %s%s, so its %ss are unknown", s.Name, is, s.State, err.Kind)
		return &told
	}
	return err
}
