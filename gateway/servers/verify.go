package servers

import (
	"context"
	"errors"
	"fmt"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/state"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/termtext"
)

// VerifiesLists reports whether calls wait until their connection has listed and the list
// was compared with the approved tools (gateway.pin: strict).
func (f *Manager) VerifiesLists() bool { return f.requiresApproval() && f.o.Pins != nil }

func (f *Manager) digests(server string) func(registry.Kind, [][]byte) map[string]string {
	if !f.VerifiesLists() {
		return nil
	}
	return func(kind registry.Kind, items [][]byte) map[string]string {
		all := f.o.Registry.Definitions(server, kind, items)
		digests := make(map[string]string, len(all))
		for _, d := range all {
			digests[d.Name] = state.Digest(d.JSON)
		}
		return digests
	}
}

// maxChecked is the maximum number of connections that a request waits for in sequence.
const maxChecked = 5

// VerifiedConn returns the connection for a request after it has listed tools or skills,
// as kind says. That is conn, or its successor if conn closes meanwhile. It waits for the
// start timeout of the server at most. resolve returns the current target. The error
// explains why the target is not approved.
func (f *Manager) VerifiedConn(ctx context.Context, conn upstream.Conn, s *downstream.Session, modern bool, kind registry.Kind, t registry.Target, resolve func() (registry.Target, error)) (upstream.Conn, error) {
	b := f.Get(t.Server)
	if b == nil {
		return nil, &upstream.Error{Code: upstream.ConnectionError, Server: t.Server, Reason: "it was removed"}
	}
	if kind == registry.Tool {
		if digest, current := b.Digest(conn, t.Name); current && f.o.Pins.Approves(b.Name(), t.Name, digest) {
			return conn, nil
		}
	}
	patient, cancel := b.withStartTimeout(ctx)
	defer cancel()
	defer downstream.NotifyWaiting(ctx, fmt.Sprintf("Server %q is listing", t.Server))()
	for range maxChecked {
		err := b.awaitCheck(patient, conn, kind)
		if conn.Err() == nil {
			if err == nil {
				t, err = resolve()
			}
			if err == nil && kind == registry.Tool {
				err = f.approved(patient, b, conn, t)
			}
			return conn, err
		}
		if now := f.Get(t.Server); now != nil {
			b = now
		}
		if conn, err = f.Conn(ctx, b, s, modern); err != nil {
			return nil, err
		}
	}
	return nil, &upstream.Error{Code: upstream.ConnectionError, Server: t.Server, Reason: "its connections closed before they listed"}
}

func (s *Server) awaitCheck(ctx context.Context, conn upstream.Conn, kind registry.Kind) (err error) {
	if kind == registry.Skill {
		err = s.AwaitSkills(ctx)
	} else {
		err = s.AwaitTools(ctx, conn)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		limit := s.Config().StartupTimeout + startGrace
		return &upstream.Error{
			Code: upstream.RequestTimeout, Server: s.Name(),
			Reason: fmt.Sprintf("did not list within %s, so approvals cannot be checked (gateway.pin: strict)", config.ShortDuration(limit)), Err: err,
		}
	}
	return err
}

// approved returns an error unless a tool is approved in the version that this connection
// listed. Processes of one server may list different tools.
func (f *Manager) approved(ctx context.Context, b *Server, conn upstream.Conn, t registry.Target) error {
	digest, _ := b.Digest(conn, t.Name)
	if f.o.Pins.Approves(b.Name(), t.Name, digest) {
		return nil
	}
	select {
	case <-b.FirstList(): // its list approves new tools
	case <-ctx.Done():
	}
	if f.o.Pins.Approves(b.Name(), t.Name, digest) {
		return nil
	}
	why := fmt.Sprintf("server %q does not list it for this client", b.Name())
	if digest != "" {
		why = fmt.Sprintf("server %q lists an unapproved definition for this client; run: %s", b.Name(), termtext.Goblin("restart", b.Name()))
	}
	return &registry.NotFoundError{Kind: registry.Tool, Name: t.Listed, MissingReason: why}
}
