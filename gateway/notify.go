package gateway

import (
	"context"
	"sync"
	"time"

	"goblin/gateway/journal"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// Clients hear of changed lists after changeQuiet without another change, at
// the latest changeLimit after the first: bursts become one notice.
const (
	changeQuiet = 50 * time.Millisecond
	changeLimit = 300 * time.Millisecond
)

// lists are the changes that clients hear of.
const lists = registry.Tools | registry.Prompts | registry.Resources | registry.Templates

// listNotices are the notices of changed lists and the kinds they stand for.
var listNotices = []struct {
	method string
	kinds  []registry.Kind
}{
	{"notifications/tools/list_changed", []registry.Kind{registry.Tool}},
	{"notifications/prompts/list_changed", []registry.Kind{registry.Prompt}},
	{"notifications/resources/list_changed", []registry.Kind{registry.Resource, registry.Template}},
}

// notifyChanges tells sessions of changed lists until ctx ends: each of those
// that differ from what it listed or was told of last.
func (g *Gateway) notifyChanges(ctx context.Context) {
	changes := g.reg.Watch(ctx, lists, registry.Servers)
	for {
		select {
		case change, open := <-changes:
			if !open {
				return
			}
			if change&registry.Servers != 0 {
				g.serversChanged()
			}
			if change&lists == 0 {
				continue
			}
		case <-g.said.wake:
		}
		// While servers start, lists wait for them: one notice when they are
		// whole serves clients better than one per server.
		g.Servers.AwaitLists(ctx)
		if !g.settle(ctx, changes) {
			return
		}
		g.announce(g.reg.Load())
	}
}

// settle waits until changes pause; it reports false when ctx has ended.
func (g *Gateway) settle(ctx context.Context, changes <-chan registry.Changes) bool {
	limit := time.NewTimer(changeLimit)
	defer limit.Stop()
	quiet := time.NewTimer(changeQuiet)
	defer quiet.Stop()
	for {
		select {
		case change, open := <-changes:
			if !open {
				return false
			}
			if change&registry.Servers != 0 {
				g.serversChanged()
			}
			if change&lists != 0 {
				quiet.Reset(changeQuiet)
			}
		case <-quiet.C:
			return true
		case <-limit.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func (g *Gateway) announce(now *registry.Snapshot) {
	clients, open, said := g.allClients(), g.listens.open(), g.said.counts()
	for i, n := range listNotices {
		var to []journal.Receiver
		for _, c := range clients {
			if !c.session.Ready() {
				continue
			}
			news := false
			for _, k := range n.kinds {
				news = c.told(k, now.Version(k)) || news
			}
			if news {
				c.session.Merge(n.method, n.method, nil)
				to = append(to, journal.Receiver{Session: c.session})
			}
		}
		for _, l := range open {
			if l.wants[i] && l.told(n.kinds, now, said) {
				l.changed(n.method)
				to = append(to, journal.Receiver{Session: l.r.Session()})
			}
		}
		g.journal.Broadcast("", n.method, "", nil, to)
	}
}

// said counts, per kind, the lists that servers announced as changed and that
// were fetched again. Sessions hear only of a merged list that is another than
// before. Stateless clients keep what they were answered, as long as the answer
// said that they may: those who listen hear of each announcement too.
type said struct {
	wake chan struct{} // capacity one

	mu sync.Mutex
	of [registry.Kinds]uint64
}

func (s *said) init() { s.wake = make(chan struct{}, 1) }

// again is called by servers' connections.
func (s *said) again(k registry.Kind) {
	s.mu.Lock()
	s.of[k]++
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *said) counts() [registry.Kinds]uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of
}

const serversURI = "goblin://servers"

// serversChanged tells those who watch the servers' state.
func (g *Gateway) serversChanged() {
	g.tellSubscribers(subscriptionKey{server: registry.Local, uri: serversURI}, rawjson.Object("uri", serversURI))
}
