package notify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/telemetry"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// RefusedError is a backend's own error.
type RefusedError struct{ Object []byte }

func (e *RefusedError) Error() string { return jsonrpc.ParseErrorObject(e.Object).Message }

// Subscribe makes a session watch a resource, in the spelling that it used, and returns
// when the server has agreed.
func (n *Notifier) Subscribe(ctx context.Context, s *downstream.Session, t registry.Target, spelling string) error {
	return n.watch(ctx, subscriber{session: s}, t, spelling)
}

// Unsubscribe is idempotent: what is not watched, or not known any more, is not an error.
// It returns the server whose resource it was.
func (n *Notifier) Unsubscribe(ctx context.Context, s *downstream.Session, uri string) (server string) {
	me := subscriber{session: s}
	keys := n.rows.spelled(me, uri)
	if len(keys) == 0 {
		if t, err := n.o.Visibility.ForSession(s).ResolveResource(uri); err == nil {
			keys = append(keys, subscriptionKey{server: t.Server, uri: t.Name})
			if b := n.o.Servers.Get(t.Server); b != nil {
				keys = append(keys, subscriptionKey{server: t.Server, unit: b.IsolationUnit(s), uri: t.Name})
			}
		}
	}
	for _, key := range keys {
		server = key.server
		n.release(ctx, key, me, uri)
	}
	return server
}

// watchable reports whether the config allows what a row watches now.
func (n *Notifier) watchable(key subscriptionKey) bool {
	b := n.o.Servers.Get(key.server)
	return b == nil || b.Permits(registry.Resource, key.uri)
}

// watch makes h a subscriber of a resource, in the spelling that it used, and
// returns when the backend has agreed.
func (n *Notifier) watch(ctx context.Context, h subscriber, t registry.Target, spelling string) error {
	key := subscriptionKey{server: t.Server, uri: t.Name}
	if err := n.rows.full(key, h, spelling); err != nil {
		return err
	}
	var conn upstream.Conn
	if t.Local == nil {
		b := n.o.Servers.Get(t.Server)
		if b == nil {
			return &upstream.Error{Code: upstream.ConnectionError, Server: t.Server, Reason: "it was removed"}
		}
		key.unit = b.IsolationUnit(h.session)
		// A process knows best what its own clients do. Over HTTP one connection
		// hears it all.
		own := h.listen != nil && b.Config().Type == config.Stdio
		var err error
		if conn, err = n.o.Servers.Conn(ctx, b, h.session, own); err != nil {
			return err
		}
		key.second = conn.Info().SecondEra
	}
	row, err := n.rows.enter(ctx, key)
	if err != nil {
		return err
	}
	defer n.rows.leave(key, row)
	// An update can follow the backend's answer so closely that it must find
	// the subscriber here already.
	added, err := n.rows.add(key, row, h, spelling)
	if err != nil {
		return err
	}
	if key == serversKey {
		n.watchServers(h)
	}
	if t.Local == nil {
		if err := n.agree(ctx, conn, key, row); err != nil {
			if added {
				n.rows.remove(key, h, spelling)
				n.showSubscription(key, registry.SubscriptionOn, nil) // of others, if any
			}
			return err
		}
	}
	if n.rows.subscribers(key) == 0 { // unsubscribed meanwhile, by another spelling
		n.setAgreed(row, nil)
		n.tellOff(ctx, key)
	} else if conn := n.connOf(key); conn != nil && conn != n.agreed(row) {
		// Replaced since it agreed, and before this row counted.
		n.askAgain(ctx, key, row, conn)
	}
	n.showSubscription(key, registry.SubscriptionOn, nil)
	return nil
}

// agree makes the backend watch a resource, unless it does already.
func (n *Notifier) agree(ctx context.Context, conn upstream.Conn, key subscriptionKey, row *subscription) error {
	if !n.watchable(key) { // by a config that is newer than the request
		return &registry.NotFoundError{Kind: registry.Resource, Name: key.uri, Reason: registry.ReasonNotFound}
	}
	if !conn.Info().Has("resources", "subscribe") {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Server '%s' offers no subscriptions", key.server)
	}
	if n.agreed(row) == conn {
		return nil
	}
	n.showSubscription(key, registry.SubscriptionRequested, nil)
	reply, err := conn.Call(subscriptionCall(ctx, "resources/subscribe", key.uri))
	if err != nil {
		return err
	}
	if reply.Error != nil {
		return &RefusedError{reply.Error}
	}
	n.setAgreed(row, conn)
	return nil
}

