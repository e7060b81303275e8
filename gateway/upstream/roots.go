package upstream

import (
	"context"

	"goblin/gateway/config"
	"goblin/gateway/jsonrpc"
)

// A stdio server may request roots because its connection starts or roots changed. The
// protocol doesn't distinguish that from a request caused by a call. But servers send it
// before they answer what they read next: the first list of a connection, or a ping after
// the notification.

type unpromptedKey struct{}

// IsUnprompted reports whether no call caused the request that Handler.HandleRequest
// received with ctx. Its cause is then a new connection or a notification of changed
// roots.
func IsUnprompted(ctx context.Context) bool { return ctx.Value(unpromptedKey{}) != nil }

// markUnprompted runs on the read loop.
func (l *link) markUnprompted(ctx context.Context) context.Context {
	if l.awaitsFirstReply.Load() || l.pendingNotices.Load() > 0 {
		return context.WithValue(ctx, unpromptedKey{}, true)
	}
	return ctx
}

func (l *link) NotifyRoots() error {
	return l.sendWithPing(func() error { return l.Notify("notifications/roots/list_changed", nil) })
}

func (l *link) sendInitialized(ctx context.Context) error {
	opened := func() error {
		return l.wire.initialized(ctx, jsonrpc.NotificationFrame("notifications/initialized", nil))
	}
	switch {
	case !l.wire.isLocal():
	case l.Unit() == "":
		l.awaitsFirstReply.Store(true)
	case l.srv.cfg.RootsSource() == config.ConfigRoots:
		return l.sendWithPing(opened) // it fetches no lists
	}
	return opened()
}

func (l *link) sendWithPing(send func() error) error {
	l.pendingNotices.Add(1)
	if err := send(); err != nil {
		l.pendingNotices.Add(-1)
		return err
	}
	if n := (&pingedNotice{link: l, ping: Call{Method: "ping", probe: true}}); !l.CallAsync(&n.ping, n) {
		l.pendingNotices.Add(-1) // HTTP identifies the cause of requests itself
	}
	return nil
}

// pingedNotice is a notification that may cause roots requests, and the ping after it.
type pingedNotice struct {
	link *link
	ping Call
}

func (n *pingedNotice) CallEnded(jsonrpc.Reply, error, *jsonrpc.WriteBatch) {
	n.link.pendingNotices.Add(-1)
}
