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
		return nil, removedError(t.Server)
	}
	if kind == registry.Tool {
		if digest, current := b.Digest(conn, t.Name); current && f.o.Pins.Approves(b.Name(), t.Name, digest) {
			return conn, nil
		}
	}
	return f.listedConn(ctx, b, conn, s, modern, kind, func(ctx context.Context, b *Server, conn upstream.Conn) error {
		t, err := resolve()
		if err == nil && kind == registry.Tool {
			err = f.approved(ctx, b, conn, t)
		}
		return err
	})
}

// ListedConn returns the connection for a call after it has listed tools, like
// VerifiedConn. same reports whether that list has the definition of the current target.
func (f *Manager) ListedConn(ctx context.Context, conn upstream.Conn, s *downstream.Session, modern bool, server string, resolve func() (registry.Target, error)) (_ upstream.Conn, same bool, err error) {
	b := f.Get(server)
	if b == nil {
		return nil, false, removedError(server)
	}
	conn, err = f.listedConn(ctx, b, conn, s, modern, registry.Tool, func(_ context.Context, b *Server, conn upstream.Conn) error {
		t, err := resolve()
		same = err == nil && t.Entry != nil && b.ListsTool(conn, t.Name, state.Digest(t.Entry.Own()))
		return err
	})
	return conn, same, err
}

func removedError(server string) error {
	return &upstream.Error{Code: upstream.ConnectionError, Server: server, Reason: "it was removed"}
}

// listedConn waits until conn or its successor has listed, and calls check then.
func (f *Manager) listedConn(ctx context.Context, b *Server, conn upstream.Conn, s *downstream.Session, modern bool, kind registry.Kind, check func(context.Context, *Server, upstream.Conn) error) (upstream.Conn, error) {
	name := b.Name()
	patient, cancel := b.withStartTimeout(ctx)
	defer cancel()
	defer downstream.NotifyWaiting(ctx, fmt.Sprintf("Server %q is listing", name))()
	for range maxChecked {
		err := b.awaitCheck(patient, conn, kind)
		if conn.Err() == nil {
			if err == nil {
				err = check(patient, b, conn)
			}
			return conn, err
		}
		if now := f.Get(name); now != nil {
			b = now
		}
		if conn, err = f.Conn(ctx, b, s, modern); err != nil {
			return nil, err
		}
	}
	return nil, &upstream.Error{Code: upstream.ConnectionError, Server: name, Reason: "its connections closed before they listed"}
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
			Reason: fmt.Sprintf("did not list within %s, so %s", config.ShortDuration(limit), s.Unchecked(kind)), Err: err,
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
