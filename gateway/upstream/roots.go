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

// markUnprompted returns the context for a request that has arrived. It runs on the read loop.
func (l *link) markUnprompted(ctx context.Context) context.Context {
	if l.awaitsFirstReply.Load() || l.pendingNotices.Load() > 0 {
		return context.WithValue(ctx, unpromptedKey{}, true)
	}
	return ctx
}

// NotifyRoots implements [Conn].
func (l *link) NotifyRoots() error {
	return l.sendWithPing(func() error { return l.Notify("notifications/roots/list_changed", nil) })
}

// sendInitialized sends the notification that ends the handshake.
func (l *link) sendInitialized(ctx context.Context) error {
	opened := func() error {
		return l.wire.initialized(ctx, jsonrpc.NotificationFrame("notifications/initialized", nil))
	}
	switch {
	case !l.wire.isLocal():
	case l.Unit() == "":
		l.awaitsFirstReply.Store(true)
	case l.srv.cfg.RootsSource() == config.ConfigRoots:
		return l.sendWithPing(opened) // no list is fetched over it
	}
	return opened()
}

// sendWithPing sends a notification, and a ping after it.
func (l *link) sendWithPing(send func() error) error {
	l.pendingNotices.Add(1)
	if err := send(); err != nil {
		l.pendingNotices.Add(-1)
		return err
	}
	if n := (&pingedNotice{link: l, ping: Call{Method: "ping", probe: true}}); !l.CallAsync(&n.ping, n) {
		l.pendingNotices.Add(-1) // over HTTP the transport tells what a question belongs to
	}
	return nil
}

// pingedNotice is a notification that may make a server request roots, with the ping sent after it.
type pingedNotice struct {
	link *link
	ping Call
}

// CallEnded implements [Caller].
func (n *pingedNotice) CallEnded(jsonrpc.Reply, error, *jsonrpc.WriteBatch) {
	n.link.pendingNotices.Add(-1)
}
