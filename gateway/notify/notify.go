// Package notify delivers list changes, resource updates and log messages to clients.
//
// A session is told on its own stream, a stateless client on that of its
// subscriptions/listen.
//
// It counts the subscribers of each resource, so that a server is asked once and told off
// once, and restores that on new connections. It must not know how requests are routed:
// names are found by its [Options]. Subscribe, Unsubscribe, Restore and Listen wait for
// ResourceUpdated, LogMessage and ListChanged are called on read loops and only queue.
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

// Options configure a Notifier. Mask may be nil.
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

// Notifier has the subscribers, the listens, and the levels of log lines.
type Notifier struct {
	o             Options
	subscriptions subscriptionTable
	listens       listenTable
	refetched     refetchCounts
	levels        levelTable
	work          sync.WaitGroup // goroutines that outlive what caused them

	mu sync.Mutex
	// seen is, per kind, the version of the list that a session knows or was
	// notified of, zero for none.
	seen map[*downstream.Session]*[registry.Kinds]view.Version
	// initial has the list versions of each view that sessions find when they open.
	initial map[string][registry.Kinds]view.Version

	serverWatch       serverWatch
	visibilityChanged atomic.Bool // since the last check of servers
}

// New returns a Notifier. Run must be called for changed lists.
func New(o Options) *Notifier {
	n := &Notifier{o: o, seen: make(map[*downstream.Session]*[registry.Kinds]view.Version)}
	n.subscriptions.init()
	n.levels.byConn = make(map[upstream.Conn]*connLevel)
	n.refetched.wake = make(chan struct{}, 1)
	return n
}

// Wait waits for what goes on after Run has returned.
func (n *Notifier) Wait() { n.work.Wait() }

var empty = []byte("{}")

// SessionOpened begins to tell a session of changed lists.
func (n *Notifier) SessionOpened(s *downstream.Session) {
	n.mu.Lock()
	n.seen[s] = new([registry.Kinds]view.Version)
	n.mu.Unlock()
	if _, set := n.minLevel(); set { // it has not said what it wants: others do not decide that
		n.work.Go(n.LevelsChanged)
	}
}

// SessionClosed gives back what an ended session watched; it waits for servers.
func (n *Notifier) SessionClosed(s *downstream.Session) {
	n.mu.Lock()
	delete(n.seen, s)
	n.mu.Unlock()
	n.unsubscribeAll(subscriber{session: s})
}

// RecordListed records the versions of the lists that a session found when it got the first one:
// it is told of every change after that, even if it happened to look before it was told, and
// not of what was there already, whatever it has fetched of that.
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

// versions are those of the lists in each view, by its name.
func (n *Notifier) versions() map[string][registry.Kinds]view.Version {
	all := make(map[string][registry.Kinds]view.Version)
	for seen := range n.o.Visibility.All() {
		all[view.Key(seen)] = versionsOf(seen)
	}
	return all
}

// setInitial sets the list versions that sessions find when they open.
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

// update records that a session was notified of the versions of lists, and reports whether one
// of them was new.
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

// ListChanged records that a list was announced as changed and fetched again.
func (n *Notifier) ListChanged(server string, k registry.Kind) { n.refetched.add(server, k) }

// VisibilityChanged is called when clients may see other parts of the catalog than before.
func (n *Notifier) VisibilityChanged() {
	n.visibilityChanged.Store(true)
	n.refetched.signal()
}

// ConnectionChanged moves the subscriptions at a server to the connections that serve their
// sessions now.
func (n *Notifier) ConnectionChanged(server string, unitOf func(*downstream.Session) string) {
	b := n.o.Servers.Get(server)
	n.subscriptions.move(server, func(key subscriptionKey, s subscriber) subscriptionKey {
		key.unit = unitOf(s.session)
		return key
	})
	for _, l := range n.o.Requests.Connections() { // one that is there already tells of no beginning
		if b != nil && l.Server == b.Server {
			n.work.Go(func() { n.restore(context.Background(), server, l.Conn) })
		}
	}
}

// Subscriptions is how many subscriptions of sessions and listens there are at a server.
func (n *Notifier) Subscriptions(server string) int { return n.subscriptions.countAt(server) }

// ServersRemoved forgets the figures of servers that are gone.
func (n *Notifier) ServersRemoved(servers []string) {
	n.subscriptions.showMu.Lock() // or a session that ends now shows a row of theirs
	defer n.subscriptions.showMu.Unlock()
	for _, name := range servers {
		n.o.Metrics.DeleteGauges(name)
	}
}

// Connected notes a connection, before its first use.
func (n *Notifier) Connected(s *upstream.Server, conn upstream.Conn) { n.levels.opened(s.Name(), conn) }

// Restore sends a new connection the log level and subscriptions of the previous one. ctx ends
// with the connection.
func (n *Notifier) Restore(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	if l := n.levels.get(conn); l != nil {
		n.sendLevel(ctx, l)
	}
	n.reopenUnits(ctx, s, conn)
	n.restore(ctx, s.Name(), conn)
}

// Disconnected removes a connection and the subscriptions that it had.
func (n *Notifier) Disconnected(conn upstream.Conn) {
	n.levels.closed(conn)
	n.subscriptions.dropConn(conn)
}
