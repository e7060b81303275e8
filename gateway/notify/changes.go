package notify

import (
	"context"
	"sync"
	"time"

	"goblin/gateway/telemetry"
	"goblin/registry"
)

// Clients hear of changed lists after changeQuiet without another change, at
// the latest changeLimit after the first, and no sooner than changePause after
// the notice before: bursts become one notice, as there are clients that fetch
// all pages again for each.
const (
	changeQuiet = 50 * time.Millisecond
	changeLimit = 300 * time.Millisecond
	changePause = time.Second
)

// lists are the changes that clients hear of. The first skill that a client sees brings it
// tools of Goblin's own.
const lists = registry.Tools | registry.Prompts | registry.Resources | registry.Templates | registry.Skills

// listNotices are the notices of changed lists and the kinds they stand for.
var listNotices = []struct {
	method string
	kinds  []registry.Kind
}{
	{"notifications/tools/list_changed", []registry.Kind{registry.Tool}},
	{"notifications/prompts/list_changed", []registry.Kind{registry.Prompt}},
	{"notifications/resources/list_changed", []registry.Kind{registry.Resource, registry.Template}},
}

// Run tells sessions of changed lists until ctx ends: each of those
// that differ from what it listed or was told of last.
func (n *Notifier) Run(ctx context.Context) {
	changes := n.o.Registry.Watch(ctx, lists, registry.Servers)
	n.o.Servers.AwaitCachedLists(ctx)
	n.remember(n.versions())
	var last time.Time // when somebody was told
	for {
		select {
		case change, open := <-changes:
			if !open {
				return
			}
			if !n.listsChanged(change) {
				continue
			}
		case <-n.announced.wake:
			if n.narrowed.Swap(false) {
				n.serversChanged()
			}
		}
		// While servers start, lists wait for them: one notice when they are
		// whole serves clients better than one per server.
		n.o.Servers.AwaitLists(ctx)
		if !n.settle(ctx, changes, last.Add(changePause)) {
			return
		}
		if n.announce() {
			last = time.Now()
		}
	}
}

// settle waits until changes pause, but not before earliest; it reports false when ctx
// has ended.
func (n *Notifier) settle(ctx context.Context, changes <-chan registry.Changes, earliest time.Time) bool {
	left := time.Until(earliest)
	limit := time.After(max(changeLimit, left))
	quiet := time.NewTimer(max(changeQuiet, left))
	defer quiet.Stop()
	for {
		select {
		case change, open := <-changes:
			if !open {
				return false
			}
			if n.listsChanged(change) {
				quiet.Reset(max(changeQuiet, time.Until(earliest)))
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

// announce notifies the clients that have not heard of the lists as they are now, and
// reports whether there were any.
func (n *Notifier) announce() (told bool) {
	open := n.listens.open()
	defer n.remember(n.versions()) // what is told of now is no news to sessions that come later
	for i, l := range listNotices {
		var to []telemetry.Receiver
		for _, s := range n.o.Clients.All() {
			if s.Ready() && n.notified(s, l.kinds, n.o.Visibility.ListsForSession(s)) {
				s.NotifyLatest(l.method, l.method, nil)
				to = append(to, telemetry.Receiver{Session: s})
			}
		}
		for _, other := range open {
			if other.wants[i] && other.notified(l.kinds) {
				other.changed(l.method)
				to = append(to, telemetry.Receiver{Session: other.x.Session()})
			}
		}
		n.o.Journal.Broadcast("", l.method, "", nil, to)
		told = told || len(to) > 0
	}
	return told
}

// announced counts, per server and kind, the lists that servers announced as changed and that
// were fetched again. Sessions hear only of a merged list that is another than
// before. Stateless clients keep what they were answered, as long as the answer
// said that they may: those who listen hear of each announcement too.
type announced struct {
	wake chan struct{} // capacity one

	mu sync.Mutex
	of map[string]*[registry.Kinds]uint64
}

// again is called by servers' connections.
func (s *announced) again(server string, k registry.Kind) {
	s.mu.Lock()
	if s.of == nil {
		s.of = make(map[string]*[registry.Kinds]uint64)
	}
	if s.of[server] == nil {
		s.of[server] = new([registry.Kinds]uint64)
	}
	s.of[server][k]++
	s.mu.Unlock()
	s.look()
}

// look wakes the goroutine that announces.
func (s *announced) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// counts are those of the servers in lists, for what these have the whole of: what a server
// announced may be of the part that is not in them, and whatever else changes them has
// another version.
func (s *announced) counts(seen *registry.Snapshot) (all [registry.Kinds]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	choice := seen.Visibility()
	for server, counts := range s.of {
		for k, n := range counts {
			kind := registry.Kind(k)
			if seen.ServerCount(server, kind) > 0 && (choice == nil || choice.All(server, kind)) {
				all[k] += n
			}
		}
	}
	return all
}

// listsChanged reports whether lists are among the changes. It notifies watchers of the
// servers' states itself.
func (n *Notifier) listsChanged(changes registry.Changes) bool {
	if changes&registry.Servers != 0 {
		n.serversChanged()
	}
	return changes&lists != 0
}
