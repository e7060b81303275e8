package registry

import (
	"sort"
	"sync"
	"time"
)

// The values of SubscriptionState.Status.
const (
	SubscriptionAsked   = "asked"
	SubscriptionOn      = "on"
	SubscriptionRefused = "refused"
)

// SubscriptionState is what screens and metrics show of a subscription. Who
// holds it, and asking the server, is the gateway's business.
type SubscriptionState struct {
	Server     string
	URI        string // original
	Listed     string // filled by the registry when empty
	Status     string
	Error      string // why it was refused
	Holders    int
	Updates    uint64 // counted by [Registry.Touched]
	LastUpdate time.Time
}

type subscriptionKey struct{ server, uri string }

type subscriptions struct {
	mu   sync.Mutex
	rows map[subscriptionKey]SubscriptionState
}

// SetSubscription adds or replaces the row of (Server, URI). The counters of
// a row that exists go on; those in s are taken only when they are set. Rows of
// unknown servers are ignored.
func (r *Registry) SetSubscription(s SubscriptionState) {
	if r.Load().table(s.Server) == nil {
		return
	}
	if s.Listed == "" {
		s.Listed = r.ListedURI(s.Server, s.URI)
	}
	t := &r.subscriptions
	k := subscriptionKey{s.Server, s.URI}
	t.mu.Lock()
	if old, ok := t.rows[k]; ok {
		if s.Updates == 0 {
			s.Updates = old.Updates
		}
		if s.LastUpdate.IsZero() {
			s.LastUpdate = old.LastUpdate
		}
	}
	if t.rows == nil {
		t.rows = map[subscriptionKey]SubscriptionState{}
	}
	t.rows[k] = s
	t.mu.Unlock()
	r.feed.publish(Subscriptions)
}

// DropSubscription removes a row.
func (r *Registry) DropSubscription(server, uri string) {
	t := &r.subscriptions
	k := subscriptionKey{server, uri}
	t.mu.Lock()
	_, ok := t.rows[k]
	delete(t.rows, k)
	t.mu.Unlock()
	if ok {
		r.feed.publish(Subscriptions)
	}
}

// Touched counts an update of a subscribed URI. Without a row it does nothing.
func (r *Registry) Touched(server, uri string) {
	t := &r.subscriptions
	k := subscriptionKey{server, uri}
	t.mu.Lock()
	row, ok := t.rows[k]
	if ok {
		row.Updates++
		row.LastUpdate = r.opt.Now()
		t.rows[k] = row
	}
	t.mu.Unlock()
	if ok {
		r.feed.publish(Subscriptions)
	}
}

// Subscriptions returns all rows in the order of server and URI.
func (r *Registry) Subscriptions() []SubscriptionState {
	t := &r.subscriptions
	t.mu.Lock()
	rows := make([]SubscriptionState, 0, len(t.rows))
	for _, row := range t.rows {
		rows = append(rows, row)
	}
	t.mu.Unlock()
	sort.Slice(rows, func(i, j int) bool {
		if rows[i].Server != rows[j].Server {
			return rows[i].Server < rows[j].Server
		}
		return rows[i].URI < rows[j].URI
	})
	return rows
}

func (t *subscriptions) dropServer(server string) (dropped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.rows {
		if k.server == server {
			delete(t.rows, k)
			dropped = true
		}
	}
	return dropped
}
