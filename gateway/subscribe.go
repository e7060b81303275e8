package gateway

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// subscriptionKey names what one connection watches. The unit is "" for the
// connection that all sessions share.
type subscriptionKey struct{ server, unit, uri string }

// subscription counts who watches a resource. Asking the backend and telling
// it off is serialized per key by busy; the fields below it are guarded by
// subscriptions.mu, which is never held while a backend is asked.
type subscription struct {
	busy    chan struct{} // capacity one: holds a token while a backend is asked
	waiters int           // who holds or waits for busy: the row must stay

	conn    upstream.Conn                    // on which the backend agreed; nil for none
	holders map[*downstream.Session][]string // the spellings that each session used
}

type subscriptions struct {
	mu       sync.Mutex
	rows     map[subscriptionKey]*subscription
	servers  map[string]int              // holders at each server
	sessions map[*downstream.Session]int // rows that each session holds
}

// maxSubscriptions bounds what one session may watch.
const maxSubscriptions = 10000

func (t *subscriptions) init() {
	t.rows = make(map[subscriptionKey]*subscription)
	t.servers = make(map[string]int)
	t.sessions = make(map[*downstream.Session]int)
}

// hold adds a session to a row, in the spelling that it used.
func (t *subscriptions) hold(key subscriptionKey, row *subscription, s *downstream.Session, spelling string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row.holders[s] == nil {
		t.servers[key.server]++
		t.sessions[s]++
	}
	if !slices.Contains(row.holders[s], spelling) {
		row.holders[s] = append(row.holders[s], spelling)
	}
}

// let takes a session off a row: the one spelling, or all where it is "" or
// another than those used. It reports whether the backend is to be told off.
func (t *subscriptions) let(key subscriptionKey, row *subscription, s *downstream.Session, spelling string) (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	used := row.holders[s]
	if used == nil {
		return false
	}
	if i := slices.Index(used, spelling); i >= 0 && len(used) > 1 {
		row.holders[s] = slices.Delete(used, i, i+1)
		return false
	}
	delete(row.holders, s)
	t.servers[key.server]--
	if t.sessions[s]--; t.sessions[s] == 0 {
		delete(t.sessions, s)
	}
	last = len(row.holders) == 0 && row.conn != nil
	if last {
		row.conn = nil
	}
	return last
}

// full reports whether a session may not watch more.
func (t *subscriptions) full(s *downstream.Session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessions[s] >= maxSubscriptions
}

// holders counts the sessions that watch a resource, over all units.
func (t *subscriptions) holders(key subscriptionKey) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if key.unit == "" {
		if row := t.rows[key]; row != nil {
			n = len(row.holders)
		}
		return n
	}
	for k, row := range t.rows {
		if k.server == key.server && k.uri == key.uri {
			n += len(row.holders)
		}
	}
	return n
}

// enter takes the key's turn, which leave gives back.
func (t *subscriptions) enter(ctx context.Context, key subscriptionKey) (*subscription, error) {
	t.mu.Lock()
	row := t.rows[key]
	if row == nil {
		row = &subscription{busy: make(chan struct{}, 1), holders: make(map[*downstream.Session][]string)}
		t.rows[key] = row
	}
	row.waiters++
	t.mu.Unlock()
	select {
	case row.busy <- struct{}{}:
		return row, nil
	case <-ctx.Done():
		t.mu.Lock()
		defer t.mu.Unlock()
		row.waiters--
		t.sweep(key, row)
		return nil, context.Cause(ctx)
	}
}

func (t *subscriptions) leave(key subscriptionKey, row *subscription) {
	<-row.busy
	t.mu.Lock()
	defer t.mu.Unlock()
	row.waiters--
	t.sweep(key, row)
}

// sweep drops a row that nobody holds or waits for.
func (t *subscriptions) sweep(key subscriptionKey, row *subscription) {
	if row.waiters == 0 && len(row.holders) == 0 && t.rows[key] == row {
		delete(t.rows, key)
	}
}

