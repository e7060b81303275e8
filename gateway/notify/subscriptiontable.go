package notify

import (
	"context"
	"maps"
	"slices"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
)

// subscriptionKey identifies a connection's subscription. unit is "" for the shared
// connection.
type subscriptionKey struct {
	server, unit, uri string
	// secondEra selects the process for stateless clients (upstream.Info.SecondEra).
	secondEra bool
}

func (k subscriptionKey) matches(conn upstream.Conn) bool {
	return conn.Unit() == k.unit && conn.Info().SecondEra == k.secondEra
}

// subscriber is a session, or one listen of a stateless client.
type subscriber struct {
	session *downstream.Session
	listen  *listen // nil for the session itself
}

// subscription holds the subscribers of a resource. busy serializes requests to the
// server. subscriptionTable.mu guards the fields below busy and is never held during a
// request.
type subscription struct {
	busy    chan struct{} // capacity one; full during a request to the server
	waiters int           // goroutines that need busy; they keep the row

	conn        upstream.Conn           // on which the server accepted, or nil
	subscribers map[subscriber][]string // with their spellings
}

type subscriptionTable struct {
	mu           sync.Mutex
	rows         map[subscriptionKey]*subscription
	byResource   map[resource][]subscriptionKey
	serverCounts map[string]int                              // subscribers per server
	bySubscriber map[subscriber]map[string][]subscriptionKey // by subscriber and spelling
	bytes        int                                         // see subscriptionSize
	clientBytes  map[any]int                                 // by subscriber.client

	showMu sync.Mutex // held while a row is read and published
}

// resource is independent of the connection.
type resource struct{ server, uri string }

func (k subscriptionKey) resource() resource { return resource{k.server, k.uri} }

// maxShown limits the session ids shown per resource.
const maxShown = 20

// Limits of subscriptions: clients choose the URIs, and several tables hold each.
const (
	// maxSubscriptions limits the resources of a session or listen.
	maxSubscriptions = 10000
	// Limits in bytes, per client and in total.
	maxClientBytes = 8 << 20
	maxAllBytes    = 64 << 20
)

// subscriptionSize returns the counted bytes: both spellings and an allowance for the
// tables.
func subscriptionSize(key subscriptionKey, spelling string) int {
	return len(key.uri) + len(spelling) + 256
}

// client returns the key for counting bytes: the session, or the listen for stateless
// HTTP.
func (h subscriber) client() any {
	if h.session.Stateless() {
		return h.listen
	}
	return h.session
}

var (
	errTooMany = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
		"Too many subscriptions: at most %d per session; unsubscribe some first", maxSubscriptions)
	errTooLarge = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
		"Too many subscriptions: at most %d MiB of URIs per client; unsubscribe some first", maxClientBytes>>20)
	errTotalTooLarge = jsonrpc.Errorf(jsonrpc.CodeInternal,
		"Too many subscriptions: at most %d MiB of URIs for all clients; try again later", maxAllBytes>>20)
)

func (t *subscriptionTable) init() {
	t.rows = make(map[subscriptionKey]*subscription)
	t.byResource = make(map[resource][]subscriptionKey)
	t.serverCounts = make(map[string]int)
	t.bySubscriber = make(map[subscriber]map[string][]subscriptionKey)
	t.clientBytes = make(map[any]int)
}

func (t *subscriptionTable) rowLocked(key subscriptionKey) *subscription {
	row := t.rows[key]
	if row == nil {
		row = &subscription{busy: make(chan struct{}, 1), subscribers: make(map[subscriber][]string)}
		t.rows[key] = row
		t.byResource[key.resource()] = append(t.byResource[key.resource()], key)
	}
	return row
}

func removeKey[K comparable](index map[K][]subscriptionKey, at K, key subscriptionKey) {
	left := slices.DeleteFunc(index[at], func(k subscriptionKey) bool { return k == key })
	if len(left) == 0 {
		delete(index, at)
	} else {
		index[at] = left
	}
}

func (t *subscriptionTable) subscribeLocked(key subscriptionKey, row *subscription, s subscriber, spelling string) {
	if t.bySubscriber[s] == nil {
		t.bySubscriber[s] = make(map[string][]subscriptionKey)
	}
	if row.subscribers[s] == nil {
		t.serverCounts[key.server]++
	}
	row.subscribers[s] = append(row.subscribers[s], spelling)
	t.bySubscriber[s][spelling] = append(t.bySubscriber[s][spelling], key)
	t.countLocked(s, subscriptionSize(key, spelling))
}

func (t *subscriptionTable) countLocked(s subscriber, n int) {
	t.bytes += n
	client := s.client()
	t.clientBytes[client] += n
	if t.clientBytes[client] == 0 {
		delete(t.clientBytes, client)
	}
}

func (t *subscriptionTable) unsubscribeLocked(key subscriptionKey, row *subscription, s subscriber) {
	for _, spelling := range row.subscribers[s] {
		removeKey(t.bySubscriber[s], spelling, key)
		t.countLocked(s, -subscriptionSize(key, spelling))
	}
	delete(row.subscribers, s)
	t.serverCounts[key.server]--
	if len(t.bySubscriber[s]) == 0 {
		delete(t.bySubscriber, s)
	}
}

