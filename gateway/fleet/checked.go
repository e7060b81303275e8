package fleet

import (
	"context"
	"errors"
	"fmt"

	"goblin/gateway/downstream"
	"goblin/gateway/pins"
	"goblin/gateway/skills"
	"goblin/gateway/upstream"
	"goblin/registry"
)

// Checks reports whether calls wait until the connection that carries them has listed, and
// the list is compared with what the user approved (gateway.pin: strict).
func (f *Fleet) Checks() bool { return f.withholds() && f.o.Pins != nil }

// digests returns the option of a server with which that happens, nil without.
func (f *Fleet) digests(server string) func(registry.Kind, [][]byte) map[string]string {
	if !f.Checks() {
		return nil
	}
	return func(kind registry.Kind, items [][]byte) map[string]string {
		all := f.o.Registry.Definitions(server, kind, items)
		digests := make(map[string]string, len(all))
		for _, d := range all {
			digests[d.Name] = pins.Digest(d.JSON)
		}
		return digests
	}
}

// checked reports whether a request has to wait for a list.
func (f *Fleet) checked(method string, t registry.Target) bool {
	return f.Checks() && (isTool(t) || skills.About(method))
}

func isTool(t registry.Target) bool { return t.Entry != nil && t.Entry.Kind == registry.Tool }

// maxChecked is how many connections of a server a request waits for, one after another.
const maxChecked = 5

// Checked returns the connection for a request, which is conn unless that ends meanwhile.
// Without Checks, it is conn. Otherwise it waits until the connection has listed, for as
// long as the server may take to start. Then resolve returns the target as it is now. The
// error says why the target is not approved.
func (f *Fleet) Checked(ctx context.Context, conn upstream.Conn, s *downstream.Session, modern bool, method string, t registry.Target, resolve func() (registry.Target, error)) (upstream.Conn, error) {
	if !f.checked(method, t) {
		return conn, nil
	}
	b := f.Get(t.Server)
	if b == nil {
		return nil, &upstream.Error{Code: upstream.ConnectionError, Server: t.Server, Reason: "it was removed"}
	}
	patient, cancel := b.patiently(ctx)
	defer cancel()
	defer downstream.Waiting(ctx, fmt.Sprintf("Server %q is listing", t.Server))()
	for range maxChecked {
		err := b.awaitCheck(patient, conn, t)
		if conn.Err() == nil {
			if err == nil {
				t, err = resolve()
			}
			if err == nil {
				err = f.approved(patient, b, conn, t)
			}
			return conn, err
		}
		if now := f.Get(t.Server); now != nil {
			b = now // the config was edited
		}
		if conn, err = f.Conn(ctx, b, s, modern); err != nil {
			return nil, err
		}
	}
	return nil, &upstream.Error{Code: upstream.ConnectionError, Server: t.Server, Reason: "its connections ended before they had listed"}
}

func (s *Server) awaitCheck(ctx context.Context, conn upstream.Conn, t registry.Target) error {
	err := s.AwaitSkills(ctx)
	if isTool(t) {
		err = s.AwaitTools(ctx, conn)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		limit := s.Config().StartupTimeout + afterStart
		return &upstream.Error{
			Code: upstream.RequestTimeout, Server: s.Name(),
			Reason: fmt.Sprintf("has not listed for %v, so it is unknown whether it is as approved (gateway.pin: strict)", limit), Err: err,
		}
	}
	return err
}

// approved returns an error unless a tool, as a connection listed it, is approved. The
// processes of a server may list different tools.
func (f *Fleet) approved(ctx context.Context, b *Server, conn upstream.Conn, t registry.Target) error {
	if !isTool(t) {
		return nil
	}
	if f.o.Pins.Approves(b.Name(), t.Name, b.Digest(conn, t.Name)) {
		return nil
	}
	b.AwaitCatalog(ctx) // the first list of all is approved by itself
	digest := b.Digest(conn, t.Name)
	if f.o.Pins.Approves(b.Name(), t.Name, digest) {
		return nil
	}
	why := fmt.Sprintf("server %q does not list it to this client", b.Name())
	if digest != "" {
		why = fmt.Sprintf("server %q lists another definition to this client than the approved one; run: goblin restart %s", b.Name(), b.Name())
	}
	return &registry.NotFoundError{Kind: registry.Tool, Name: t.Listed, Absent: why}
}