// forget drops the rows of a server that was removed.
func (t *subscriptions) forget(server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, row := range t.rows {
		if key.server != server {
			continue
		}
		for s := range row.holders {
			if t.sessions[s]--; t.sessions[s] == 0 {
				delete(t.sessions, s)
			}
		}
		delete(t.rows, key)
	}
	delete(t.servers, server)
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

// held counts the sessions' subscriptions at a server.
func (t *subscriptions) held(server string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.servers[server]
}

// subscriptionTarget resolves what a subscription names.
func (g *Gateway) subscriptionTarget(r *request) (registry.Target, bool) {
	uri, _, err := stringMember(r.Params(), "uri")
	if err != nil {
		r.fail(err)
		return registry.Target{}, false
	}
	r.name = uri
	t, err := g.find(r.Context(), (*registry.Registry).ResolveResource, uri)
	if err != nil {
		r.fail(err)
		return registry.Target{}, false
	}
	r.server = t.Server
	return t, true
}

// subscribe acknowledges once the backend did; only the first holder makes it
// ask.
func (g *Gateway) subscribe(r *request) {
	t, ok := g.subscriptionTarget(r)
	if !ok {
		return
	}
	if g.subscriptions.full(r.Session()) {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"Too many subscriptions: a session may hold %d; unsubscribe some first", maxSubscriptions))
		return
	}
	key := subscriptionKey{server: t.Server, uri: t.Name}
	b := g.server(t.Server)
	if b != nil && perSession(b) {
		key.unit = r.Session().Unit()
	}
	row, err := g.subscriptions.enter(r.Context(), key)
	if err != nil {
		r.fail(err)
		return
	}
	defer g.subscriptions.leave(key, row)
	if t.Local == nil && !g.agree(r, b, key, row) {
		return
	}
	g.subscriptions.hold(key, row, r.Session(), r.name)
	if conn := g.flights.of(key.server, key.unit); conn != nil && conn != g.agreed(row) {
		// Replaced since it agreed, and before this row counted.
		g.askAgain(r.Context(), key, row, conn)
	}
	g.showSubscription(key, registry.SubscriptionOn, nil)
	r.reply(emptyResult)
}