// add adds a subscriber's spelling. added is false if it exists.
func (t *subscriptionTable) add(key subscriptionKey, row *subscription, s subscriber, spelling string) (added bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(row.subscribers[s], spelling) {
		return false, nil
	}
	if err := t.checkLimitsLocked(key, s, spelling); err != nil {
		return false, err
	}
	t.subscribeLocked(key, row, s, spelling)
	return true, nil
}

// remove removes a spelling, or all for an unused one or "". It reports whether to
// unsubscribe at the server.
func (t *subscriptionTable) remove(key subscriptionKey, s subscriber, spelling string) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.rows[key]
	if row == nil || row.subscribers[s] == nil {
		return false
	}
	used := row.subscribers[s]
	if i := slices.Index(used, spelling); i >= 0 && len(used) > 1 {
		row.subscribers[s] = slices.Delete(used, i, i+1)
		removeKey(t.bySubscriber[s], spelling, key)
		t.countLocked(s, -subscriptionSize(key, spelling))
		return false
	}
	t.unsubscribeLocked(key, row, s)
	last = len(row.subscribers) == 0 && row.conn != nil
	if last {
		row.conn = nil
	}
	t.sweepLocked(key, row)
	return last
}

func (t *subscriptionTable) bySpelling(s subscriber, spelling string) []subscriptionKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.bySubscriber[s][spelling])
}

func (t *subscriptionTable) all(s subscriber) []subscriptionKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make(map[subscriptionKey]bool, len(t.bySubscriber[s]))
	for _, keys := range t.bySubscriber[s] {
		for _, key := range keys {
			rows[key] = true
		}
	}
	return slices.Collect(maps.Keys(rows))
}

func (t *subscriptionTable) checkLimits(key subscriptionKey, s subscriber, spelling string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bySubscriber[s][spelling] != nil {
		return nil
	}
	return t.checkLimitsLocked(key, s, spelling)
}

func (t *subscriptionTable) checkLimitsLocked(key subscriptionKey, s subscriber, spelling string) error {
	n := subscriptionSize(key, spelling)
	switch {
	case len(t.bySubscriber[s]) >= maxSubscriptions:
		return errTooMany
	case t.clientBytes[s.client()]+n > maxClientBytes:
		return errTooLarge
	case t.bytes+n > maxAllBytes:
		return errTotalTooLarge
	}
	return nil
}

func (t *subscriptionTable) countSubscribers(key subscriptionKey) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row := t.rows[key]; row != nil {
		n = len(row.subscribers)
	}
	return n
}

func (t *subscriptionTable) subscribers(key subscriptionKey) []subscriber {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row := t.rows[key]; row != nil {
		return slices.Collect(maps.Keys(row.subscribers))
	}
	return nil
}

// sessionIDs counts a resource's subscriptions and returns up to maxShown sorted session
// ids.
func (t *subscriptionTable) sessionIDs(key subscriptionKey) (n int, ids []string) {
	t.mu.Lock()
	for _, k := range t.byResource[key.resource()] {
		for s := range t.rows[k].subscribers {
			ids = append(ids, s.session.ID())
		}
	}
	t.mu.Unlock()
	n = len(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids) // a session may have several listens
	return n, ids[:min(len(ids), maxShown)]
}

// lock serializes requests for a key until unlock.
func (t *subscriptionTable) lock(ctx context.Context, key subscriptionKey) (*subscription, error) {
	t.mu.Lock()
	row := t.rowLocked(key)
	row.waiters++
	t.mu.Unlock()
	select {
	case row.busy <- struct{}{}:
		return row, nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		row.waiters--
		t.sweepLocked(key, row)
		return nil, context.Cause(ctx)
	}
}

func (t *subscriptionTable) unlock(key subscriptionKey, row *subscription) {
	<-row.busy
	t.mu.Lock()
	defer t.mu.Unlock()
	row.waiters--
	t.sweepLocked(key, row)
}

func (t *subscriptionTable) sweepLocked(key subscriptionKey, row *subscription) {
	if row.waiters == 0 && len(row.subscribers) == 0 && t.rows[key] == row {
		delete(t.rows, key)
		removeKey(t.byResource, key.resource(), key)
	}
}

// move moves rows to their sessions' current connections, where they are not yet
// accepted. Stateless clients that need their own connection lose their subscriptions.
func (t *subscriptionTable) move(server string, placeOf func(subscriptionKey, subscriber) subscriptionKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, row := range t.rows {
		if key.server != server {
			continue
		}
		for s, spellings := range row.subscribers {
			to := placeOf(key, s)
			if to == key {
				continue
			}
			t.unsubscribeLocked(key, row, s)
			if to.unit != key.unit && to.unit == s.session.Unit() && s.session.Stateless() {
				continue // it has no connection of its own
			}
			for other := t.rowLocked(to); len(spellings) > 0; spellings = spellings[1:] {
				if !slices.Contains(other.subscribers[s], spellings[0]) {
					t.subscribeLocked(to, other, s, spellings[0])
				}
			}
		}
		t.sweepLocked(key, row)
	}
}

// keys returns a copy for use outside the lock.
func (t *subscriptionTable) keys(match func(subscriptionKey, *subscription) bool) []subscriptionKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []subscriptionKey
	for key, row := range t.rows {
		if match(key, row) {
			found = append(found, key)
		}
	}
	return found
}

func (t *subscriptionTable) countAt(server string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.serverCounts[server]
}

func (t *subscriptionTable) dropConn(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range t.rows {
		if row.conn == conn {
			row.conn = nil
		}
	}
}
