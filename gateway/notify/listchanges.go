package notify

import (
	"context"
	"sync"
	"time"

	"goblin/gateway/telemetry"
	"goblin/registry"
)

// Clients are notified after changeDelay without a change, at most changeLimit after the
// first one. The minimum interval is changeInterval. Some clients fetch all pages for
// each notification.
const (
	changeDelay    = 50 * time.Millisecond
	changeLimit    = 300 * time.Millisecond
	changeInterval = time.Second
)

// listKinds are the kinds with notifications. The first visible skill adds tools of
// Goblin.
const listKinds = registry.Tools | registry.Prompts | registry.Resources | registry.Templates | registry.Skills

var listNotifications = []struct {
	method string
	kinds  []registry.Kind
}{
	{"notifications/tools/list_changed", []registry.Kind{registry.Tool}},
	{"notifications/prompts/list_changed", []registry.Kind{registry.Prompt}},
	{"notifications/resources/list_changed", []registry.Kind{registry.Resource, registry.Template}},
}

// Run notifies sessions of changed lists until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	changes := n.o.Registry.Watch(ctx, listKinds, registry.Servers)
	n.o.Servers.AwaitCachedLists(ctx)
	n.setInitial(n.versions())
	var last time.Time // last notification
	for {
		select {
		case change, open := <-changes:
			if !open {
				return
			}
			if !n.listsChanged(change) {
				continue
			}
		case <-n.refetched.wake:
			if n.visibilityChanged.Swap(false) {
				n.notifyServers()
			}
		}
		// One notification for the complete lists is better than one per starting server.
		n.o.Servers.AwaitLists(ctx)
		if !n.awaitQuiet(ctx, changes, last.Add(changeInterval)) {
			return
		}
		if n.notifyLists() {
			last = time.Now()
		}
	}
}

// awaitQuiet waits until changes pause, at least until earliest. It returns false if ctx
// ended.
func (n *Notifier) awaitQuiet(ctx context.Context, changes <-chan registry.Changes, earliest time.Time) bool {
	left := time.Until(earliest)
	limit := time.After(max(changeLimit, left))
	quiet := time.NewTimer(max(changeDelay, left))
	defer quiet.Stop()
	for {
		select {
		case change, open := <-changes:
			if !open {
				return false
			}
			if n.listsChanged(change) {
				quiet.Reset(max(changeDelay, time.Until(earliest)))
			}
		case <-quiet.C:
			return true
		case <-limit:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (n *Notifier) notifyLists() (notified bool) {
	open := n.listens.open()
	defer n.setInitial(n.versions()) // later sessions have these lists
	for i, l := range listNotifications {
		var to []telemetry.Receiver
		for _, s := range n.o.Clients.All() {
			if s.Ready() && n.update(s, l.kinds, n.o.Visibility.ListsForSession(s)) {
				s.NotifyLatest(l.method, l.method, nil)
				to = append(to, telemetry.Receiver{Session: s})
			}
		}
		for _, other := range open {
			if other.wanted[i] && other.update(l.kinds) {
				other.listChanged(l.method)
				to = append(to, telemetry.Receiver{Session: other.x.Session()})
			}
		}
		n.o.Journal.RecordBroadcast("", l.method, "", nil, to)
		notified = notified || len(to) > 0
	}
	return notified
}

// refetchCounts counts the lists that were fetched again after an announcement. Each is
// announced to listens, because stateless clients cache answers. Sessions are only
// notified if the merged list differs.
type refetchCounts struct {
	wake chan struct{} // capacity one

	mu       sync.Mutex
	byServer map[string]*[registry.Kinds]uint64
}

// add counts a fetched list, on a server's read loop.
func (s *refetchCounts) add(server string, k registry.Kind) {
	s.mu.Lock()
	if s.byServer == nil {
		s.byServer = make(map[string]*[registry.Kinds]uint64)
	}
	if s.byServer[server] == nil {
		s.byServer[server] = new([registry.Kinds]uint64)
	}
	s.byServer[server][k]++
	s.mu.Unlock()
	s.signal()
}

func (s *refetchCounts) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// counts returns the sums over servers whose lists are completely visible. If part of a
// list is hidden, the announcement may concern that part.
func (s *refetchCounts) counts(seen *registry.Snapshot) (all [registry.Kinds]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	choice := seen.Visibility()
	for server, counts := range s.byServer {
		for k, n := range counts {
			kind := registry.Kind(k)
			if seen.ServerCount(server, kind) > 0 && (choice == nil || choice.All(server, kind)) {
				all[k] += n
			}
		}
	}
	return all
}

// listsChanged reports whether lists changed. It also notifies watchers of server states.
func (n *Notifier) listsChanged(changes registry.Changes) bool {
	if changes&registry.Servers != 0 {
		n.notifyServers()
	}
	return changes&listKinds != 0
}
