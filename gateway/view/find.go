package view

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/serverreq"
	"goblin/gateway/servers"
	"goblin/registry"
)

// Resolver resolves a name in a catalog.
type Resolver = func(*registry.Snapshot, string) (registry.Target, error)

// Find resolves a name for a request's client. Unless it is a listed name, it waits for
// starting servers. It returns a [PendingError] if some have still not listed.
func (v *Views) Find(ctx context.Context, x *downstream.Request, resolve Resolver, name string) (registry.Target, error) {
	return v.find(ctx, x.Session(), func() *registry.Snapshot { return v.For(x) }, resolve, name)
}

// FindFor is Find for a session's client.
func (v *Views) FindFor(ctx context.Context, s *downstream.Session, resolve Resolver, name string) (registry.Target, error) {
	return v.find(ctx, s, func() *registry.Snapshot { return v.ForSession(s) }, resolve, name)
}

// find resolves a name. The owner of a name that is not listed is certain only after all
// servers have listed.
func (v *Views) find(ctx context.Context, s *downstream.Session, seen func() *registry.Snapshot, resolve Resolver, name string) (registry.Target, error) {
	t, err := resolve(seen(), name)
	if err != nil || name != t.Listed {
		if len(pendingServers(err, seen().KnownServers(v.servers.Starting()))) > 0 {
			v.servers.AwaitVisibleLists(ctx, seen())
		}
		// Even if none is starting, one may just have listed.
		now := seen()
		t, err = resolve(now, name)
		var unknown *registry.NotFoundError
		if errors.As(err, &unknown) {
			if pending := pendingServers(err, now.KnownServers(v.servers.Starting())); len(pending) > 0 {
				return t, &PendingError{Err: err, Servers: pending}
			}
			return t, v.explainMissing(s, now, unknown)
		}
	}
	if err == nil {
		err = v.checkPermitted(t, name)
	}
	return t, err
}

// checkPermitted returns an error if the current config denies a target, which may be
// older or not listed.
func (v *Views) checkPermitted(t registry.Target, name string) error {
	b := v.servers.Get(t.Server)
	if t.Local != nil || b == nil || b.PermitsTarget(t) {
		return nil
	}
	return ForbiddenError(t, name)
}

// ForbiddenError returns the error for a denied target. It equals the error for an
// unknown name.
func ForbiddenError(t registry.Target, name string) error {
	e := &registry.NotFoundError{Kind: registry.Resource, Name: name, Reason: registry.ReasonNotFound}
	if t.Entry != nil {
		e.Kind = t.Entry.Kind
	}
	return e
}

// explainMissing adds a reason to err. If the server needs a login, or has no process for
// an anonymous client, it returns that error.
func (v *Views) explainMissing(client *downstream.Session, seen *registry.Snapshot, err *registry.NotFoundError) error {
	if b := v.servers.Get(err.Owner); b != nil && !b.Listed() {
		if _, down := b.Conn(); serverreq.IsLoginRequired(down) {
			return down
		}
	}
	owner := v.unlistedOwner(seen, err)
	if owner != nil && client != nil && client.Anonymous() {
		if noProject := v.servers.NoProject(owner.Name, client); noProject != nil {
			return noProject
		}
	}
	if err.Kind != registry.Tool && err.Kind != registry.Prompt {
		return err
	}
	explained := *err
	explained.MissingReason = missingReason(seen, err, owner)
	return &explained
}

// unlistedOwner returns the visible server that owns a name's prefix and has not listed,
// or nil.
func (v *Views) unlistedOwner(seen *registry.Snapshot, err *registry.NotFoundError) *registry.ServerState {
	states := v.registry.StatesIn(seen)
	i := slices.IndexFunc(states, func(s registry.ServerState) bool { return s.Name == err.Owner && !s.Listed })
	if i < 0 {
		return nil
	}
	return &states[i]
}

// missingReason returns a reason for a missing entry, or "". owner is its server if that
// has not listed.
func missingReason(seen *registry.Snapshot, err *registry.NotFoundError, owner *registry.ServerState) string {
	c, chosen := seen.Visibility().(*profileFilter)
	if chosen && c.hidesServer(err.Owner) {
		return fmt.Sprintf("all %ss may be hidden because %s", err.Kind, reasonUnknownState)
	}
	if err.Kind == registry.Tool {
		if slices.Contains(config.OwnTools(), err.Name) {
			if !chosen {
				return "it is Goblin's own"
			}
			_, why := c.whyMissing(err.Name)
			return "it is Goblin's own, " + why
		}
		if p := seen.UnapprovedTool(err.Name); p != nil {
			return servers.ApprovalReason(p)
		}
	}
	if owner == nil || owner.State == registry.StateReady {
		return ""
	}
	is := "is "
	switch owner.State {
	case registry.StateFailed:
		is = "has "
	case registry.StateNeedsLogin:
		is = ""
	}
	state := owner.State.Label()
	if owner.State == registry.StateStopped && owner.LastError != "" { // waits for a project
		state += ": " + owner.LastError
	}
	return fmt.Sprintf("server %q %s%s, so its %ss are unknown", owner.Name, is, state, err.Kind)
}