// agree makes the backend watch a resource, unless it does already. It answers
// the client when that fails.
func (g *Gateway) agree(r *request, b *backend, key subscriptionKey, row *subscription) bool {
	if b == nil {
		r.fail(&upstream.Error{Code: upstream.ConnectionError, Server: key.server, Reason: "it was removed"})
		return false
	}
	conn, err := g.conn(r.Context(), b, r.Session())
	if err != nil {
		r.fail(err)
		return false
	}
	if !conn.Info().Has("resources", "subscribe") {
		r.fail(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Server '%s' offers no subscriptions", key.server))
		return false
	}
	if g.agreed(row) == conn {
		return true
	}
	g.showSubscription(key, registry.SubscriptionAsked, nil)
	reply, err := conn.Call(subscriptionCall(r.Context(), "resources/subscribe", key.uri))
	switch {
	case err != nil:
		r.fail(err)
	case reply.Error != nil:
		err = jsonrpc.ParseErrorObject(reply.Error)
		w := rewriter{registry: g.reg, server: key.server, whole: reply.Error}
		w.failure(reply.Error)
		r.refuse(reply.Error, w.edits...)
	}
	if err != nil {
		g.showSubscription(key, registry.SubscriptionRefused, err)
		return false
	}
	g.setAgreed(row, conn)
	return true
}

// agreed is the connection on which the backend agreed to a row.
func (g *Gateway) agreed(row *subscription) upstream.Conn {
	g.subscriptions.mu.Lock()
	defer g.subscriptions.mu.Unlock()
	return row.conn
}

func (g *Gateway) setAgreed(row *subscription, conn upstream.Conn) {
	g.subscriptions.mu.Lock()
	defer g.subscriptions.mu.Unlock()
	row.conn = conn
}

func subscriptionCall(ctx context.Context, method, uri string) *upstream.Call {
	return &upstream.Call{Context: ctx, Method: method, Params: object("uri", uri)}
}

// unsubscribe is idempotent: what is not held, or not known any more, is not
// an error.
func (g *Gateway) unsubscribe(r *request) {
	uri, _, err := stringMember(r.Params(), "uri")
	if err != nil {
		r.fail(err)
		return
	}
	r.name = uri
	s := r.Session()
	held := g.subscriptions.keys(func(_ subscriptionKey, row *subscription) bool {
		return slices.Contains(row.holders[s], uri)
	})
	if len(held) == 0 {
		if t, err := g.reg.ResolveResource(uri); err == nil {
			held = append(held, subscriptionKey{t.Server, "", t.Name}, subscriptionKey{t.Server, s.Unit(), t.Name})
		}
	}
	for _, key := range held {
		r.server = key.server
		g.release(r.Context(), key, s, uri)
	}
	r.reply(emptyResult)
}

// release takes a session off a row; the last one makes the backend stop.
func (g *Gateway) release(ctx context.Context, key subscriptionKey, s *downstream.Session, spelling string) {
	row, err := g.subscriptions.enter(ctx, key)
	if err != nil {
		return
	}
	defer g.subscriptions.leave(key, row)
	if g.subscriptions.let(key, row, s, spelling) {
		g.tellOff(ctx, key)
	}
	g.showSubscription(key, registry.SubscriptionOn, nil)
}

// tellOff asks the backend to stop. A backend that is down forgot already.
func (g *Gateway) tellOff(ctx context.Context, key subscriptionKey) {
	conn := g.flights.of(key.server, key.unit)
	if conn == nil {
		return
	}
	if reply, err := conn.Call(subscriptionCall(ctx, "resources/unsubscribe", key.uri)); err != nil {
		g.log.Warn("Unsubscribe failed", "server", key.server, "uri", key.uri, "err", err)
	} else if reply.Error != nil {
		g.log.Warn("Unsubscribe refused", "server", key.server, "uri", key.uri,
			"err", jsonrpc.ParseErrorObject(reply.Error).Message)
	}
}

// releaseTimeout bounds how long a session that ended waits for backends to
// agree.
const releaseTimeout = 10 * time.Second

// releaseSubscriptions gives back all that an ended session held.
func (g *Gateway) releaseSubscriptions(s *downstream.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	held := g.subscriptions.keys(func(_ subscriptionKey, row *subscription) bool { return row.holders[s] != nil })
	var each errgroup.Group
	each.SetLimit(8)
	for _, key := range held {
		each.Go(func() error {
			g.release(ctx, key, s, "")
			return nil
		})
	}
	_ = each.Wait()
}

// Rows that a new connection refused are asked for again, ever more slowly.
const (
	restoreTries    = 8
	restorePause    = time.Second
	restoreMaxPause = 30 * time.Second
)

// restore asks a new connection for what sessions held on the one before. ctx
// ends with the connection.
func (g *Gateway) restore(ctx context.Context, server string, conn upstream.Conn) {
	pause := restorePause
	for range restoreTries {
		lost := g.subscriptions.keys(func(k subscriptionKey, row *subscription) bool {
			return k.server == server && k.unit == conn.Unit() && len(row.holders) > 0 && row.conn != conn
		})
		if len(lost) == 0 {
			return
		}
		if !conn.Info().Has("resources", "subscribe") {
			g.log.Warn("Subscriptions lost: the server no longer offers them", "server", server, "count", len(lost))
			return
		}
		var each errgroup.Group
		each.SetLimit(8)
		for _, key := range lost {
			each.Go(func() error {
				g.restoreOne(ctx, key, conn)
				return nil
			})
		}
		_ = each.Wait() // none of them returns an error
		select {
		case <-time.After(pause):
		case <-conn.Done():
			return
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, restoreMaxPause)
	}
}

func (g *Gateway) restoreOne(ctx context.Context, key subscriptionKey, conn upstream.Conn) {
	row, err := g.subscriptions.enter(ctx, key)
	if err != nil {
		return
	}
	defer g.subscriptions.leave(key, row)
	if g.subscriptions.holders(key) > 0 && g.agreed(row) != conn {
		g.askAgain(ctx, key, row, conn)
	}
}

// askAgain makes a new connection watch what the one before it did.
func (g *Gateway) askAgain(ctx context.Context, key subscriptionKey, row *subscription, conn upstream.Conn) {
	reply, err := conn.Call(subscriptionCall(ctx, "resources/subscribe", key.uri))
	if err == nil && reply.Error != nil {
		err = jsonrpc.ParseErrorObject(reply.Error)
	}
	if err != nil {
		g.log.Warn("Subscription not restored", "server", key.server, "uri", key.uri, "err", err)
		g.showSubscription(key, registry.SubscriptionRefused, err)
		return
	}
	g.setAgreed(row, conn)
	g.showSubscription(key, registry.SubscriptionOn, nil)
	// What changed while the connection was down was not announced.
	g.tellSubscribers(key.server, key.unit, key.uri, object("uri", key.uri))
}

// lapse notes that a connection is gone, and with it what it had agreed to.
func (g *Gateway) lapse(conn upstream.Conn) {
	g.subscriptions.mu.Lock()
	defer g.subscriptions.mu.Unlock()
	for _, row := range g.subscriptions.rows {
		if row.conn == conn {
			row.conn = nil
		}
	}
}

// updated delivers a backend's notice to those who subscribed to the URI or
// to one above it (spec: an update may name a sub-resource).
func (g *Gateway) updated(server, unit string, params []byte) {
	uri, ok := rawjson.String(rawjson.Get(params, "uri"))
	if !ok {
		g.log.Warn("Update without a URI ignored", "server", server)
		return
	}
	g.reg.Touched(server, uri)
	g.tellSubscribers(server, unit, uri, params)
	for i := len(uri) - 1; i > 0; i-- {
		if uri[i] == '/' {
			g.tellSubsOf(server, unit, uri[:i], uri, params)
			g.tellSubsOf(server, unit, uri[:i+1], uri, params)
		}
	}
}

func (g *Gateway) tellSubscribers(server, unit, uri string, params []byte) {
	g.tellSubsOf(server, unit, uri, uri, params)
}

// tellSubsOf tells the subscribers of watched that uri, at or below it,
// changed. Each gets the spelling that it subscribed with.
func (g *Gateway) tellSubsOf(server, unit, watched, uri string, params []byte) {
	type notice struct {
		session *downstream.Session
		uri     string
	}
	var notices []notice
	g.subscriptions.mu.Lock()
	if row := g.subscriptions.rows[subscriptionKey{server, unit, watched}]; row != nil {
		for s, spellings := range row.holders {
			for _, spelling := range spellings {
				notices = append(notices, notice{s, g.spell(server, spelling, watched, uri)})
			}
		}
	}
	g.subscriptions.mu.Unlock()
	for _, n := range notices {
		n.session.Merge("updated:"+n.uri, "notifications/resources/updated", params,
			rawjson.Replace(params, rawjson.Get(params, "uri"), rawjson.Quote(n.uri)))
	}
}

// spell is uri in the spelling that a subscriber used for watched.
func (g *Gateway) spell(server, spelling, watched, uri string) string {
	if uri == watched {
		return spelling
	}
	g.reg.Learn(server, uri)
	if strings.HasSuffix(spelling, watched) {
		return spelling + uri[len(watched):]
	}
	return g.reg.ListedURI(server, uri)
}

// showSubscription writes a row's state where screens and metrics see it.
func (g *Gateway) showSubscription(key subscriptionKey, status string, err error) {
	g.metrics.Subscriptions(key.server, g.subscriptions.held(key.server))
	holders := g.subscriptions.holders(key)
	if holders == 0 && status != registry.SubscriptionAsked {
		g.reg.DropSubscription(key.server, key.uri)
		return
	}
	state := registry.SubscriptionState{
		Server: key.server, URI: key.uri, Listed: g.reg.ListedURI(key.server, key.uri),
		Status: status, Holders: holders,
	}
	if err != nil {
		state.Error = err.Error()
	}
	g.reg.SetSubscription(state)
}
