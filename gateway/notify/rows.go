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

// subscriptionKey names what one connection watches. The unit is "" for the
// connection that all sessions share.
type subscriptionKey struct {
	server, unit, uri string
	// second is set for what is watched by a process that serves stateless
	// clients, beside the one of all others (upstream.Info.SecondEra).
	second bool
}

// on reports whether a connection to the server is the one that watches.
func (k subscriptionKey) on(conn upstream.Conn) bool {
	return conn.Unit() == k.unit && conn.Info().SecondEra == k.second
}

// subscriber watches resources: a session, or one subscriptions/listen of
// a stateless client.
type subscriber struct {
	session *downstream.Session
	listen  *listen // nil for the session itself
}

// subscription counts the watchers of a resource. Asking the backend and telling
// it off is serialized per key by busy; the fields below it are guarded by
// subscriptions.mu, which is never held while a backend is asked.
type subscription struct {
	busy    chan struct{} // capacity one: holds a token while a backend is asked
	waiters int           // how many hold or wait for busy: the row must stay

	conn        upstream.Conn           // on which the backend agreed; nil for none
	subscribers map[subscriber][]string // the spellings that each used
}

type subscriptions struct {
	mu      sync.Mutex
	rows    map[subscriptionKey]*subscription
	places  map[resource][]subscriptionKey              // the rows of a resource
	servers map[string]int                              // subscribers at each server
	of      map[subscriber]map[string][]subscriptionKey // what each watches, by the spelling that it used
	bytes   int                                         // of all that is held; see weigh
	clients map[any]int                                 // bytes of each; see subscriber.client

	show sync.Mutex // held while a row is looked at and shown
}

// resource is a resource, whatever the connection that watches it.
type resource struct{ server, uri string }

func (k subscriptionKey) watched() resource { return resource{k.server, k.uri} }

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

// weigh returns the bytes that a subscription counts for: its URI, as the client spelled
// it and as the server knows it, and an allowance for the tables.
func weigh(key subscriptionKey, spelling string) int { return len(key.uri) + len(spelling) + 256 }

// client is the key under which a subscriber's bytes are counted: the session, but for
// stateless clients over HTTP, which have one in common, their listen.
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
	errTooLargeTogether = jsonrpc.Errorf(jsonrpc.CodeInternal,
		"Too many subscriptions: the URIs of all clients' together may have %d MiB; try again later", maxAllBytes>>20)
)

func (t *subscriptions) init() {
	t.rows = make(map[subscriptionKey]*subscription)
	t.places = make(map[resource][]subscriptionKey)
	t.servers = make(map[string]int)
	t.of = make(map[subscriber]map[string][]subscriptionKey)
	t.clients = make(map[any]int)
}

// rowLocked finds or makes a row.
func (t *subscriptions) rowLocked(key subscriptionKey) *subscription {
	row := t.rows[key]
	if row == nil {
		row = &subscription{busy: make(chan struct{}, 1), subscribers: make(map[subscriber][]string)}
		t.rows[key] = row
		t.places[key.watched()] = append(t.places[key.watched()], key)
	}
	return row
}

// without takes a key out of one of the lists of an index.
func without[K comparable](index map[K][]subscriptionKey, at K, key subscriptionKey) {
	left := slices.DeleteFunc(index[at], func(k subscriptionKey) bool { return k == key })
	if len(left) == 0 {
		delete(index, at)
	} else {
		index[at] = left
	}
}

// takeLocked makes s a subscriber of a row, in a spelling that it has not used yet.
func (t *subscriptions) takeLocked(key subscriptionKey, row *subscription, s subscriber, spelling string) {
	if t.of[s] == nil {
		t.of[s] = make(map[string][]subscriptionKey)
	}
	if row.subscribers[s] == nil {
		t.servers[key.server]++
	}
	row.subscribers[s] = append(row.subscribers[s], spelling)
	t.of[s][spelling] = append(t.of[s][spelling], key)
	t.countLocked(s, weigh(key, spelling))
}

// countLocked adds bytes to what a subscriber's client and all clients hold.
func (t *subscriptions) countLocked(s subscriber, n int) {
	t.bytes += n
	client := s.client()
	t.clients[client] += n
	if t.clients[client] == 0 {
		delete(t.clients, client)
	}
}

// dropLocked undoes takeLocked, for all spellings that s used.
func (t *subscriptions) dropLocked(key subscriptionKey, row *subscription, s subscriber) {
	for _, spelling := range row.subscribers[s] {
		without(t.of[s], spelling, key)
		t.countLocked(s, -weigh(key, spelling))
	}
	delete(row.subscribers, s)
	t.servers[key.server]--
	if len(t.of[s]) == 0 {
		delete(t.of, s)
	}
}

