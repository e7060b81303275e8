// Package notify delivers list changes, resource updates and log messages to clients.
//
// Sessions get them on their own stream, stateless clients on that of
// subscriptions/listen. Subscriptions are counted per resource, so that a server gets one
// subscribe and one unsubscribe request. They are restored on new connections. The
// package must not know how requests are routed.
//
// Subscribe, Unsubscribe, Restore and Listen wait for servers. ResourceUpdated,
// LogMessage and ListChanged run on read loops and never block.
package notify

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/servers"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/gateway/view"
	"goblin/registry"
)

// Options configures a Notifier. Mask may be nil.
type Options struct {
	Registry   *registry.Registry
	Metrics    *telemetry.Metrics
	Journal    *telemetry.Journal
	Logger     *slog.Logger
	Mask       *config.Mask
	Servers    *servers.Manager
	Requests   *inflight.Table
	Clients    *inflight.Clients
	Visibility *view.Views
}

// Notifier manages subscriptions, listens and log levels.
type Notifier struct {
	o             Options
	subscriptions subscriptionTable
	listens       listenTable
	refetched     refetchCounts
	levels        levelTable
	work          sync.WaitGroup // outlive their caller

	mu sync.Mutex
	// seen holds the list versions, by kind, that each session was notified of.
	seen map[*downstream.Session]*[registry.Kinds]view.Version
	// initial has the list versions of each view for new sessions.
	initial map[string][registry.Kinds]view.Version

	serverWatch       serverWatch
	visibilityChanged atomic.Bool // since the last check of servers
}

// New returns a Notifier. Start Run for list changes.
func New(o Options) *Notifier {
	n := &Notifier{o: o, seen: make(map[*downstream.Session]*[registry.Kinds]view.Version)}
	n.subscriptions.init()
	n.levels.byConn = make(map[upstream.Conn]*connLevel)
	n.refetched.wake = make(chan struct{}, 1)
	return n
}

// Wait waits for background work after Run.
func (n *Notifier) Wait() { n.work.Wait() }

var empty = []byte("{}")

// SessionOpened starts list notifications for a session.
func (n *Notifier) SessionOpened(s *downstream.Session) {
	n.mu.Lock()
	n.seen[s] = new([registry.Kinds]view.Version)
	n.mu.Unlock()
	if _, set := n.minLevel(); set { // the new session must not count as info
		n.work.Go(n.LevelsChanged)
	}
}

// SessionClosed removes a session's subscriptions and waits for servers.
func (n *Notifier) SessionClosed(s *downstream.Session) {
	n.mu.Lock()
	delete(n.seen, s)
	n.mu.Unlock()
	n.unsubscribeAll(subscriber{session: s})
}

// RecordListed records the list versions at a session's first list request. The session
// is notified of all later changes.
func (n *Notifier) RecordListed(s *downstream.Session, now *registry.Snapshot) {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := n.seen[s]
	if seen == nil {
		return
	}
	for k, version := range versionsOf(now) {
		if seen[k] == (view.Version{}) {
			seen[k] = version
		}
	}
}

func (n *Notifier) versions() map[string][registry.Kinds]view.Version {
	all := make(map[string][registry.Kinds]view.Version)
	for seen := range n.o.Visibility.All() {
		all[view.Key(seen)] = versionsOf(seen)
	}
	return all
}

func (n *Notifier) setInitial(base map[string][registry.Kinds]view.Version) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.initial = base
}

func versionsOf(seen *registry.Snapshot) (all [registry.Kinds]view.Version) {
	for k := range all {
		all[k] = view.ListVersion(seen, registry.Kind(k))
	}
	return all
}

// update records the current list versions for a session, and reports whether any is new.
func (n *Notifier) update(s *downstream.Session, kinds []registry.Kind, now *registry.Snapshot) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := n.seen[s]
	if seen == nil {
		return false
	}
	for _, k := range kinds {
		if seen[k] == (view.Version{}) {
			seen[k] = n.initial[view.Key(now)][k]
		}
		version := view.ListVersion(now, k)
		news = news || seen[k] != version
		seen[k] = version
	}
	return news
}

// ListChanged records that an announced list was fetched again.
func (n *Notifier) ListChanged(server string, k registry.Kind) { n.refetched.add(server, k) }

// VisibilityChanged must be called when clients may see other entries.
func (n *Notifier) VisibilityChanged() {
	n.visibilityChanged.Store(true)
	n.refetched.signal()
}

// ConnectionChanged moves subscriptions to their sessions' current connections.
func (n *Notifier) ConnectionChanged(server string, unitOf func(*downstream.Session) string) {
	b := n.o.Servers.Get(server)
	n.subscriptions.move(server, func(key subscriptionKey, s subscriber) subscriptionKey {
		key.unit = unitOf(s.session)
		return key
	})
	for _, l := range n.o.Requests.Connections() { // an open connection causes no Restore
		if b != nil && l.Server == b.Server {
			n.work.Go(func() { n.restore(context.Background(), server, l.Conn) })
		}
	}
}

// Subscriptions returns the number of subscriptions at a server.
func (n *Notifier) Subscriptions(server string) int { return n.subscriptions.countAt(server) }

// ServersRemoved deletes the metrics of removed servers.
func (n *Notifier) ServersRemoved(servers []string) {
	n.subscriptions.showMu.Lock() // a closing session must not set them
	defer n.subscriptions.showMu.Unlock()
	for _, name := range servers {
		n.o.Metrics.DeleteGauges(name)
	}
}

// Connected registers a connection before its first request.
func (n *Notifier) Connected(s *upstream.Server, conn upstream.Conn) { n.levels.opened(s.Name(), conn) }

// Restore sends a new connection the level and subscriptions of the previous one. ctx
// ends with the connection.
func (n *Notifier) Restore(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	if l := n.levels.get(conn); l != nil {
		n.sendLevel(ctx, l)
	}
	n.reopenUnits(ctx, s, conn)
	n.restore(ctx, s.Name(), conn)
}

// Disconnected removes a connection and its subscriptions.
func (n *Notifier) Disconnected(conn upstream.Conn) {
	n.levels.closed(conn)
	n.subscriptions.dropConn(conn)
}