// agreed is the connection on which the backend agreed to a row.
func (n *Notifier) agreed(row *subscription) upstream.Conn {
	n.rows.mu.Lock()
	defer n.rows.mu.Unlock()
	return row.conn
}

func (n *Notifier) setAgreed(row *subscription, conn upstream.Conn) {
	n.rows.mu.Lock()
	defer n.rows.mu.Unlock()
	row.conn = conn
}

func subscriptionCall(ctx context.Context, method, uri string) *upstream.Call {
	return &upstream.Call{Context: ctx, Method: method, Params: rawjson.Object("uri", uri)}
}

// release takes a subscriber off a row; the last one makes the backend stop.
func (n *Notifier) release(ctx context.Context, key subscriptionKey, h subscriber, spelling string) {
	last := n.rows.remove(key, h, spelling)
	n.showSubscription(key, registry.SubscriptionOn, nil)
	if last {
		n.giveBack(ctx, key)
	}
}

// giveBack makes the backend stop watching what has no holder any more.
func (n *Notifier) giveBack(ctx context.Context, key subscriptionKey) {
	row, err := n.rows.enter(ctx, key)
	if err != nil {
		return
	}
	defer n.rows.leave(key, row)
	if n.rows.subscribers(key) == 0 { // nobody came meanwhile
		n.tellOff(ctx, key)
	}
}

// connOf is the open connection that a row belongs to; nil for none.
func (n *Notifier) connOf(key subscriptionKey) upstream.Conn {
	b := n.o.Servers.Get(key.server)
	if b == nil {
		return nil
	}
	for _, l := range n.o.Requests.Links() {
		if l.Server == b.Server && key.on(l.Conn) {
			return l.Conn
		}
	}
	return nil
}

// tellOff asks the backend to stop. A backend that is down forgot already.
func (n *Notifier) tellOff(ctx context.Context, key subscriptionKey) {
	conn := n.connOf(key)
	if conn == nil {
		return
	}
	if reply, err := conn.Call(subscriptionCall(ctx, "resources/unsubscribe", key.uri)); err != nil {
		n.o.Logger.Warn("Unsubscribe failed", "server", key.server, "uri", key.uri, "err", err)
	} else if reply.Error != nil {
		n.o.Logger.Warn("Unsubscribe refused", "server", key.server, "uri", key.uri,
			"err", jsonrpc.ParseErrorObject(reply.Error).Message)
	}
}

// releaseTimeout bounds how long a session that ended waits for backends to
// agree.
const releaseTimeout = 10 * time.Second

// releaseAll gives back all that a session or listen held that has
// ended.
func (n *Notifier) releaseAll(h subscriber) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	rows := n.rows.all(h)
	// First what is ours to end, then what needs a backend that may be slow.
	rows = slices.DeleteFunc(rows, func(key subscriptionKey) bool {
		last := n.rows.remove(key, h, "")
		n.showSubscription(key, registry.SubscriptionOn, nil)
		return !last
	})
	inflight.ForEachLimit(8, rows, func(_ int, key subscriptionKey) { n.giveBack(ctx, key) })
}

// Rows that a new connection refused are asked for again, ever more slowly.
const (
	restoreTries    = 8
	restorePause    = time.Second
	restoreMaxPause = 30 * time.Second
)

// reopen opens the connections beside a new one that have something to be
// restored on them: its server may have taken the place of another.
func (n *Notifier) reopen(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	if conn.Info().SecondEra {
		return
	}
	type place struct {
		unit   string
		second bool
	}
	places := make(map[place]bool)
	for _, key := range n.rows.keys(func(k subscriptionKey, row *subscription) bool {
		return k.server == s.Name() && (k.second || conn.Unit() == "" && k.unit != "") && len(row.subscribers) > 0
	}) {
		places[place{key.unit, key.second}] = true
	}
	for p := range places {
		n.work.Go(func() {
			if p.second {
				if s.Modern(ctx, p.unit) == nil && ctx.Err() == nil { // there may be none any more
					n.rows.move(s.Name(), func(key subscriptionKey, _ subscriber) subscriptionKey {
						key.second = key.second && key.unit != p.unit
						return key
					})
					n.restore(ctx, s.Name(), conn)
				}
			} else if _, err := s.Unit(ctx, p.unit); err != nil {
				n.o.Logger.Debug("Connection of a client not opened again", "server", s.Name(), "err", err)
			}
			if p.unit != "" && !n.o.Clients.HasUnit(p.unit) {
				s.CloseUnit(p.unit) // its session ended meanwhile
			}
		})
	}
}

