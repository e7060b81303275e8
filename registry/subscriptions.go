package registry

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// Values of SubscriptionState.Status.
const (
	SubscriptionRequested = "asked"
	SubscriptionOn        = "on"
	SubscriptionRefused   = "refused"
)

const maxHolders = 20

// SubscriptionState describes a subscription of the gateway, for UIs and metrics.
type SubscriptionState struct {
	Server   string
	URI      string // original
	Listed   string
	Status   string
	Error    string // reason for a refusal
	Holders  int
	Sessions []string // ids of up to 20 holders; read-only
	// Updates and LastUpdate cover the calls of [Registry.ResourceUpdated] for the URI
	// and URIs below it.
	Updates    uint64
	LastUpdate time.Time
}

type subscriptionKey struct{ server, uri string }

type subscriptionRow struct {
	SubscriptionState
	lastRecord time.Time // when updates were last logged
	pending    uint64    // updates since then
}

type subscriptionTable struct {
	mu   sync.Mutex
	rows map[subscriptionKey]*subscriptionRow
	// order has all rows sorted by server and URI, or is nil if outdated.
	order []*subscriptionRow
}

// SetSubscription adds or replaces the row of (Server, URI) and keeps its counters. Rows
// of unknown servers are ignored.
func (r *Registry) SetSubscription(s SubscriptionState) {
	if r.Load().table(s.Server) == nil {
		return
	}
	s.Listed = r.ListedURI(s.Server, s.URI)
	s.Error = cutString(s.Error, maxField)
	s.Sessions = slices.Clone(s.Sessions[:min(len(s.Sessions), maxHolders)])
	for i := range s.Sessions {
		s.Sessions[i] = cutString(s.Sessions[i], maxField)
	}
	t := &r.subscriptions
	k := subscriptionKey{s.Server, s.URI}
	t.mu.Lock()
	row, before := t.rows[k], ""
	if row == nil {
		// Strings of the catalog would keep a whole list in memory.
		s.URI, s.Listed = strings.Clone(s.URI), strings.Clone(s.Listed)
		if t.rows == nil {
			t.rows = map[subscriptionKey]*subscriptionRow{}
		}
		row = &subscriptionRow{SubscriptionState: s}
		t.rows[subscriptionKey{s.Server, s.URI}] = row
		t.order = nil
	} else {
		before = row.Status
		s.Updates, s.LastUpdate = row.Updates, row.LastUpdate
		s.URI = row.URI
		if s.Listed == row.Listed {
			s.Listed = row.Listed
		} else {
			s.Listed = strings.Clone(s.Listed)
		}
		row.SubscriptionState = s
	}
	t.mu.Unlock()
	if s.Status != before {
		r.logSubscription(&s)
	}
	r.feed.publish(Subscriptions)
}

// DropSubscription removes a row.
func (r *Registry) DropSubscription(server, uri string) {
	t := &r.subscriptions
	k := subscriptionKey{server, uri}
	t.mu.Lock()
	row := t.rows[k]
	if row != nil {
		delete(t.rows, k)
		t.order = nil
	}
	t.mu.Unlock()
	if row != nil {
		ended := row.SubscriptionState
		ended.Status, ended.Error = "", ""
		r.logSubscription(&ended)
		r.feed.publish(Subscriptions)
	}
}

// ResourceUpdated counts an update of a URI for its row and the rows of parent URIs. It
// also marks their contents as stale, including those in flight. Without such a row it
// does nothing, because no client subscribed. It logs at most once per row and second,
// with the number of updates since the last record.
func (r *Registry) ResourceUpdated(server, uri string) {
	now := r.opt.Now()
	t := &r.subscriptions
	t.mu.Lock()
	nearest := t.touchLocked(server, uri, now)
	for parent := range ParentURIs(uri) {
		if row := t.touchLocked(server, parent, now); nearest == nil {
			nearest = row
		}
	}
	if nearest == nil {
		t.mu.Unlock()
		return
	}
	listed, updates := nearest.Listed, r.pendingUpdates(nearest, now)
	t.mu.Unlock()
	switch {
	case updates == 1:
		r.event(slog.LevelInfo, server, "updated: "+r.shortName(listed))
	case updates > 1:
		r.event(slog.LevelInfo, server, fmt.Sprintf("updated %d times: %s", updates, r.shortName(listed)))
	}
	r.feed.publish(Subscriptions)
	r.markContentsUpdated(server, uri, now)
}

func (t *subscriptionTable) touchLocked(server, uri string, now time.Time) *subscriptionRow {
	row := t.rows[subscriptionKey{server, uri}]
	if row != nil {
		row.Updates++
		row.LastUpdate = now
	}
	return row
}

// pendingUpdates returns 0 if it is too early to log.
func (r *Registry) pendingUpdates(row *subscriptionRow, now time.Time) (updates uint64) {
	row.pending++
	if now.Sub(row.lastRecord) < updatePause {
		return 0
	}
	r.events.mu.Lock()
	_, ok := r.events.updates.allow(now)
	r.events.mu.Unlock()
	if !ok {
		return 0
	}
	updates = row.pending
	row.pending, row.lastRecord = 0, now
	return updates
}

// Subscription returns the row of a server's original URI. O(1).
func (r *Registry) Subscription(server, uri string) (SubscriptionState, bool) {
	t := &r.subscriptions
	t.mu.Lock()
	defer t.mu.Unlock()
	if row := t.rows[subscriptionKey{server, uri}]; row != nil {
		return row.SubscriptionState, true
	}
	return SubscriptionState{}, false
}

// Subscriptions returns all rows, sorted by server and URI.
func (r *Registry) Subscriptions() []SubscriptionState {
	t := &r.subscriptions
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.order == nil {
		t.order = make([]*subscriptionRow, 0, len(t.rows))
		for _, row := range t.rows {
			t.order = append(t.order, row)
		}
		slices.SortFunc(t.order, func(a, b *subscriptionRow) int {
			return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.URI, b.URI))
		})
	}
	rows := make([]SubscriptionState, len(t.order))
	for i, row := range t.order {
		rows[i] = row.SubscriptionState
	}
	return rows
}

func (t *subscriptionTable) dropServer(server string) (dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.rows {
		if k.server == server {
			delete(t.rows, k)
			dropped++
		}
	}
	if dropped > 0 {
		t.order = nil
	}
	return dropped
}
