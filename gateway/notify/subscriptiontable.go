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

// subscriptionKey identifies the subscription of one connection to a resource. The unit is ""
// for the connection that all sessions share.
type subscriptionKey struct {
	server, unit, uri string
	// secondEra is set for the process that serves stateless clients only
	// (upstream.Info.SecondEra).
	secondEra bool
}

// matches reports whether conn is the connection of the subscription.
func (k subscriptionKey) matches(conn upstream.Conn) bool {
	return conn.Unit() == k.unit && conn.Info().SecondEra == k.secondEra
}

// subscriber is a session, or one subscriptions/listen of a stateless client.
type subscriber struct {
	session *downstream.Session
	listen  *listen // nil for the session itself
}

// subscription has the subscribers of a resource. Requests to the server are serialized per
// key by busy. subscriptionTable.mu guards the fields below busy, and is never held during a
// request.
type subscription struct {
	busy    chan struct{} // capacity one: holds a token during a request to the server
	waiters int           // number of goroutines that hold or wait for busy: the row must stay

	conn        upstream.Conn           // on which the server accepted; nil for none
	subscribers map[subscriber][]string // the spellings that each used
}

type subscriptionTable struct {
	mu           sync.Mutex
	rows         map[subscriptionKey]*subscription
	byResource   map[resource][]subscriptionKey              // the rows of a resource
	serverCounts map[string]int                              // subscribers at each server
	bySubscriber map[subscriber]map[string][]subscriptionKey // by subscriber and the spelling that it used
	bytes        int                                         // of all subscriptions; see subscriptionSize
	clientBytes  map[any]int                                 // by subscriber.client

	showMu sync.Mutex // held while a row is read and shown
}

// resource is a resource, whatever the connection that watches it.
type resource struct{ server, uri string }

func (k subscriptionKey) resource() resource { return resource{k.server, k.uri} }

// maxShown bounds how many of its subscribers are shown of a row.
const maxShown = 20

// Bounds of subscriptions. Clients choose their URIs, and several tables hold each.
const (
	// maxSubscriptions bounds how many resources one session, or one listen, may
	// watch.
	maxSubscriptions = 10000
	// maxClientBytes bounds what a client's subscriptions weigh, all of them over
	// all its listens, and maxAllBytes those of all clients.
	maxClientBytes = 8 << 20
	maxAllBytes    = 64 << 20
)

// subscriptionSize returns the bytes that a subscription counts for: both spellings of its URI
// and an allowance for the tables.
func subscriptionSize(key subscriptionKey, spelling string) int {
	return len(key.uri) + len(spelling) + 256
}

// client returns the key by which a subscriber's bytes are counted: the session, or the listen
// of a stateless client over HTTP.
func (h subscriber) client() any {
	if h.session.Stateless() {
		return h.listen
	}
	return h.session
}

var (
	errTooMany = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
		"Too many subscriptions: a session may hold %d; unsubscribe some first", maxSubscriptions)
	errTooLarge = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
		"Too many subscriptions: the URIs of a client's may have %d MiB together; unsubscribe some first", maxClientBytes>>20)
	errTotalTooLarge = jsonrpc.Errorf(jsonrpc.CodeInternal,
		"Too many subscriptions: the URIs of all clients' together may have %d MiB; try again later", maxAllBytes>>20)
)

func (t *subscriptionTable) init() {
	t.rows = make(map[subscriptionKey]*subscription)
	t.byResource = make(map[resource][]subscriptionKey)
	t.serverCounts = make(map[string]int)
	t.bySubscriber = make(map[subscriber]map[string][]subscriptionKey)
	t.clientBytes = make(map[any]int)
}

// rowLocked finds or makes a row.
func (t *subscriptionTable) rowLocked(key subscriptionKey) *subscription {
	row := t.rows[key]
	if row == nil {
		row = &subscription{busy: make(chan struct{}, 1), subscribers: make(map[subscriber][]string)}
		t.rows[key] = row
		t.byResource[key.resource()] = append(t.byResource[key.resource()], key)
	}
	return row
}

// removeKey removes a key from one of the lists of an index.
func removeKey[K comparable](index map[K][]subscriptionKey, at K, key subscriptionKey) {
	left := slices.DeleteFunc(index[at], func(k subscriptionKey) bool { return k == key })
	if len(left) == 0 {
		delete(index, at)
	} else {
		index[at] = left
	}
}

// subscribeLocked adds s to a row, in a spelling that it has not used yet.
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

// countLocked adds bytes to what a subscriber's client and all clients hold.
func (t *subscriptionTable) countLocked(s subscriber, n int) {
	t.bytes += n
	client := s.client()
	t.clientBytes[client] += n
	if t.clientBytes[client] == 0 {
		delete(t.clientBytes, client)
	}
}

// unsubscribeLocked removes s from a row, in all spellings.
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

// add adds a session to a row, in the spelling that it used, and reports
// whether that is new; with an error where the session may not hold more.
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

// remove removes a subscriber's spelling from a row; all of them for "" or one that was not
// used. It reports whether to unsubscribe at the backend.
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

// bySpelling returns the rows of a subscriber in a spelling.
func (t *subscriptionTable) bySpelling(s subscriber, spelling string) []subscriptionKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.bySubscriber[s][spelling])
}

// all returns the rows of a subscriber.
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

// checkLimits returns why a subscriber may not have one more row; nil if it may, or has it.
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

// countSubscribers counts the subscribers over one connection.
func (t *subscriptionTable) countSubscribers(key subscriptionKey) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row := t.rows[key]; row != nil {
		n = len(row.subscribers)
	}
	return n
}

// subscribers returns the subscribers over one connection.
func (t *subscriptionTable) subscribers(key subscriptionKey) []subscriber {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row := t.rows[key]; row != nil {
		return slices.Collect(maps.Keys(row.subscribers))
	}
	return nil
}

// sessionIDs counts the sessions that watch a resource, over all connections, and
// names the first of them in the order of their ids.
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
	ids = slices.Compact(ids) // a session may hold it by several listens
	return n, ids[:min(len(ids), maxShown)]
}

// lock locks a key for requests to its server; unlock releases it.
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

// sweepLocked drops a row without holders and waiting requests.
func (t *subscriptionTable) sweepLocked(key subscriptionKey, row *subscription) {
	if row.waiters == 0 && len(row.subscribers) == 0 && t.rows[key] == row {
		delete(t.rows, key)
		removeKey(t.byResource, key.resource(), key)
	}
}

// move takes the rows of a server to the connections that serve their sessions now.
// None of them has agreed to anything yet. Clients that cannot have one of their own
// lose theirs.
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
				continue // there is no process that it could have alone
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

// keys are the rows that match, for work outside the lock.
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

// countAt counts the subscriptions at a server.
func (t *subscriptionTable) countAt(server string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.serverCounts[server]
}

// dropConn clears the connection of the rows that conn had.
func (t *subscriptionTable) dropConn(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range t.rows {
		if row.conn == conn {
			row.conn = nil
		}
	}
}