// restore asks a new connection for what sessions held on the one before. ctx
// ends with the connection.
func (n *Notifier) restore(ctx context.Context, server string, conn upstream.Conn) {
	pause := restorePause
	for range restoreTries {
		lost := n.rows.keys(func(k subscriptionKey, row *subscription) bool {
			return k.server == server && k.on(conn) && len(row.subscribers) > 0 && row.conn != conn
		})
		lost = slices.DeleteFunc(lost, func(k subscriptionKey) bool {
			denied := !n.watchable(k)
			if denied {
				n.showSubscription(k, registry.SubscriptionRefused, errDenied)
			}
			return denied
		})
		if len(lost) == 0 {
			return
		}
		if !conn.Info().Has("resources", "subscribe") {
			n.o.Logger.Warn("Subscriptions lost: the server no longer offers them", "server", server, "count", len(lost))
			return
		}
		inflight.ForEachLimit(restoreWidth(conn), lost, func(_ int, key subscriptionKey) { n.restoreOne(ctx, key, conn) })
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

func (n *Notifier) restoreOne(ctx context.Context, key subscriptionKey, conn upstream.Conn) {
	row, err := n.rows.enter(ctx, key)
	if err != nil {
		return
	}
	defer n.rows.leave(key, row)
	if n.rows.subscribers(key) > 0 && n.agreed(row) != conn {
		n.askAgain(ctx, key, row, conn)
	}
}

var errDenied = errors.New("the config denies it now")

// askAgain makes a new connection watch what the one before it did.
func (n *Notifier) askAgain(ctx context.Context, key subscriptionKey, row *subscription, conn upstream.Conn) {
	if !n.watchable(key) {
		return
	}
	reply, err := conn.Call(subscriptionCall(ctx, "resources/subscribe", key.uri))
	if err == nil && reply.Error != nil {
		err = jsonrpc.ParseErrorObject(reply.Error)
	}
	if err != nil {
		n.o.Logger.Warn("Subscription not restored", "server", key.server, "uri", key.uri, "err", err)
		n.showSubscription(key, registry.SubscriptionRefused, err)
		return
	}
	n.setAgreed(row, conn)
	n.showSubscription(key, registry.SubscriptionOn, nil)
	// What changed while the connection was down was not announced.
	n.o.Registry.ResourceUpdated(key.server, key.uri)
	n.tellSubscribers(key, rawjson.Object("uri", key.uri))
}

// ResourceUpdated delivers a backend's notice to the subscribers to the URI or
// to one above it (spec: an update may name a sub-resource).
func (n *Notifier) ResourceUpdated(s *upstream.Server, conn upstream.Conn, params []byte) {
	server := s.Name()
	b := n.o.Servers.Get(server)
	if b == nil || b.Server != s {
		return // its successor watches
	}
	uri, ok := rawjson.String(rawjson.Get(params, "uri"))
	if !ok || len(uri) > registry.MaxURI {
		n.o.Logger.Warn("Update without a URI, or with one that is too long, ignored", "server", server)
		return
	}
	if !b.Permits(registry.Resource, uri) {
		return
	}
	n.o.Registry.ResourceUpdated(server, uri)
	key := subscriptionKey{server: server, unit: conn.Unit(), uri: uri, second: conn.Info().SecondEra}
	notified := make(map[subscriber]bool)
	n.tellSubsOf(key, uri, params, notified)
	for key.uri = range registry.ParentURIs(uri) {
		n.tellSubsOf(key, uri, params, notified)
	}
	if len(notified) == 0 {
		n.o.Journal.Notification(registry.ToClient, nil, server, "notifications/resources/updated", uri, params)
	}
}

func (n *Notifier) tellSubscribers(key subscriptionKey, params []byte) {
	n.tellSubsOf(key, key.uri, params, make(map[subscriber]bool))
}

// maxUpdates is how many bytes may wait for a subscriber before it is told of the
// resource that it watches instead of each below that.
const maxUpdates = 1 << 20

// catalogOf returns the catalog of a subscriber's client.
func (n *Notifier) catalogOf(h subscriber) *registry.Snapshot {
	if h.listen != nil {
		return n.o.Visibility.For(h.listen.x)
	}
	return n.o.Visibility.ForSession(h.session)
}

// unsent is how many bytes wait for a subscriber.
func (h subscriber) unsent() int64 {
	if h.listen != nil {
		return h.listen.unsent()
	}
	return h.session.UnsentBytes()
}

// tellSubsOf tells the subscribers of a row that uri, at or below the row's,
// changed, but for those in notified, and adds them there. Each gets the
// spelling that it subscribed with.
func (n *Notifier) tellSubsOf(key subscriptionKey, uri string, params []byte, notified map[subscriber]bool) {
	server, watched := key.server, key.uri
	type notice struct {
		subscriber
		watched string // the row's own URI in the subscriber's spelling
		uri     string
	}
	var notices []notice
	n.rows.mu.Lock()
	if row := n.rows.rows[key]; row != nil {
		for s, spellings := range row.subscribers {
			if notified[s] {
				continue
			}
			notified[s] = true
			for _, spelling := range spellings {
				notices = append(notices, notice{subscriber: s, watched: spelling})
			}
		}
	}
	n.rows.mu.Unlock()
	told := notices[:0]
	for _, to := range notices {
		if seen := n.catalogOf(to.subscriber); seen.IsVisible(server, registry.Resource, uri) {
			to.uri = n.spell(seen, server, to.watched, watched, uri)
			told = append(told, to)
		}
	}
	receivers := make([]telemetry.Receiver, len(told))
	for i, to := range told {
		params := params
		if to.unsent() > maxUpdates {
			// There is no end of what may be below it, or of what the server adds.
			to.uri = to.watched
			params = rawjson.Object("uri", to.uri)
		}
		receivers[i] = telemetry.Receiver{Session: to.session, Name: to.uri}
		if to.listen != nil {
			to.listen.updated(to.uri, params)
			continue
		}
		to.session.NotifyLatest("updated:"+to.uri, "notifications/resources/updated", params,
			rawjson.ReplaceEdit(params, rawjson.Get(params, "uri"), rawjson.Quote(to.uri)))
	}
	if len(receivers) > 0 {
		n.o.Journal.Broadcast(server, "notifications/resources/updated", n.o.Registry.ListedURI(server, uri), params, receivers)
	}
}

// spell is uri, as a subscriber sees it, in the spelling that it used for watched.
func (n *Notifier) spell(seen *registry.Snapshot, server, spelling, watched, uri string) string {
	if uri == watched {
		return spelling
	}
	n.o.Registry.RecordLink(server, uri)
	if strings.HasSuffix(spelling, watched) {
		return spelling + uri[len(watched):]
	}
	return seen.ListedURI(server, uri)
}

// showSubscription writes a row's state where screens and metrics see it.
func (n *Notifier) showSubscription(key subscriptionKey, status string, err error) {
	n.rows.show.Lock() // the last word is the newest
	defer n.rows.show.Unlock()
	if key.server != registry.Local && n.o.Servers.Get(key.server) == nil {
		return // it was removed; its sessions keep what they hold, in case that it comes back
	}
	n.o.Metrics.Subscriptions(key.server, n.rows.at(key.server))
	subscribers, sessions := n.rows.sessionIDs(key)
	if subscribers == 0 && status != registry.SubscriptionRequested {
		n.o.Registry.DropSubscription(key.server, key.uri)
		return
	}
	state := registry.SubscriptionState{
		Server: key.server, URI: key.uri, Listed: n.o.Registry.ListedURI(key.server, key.uri),
		Status: status, Holders: subscribers, Sessions: sessions,
	}
	if err != nil {
		state.Error = n.o.Mask.String(err.Error())
	}
	n.o.Registry.SetSubscription(state)
}

// restoreWidth is how many subscriptions are restored side by side. A modern
// backend is asked for all that come together at once.
func restoreWidth(conn upstream.Conn) int {
	if conn.Info().Era == upstream.Modern {
		return 256
	}
	return 8
}