// add adds a session to a row, in the spelling that it used, and reports
// whether that is new; with an error where the session may not hold more.
func (t *subscriptions) add(key subscriptionKey, row *subscription, s subscriber, spelling string) (added bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.Contains(row.subscribers[s], spelling) {
		return false, nil
	}
	if err := t.fullLocked(key, s, spelling); err != nil {
		return false, err
	}
	t.takeLocked(key, row, s, spelling)
	return true, nil
}

// remove removes a subscriber's spelling from a row; all of them for "" or one that was not
// used. It reports whether to unsubscribe at the backend.
func (t *subscriptions) remove(key subscriptionKey, s subscriber, spelling string) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	row := t.rows[key]
	if row == nil || row.subscribers[s] == nil {
		return false
	}
	used := row.subscribers[s]
	if i := slices.Index(used, spelling); i >= 0 && len(used) > 1 {
		row.subscribers[s] = slices.Delete(used, i, i+1)
		without(t.of[s], spelling, key)
		t.countLocked(s, -weigh(key, spelling))
		return false
	}
	t.dropLocked(key, row, s)
	last = len(row.subscribers) == 0 && row.conn != nil
	if last {
		row.conn = nil
	}
	t.sweepLocked(key, row)
	return last
}

// spelled are the rows that a session holds in a spelling.
func (t *subscriptions) spelled(s subscriber, spelling string) []subscriptionKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.of[s][spelling])
}

// all are the rows that a session holds.
func (t *subscriptions) all(s subscriber) []subscriptionKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make(map[subscriptionKey]bool, len(t.of[s]))
	for _, keys := range t.of[s] {
		for _, key := range keys {
			rows[key] = true
		}
	}
	return slices.Collect(maps.Keys(rows))
}

// full says why a session may not hold one more; nil if it may, or holds it.
func (t *subscriptions) full(key subscriptionKey, s subscriber, spelling string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[s][spelling] != nil {
		return nil
	}
	return t.fullLocked(key, s, spelling)
}

func (t *subscriptions) fullLocked(key subscriptionKey, s subscriber, spelling string) error {
	n := weigh(key, spelling)
	switch {
	case len(t.of[s]) >= maxSubscriptions:
		return errTooMany
	case t.clients[s.client()]+n > maxClientBytes:
		return errTooLarge
	case t.bytes+n > maxAllBytes:
		return errTooLargeTogether
	}
	return nil
}

// subscribers counts the watchers over one connection.
func (t *subscriptions) subscribers(key subscriptionKey) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row := t.rows[key]; row != nil {
		n = len(row.subscribers)
	}
	return n
}

// holders are the watchers over one connection.
func (t *subscriptions) holders(key subscriptionKey) []subscriber {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row := t.rows[key]; row != nil {
		return slices.Collect(maps.Keys(row.subscribers))
	}
	return nil
}

// sessionIDs counts the sessions that watch a resource, over all connections, and
// names the first of them in the order of their ids.
func (t *subscriptions) sessionIDs(key subscriptionKey) (n int, ids []string) {
	t.mu.Lock()
	for _, k := range t.places[key.watched()] {
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

// enter takes the key's turn, which leave gives back.
func (t *subscriptions) enter(ctx context.Context, key subscriptionKey) (*subscription, error) {
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

func (t *subscriptions) leave(key subscriptionKey, row *subscription) {
	<-row.busy
	t.mu.Lock()
	defer t.mu.Unlock()
	row.waiters--
	t.sweepLocked(key, row)
}

// sweepLocked drops a row without holders and waiting requests.
func (t *subscriptions) sweepLocked(key subscriptionKey, row *subscription) {
	if row.waiters == 0 && len(row.subscribers) == 0 && t.rows[key] == row {
		delete(t.rows, key)
		without(t.places, key.watched(), key)
	}
}

// move takes the rows of a server to the connections that serve their sessions now.
// None of them has agreed to anything yet. Clients that cannot have one of their own
// lose theirs.
func (t *subscriptions) move(server string, placeOf func(subscriptionKey, subscriber) subscriptionKey) {
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
			t.dropLocked(key, row, s)
			if to.unit != key.unit && to.unit == s.session.Unit() && s.session.Stateless() {
				continue // there is no process that it could have alone
			}
			for other := t.rowLocked(to); len(spellings) > 0; spellings = spellings[1:] {
				if !slices.Contains(other.subscribers[s], spellings[0]) {
					t.takeLocked(to, other, s, spellings[0])
				}
			}
		}
		t.sweepLocked(key, row)
	}
}

// keys are the rows that match, for work outside the lock.
func (t *subscriptions) keys(match func(subscriptionKey, *subscription) bool) []subscriptionKey {
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

// at counts the sessions' subscriptions at a server.
func (t *subscriptions) at(server string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.servers[server]
}

// lapse takes back what a connection that is gone had agreed to.
func (t *subscriptions) lapse(conn upstream.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, row := range t.rows {
		if row.conn == conn {
			row.conn = nil
		}
	}
}
