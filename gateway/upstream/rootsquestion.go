package upstream

import (
	"context"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
)

// A server over stdio may ask because its connection begins, or because it was told
// that roots have changed. Nothing in the protocol tells such a question from one that
// a call has caused which is under way meanwhile. But servers ask for that before they
// answer what they read later: the first list of a connection, or a ping behind the
// notice.

type unpromptedKey struct{}

// IsUnprompted reports whether the request that Handler.HandleRequest got with ctx was caused
// by no call, but by the beginning of its connection or by a notice of changed roots.
func IsUnprompted(ctx context.Context) bool { return ctx.Value(unpromptedKey{}) != nil }

// marked is the context of a request that has arrived; it runs on the read loop.
func (l *link) marked(ctx context.Context) context.Context {
	if l.fresh.Load() || l.told.Load() > 0 {
		return context.WithValue(ctx, unpromptedKey{}, true)
	}
	return ctx
}

// NotifyRoots implements [Conn].
func (l *link) NotifyRoots() error {
	return l.behind(func() error { return l.Notify("notifications/roots/list_changed", nil) })
}

// begins sends the notice that the handshake is over.
func (l *link) begins(ctx context.Context) error {
	opened := func() error { return l.wire.opened(ctx, jsonrpc.NotificationFrame("notifications/initialized", nil)) }
	switch {
	case !l.wire.local():
	case l.Unit() == "":
		l.fresh.Store(true)
	case l.srv.cfg.RootsSource() == config.ConfigRoots:
		return l.behind(opened) // no list is fetched over it
	}
	return opened()
}

// behind sends a notice and a ping behind it.
func (l *link) behind(send func() error) error {
	l.told.Add(1)
	if err := send(); err != nil {
		l.told.Add(-1)
		return err
	}
	if n := (&notice{link: l, ping: Call{Method: "ping", own: true}}); !l.CallAsync(&n.ping, n) {
		l.told.Add(-1) // over HTTP the transport tells what a question belongs to
	}
	return nil
}

// notice is one that may make a server ask for roots, with the ping sent behind it.
type notice struct {
	link *link
	ping Call
}

// CallEnded implements [Caller].
func (n *notice) CallEnded(jsonrpc.Reply, error, *jsonrpc.WriteBatch) { n.link.told.Add(-1) }
