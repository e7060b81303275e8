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

// RefusedError is an error that a server returned.
type RefusedError struct{ Object []byte }

func (e *RefusedError) Error() string { return jsonrpc.ParseErrorObject(e.Object).Message }

// Subscribe subscribes a session to a resource and returns when the server has accepted.
// spelling is the URI in the request.
func (n *Notifier) Subscribe(ctx context.Context, s *downstream.Session, t registry.Target, spelling string) error {
	return n.subscribe(ctx, subscriber{session: s}, t, spelling)
}

// Unsubscribe removes a subscription and returns its server. Unknown URIs are not an
// error.
func (n *Notifier) Unsubscribe(ctx context.Context, s *downstream.Session, uri string) (server string) {
	me := subscriber{session: s}
	keys := n.subscriptions.bySpelling(me, uri)
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
		n.unsubscribe(ctx, key, me, uri)
	}
	return server
}

func (n *Notifier) isAllowed(key subscriptionKey) bool {
	b := n.o.Servers.Get(key.server)
	return b == nil || b.Permits(registry.Resource, key.uri)
}

// subscribe is Subscribe for a session or listen.
func (n *Notifier) subscribe(ctx context.Context, h subscriber, t registry.Target, spelling string) error {
	key := subscriptionKey{server: t.Server, uri: t.Name}
	if err := n.subscriptions.checkLimits(key, h, spelling); err != nil {
		return err
	}
	var conn upstream.Conn
	if t.Local == nil {
		b := n.o.Servers.Get(t.Server)
		if b == nil {
			return &upstream.Error{Code: upstream.ConnectionError, Server: t.Server, Reason: "it was removed"}
		}
		key.unit = b.IsolationUnit(h.session)
		// Over stdio, a modern process knows best what its clients change. Over HTTP, any
		// connection gets all updates.
		own := h.listen != nil && b.Config().Type == config.Stdio
		var err error
		if conn, err = n.o.Servers.Conn(ctx, b, h.session, own); err != nil {
			return err
		}
		key.secondEra = conn.Info().SecondEra
	}
	row, err := n.subscriptions.lock(ctx, key)
	if err != nil {
		return err
	}
	defer n.subscriptions.unlock(key, row)
	// An update can directly follow the server's answer.
	added, err := n.subscriptions.add(key, row, h, spelling)
	if err != nil {
		return err
	}
	if key == serversKey {
		n.addServerWatch(h)
	}
	if t.Local == nil {
		if err := n.ensureSubscribed(ctx, conn, key, row); err != nil {
			if added {
				n.subscriptions.remove(key, h, spelling)
				n.showSubscription(key, registry.SubscriptionOn, nil) // for remaining subscribers
			}
			return err
		}
	}
	if n.subscriptions.countSubscribers(key) == 0 { // unsubscribed meanwhile
		n.setSubscribedConn(row, nil)
		n.sendUnsubscribe(ctx, key)
	} else if conn := n.findConn(key); conn != nil && conn != n.subscribedConn(row) {
		// replaced after it accepted
		n.resubscribe(ctx, key, row, conn)
	}
	n.showSubscription(key, registry.SubscriptionOn, nil)
	return nil
}

// ensureSubscribed subscribes at the server unless row is subscribed on conn.
func (n *Notifier) ensureSubscribed(ctx context.Context, conn upstream.Conn, key subscriptionKey, row *subscription) error {
	if !n.isAllowed(key) { // the config may be newer than the request
		return &registry.NotFoundError{Kind: registry.Resource, Name: key.uri, Reason: registry.ReasonNotFound}
	}
	if !conn.Info().Has("resources", "subscribe") {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Server '%s' does not support subscriptions", key.server)
	}
	if n.subscribedConn(row) == conn {
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
	n.setSubscribedConn(row, conn)
	return nil
}

func (n *Notifier) subscribedConn(row *subscription) upstream.Conn {
	n.subscriptions.mu.Lock()
	defer n.subscriptions.mu.Unlock()
	return row.conn
}

func (n *Notifier) setSubscribedConn(row *subscription, conn upstream.Conn) {
	n.subscriptions.mu.Lock()
	defer n.subscriptions.mu.Unlock()
	row.conn = conn
}

func subscriptionCall(ctx context.Context, method, uri string) *upstream.Call {
	return &upstream.Call{Context: ctx, Method: method, Params: rawjson.Object("uri", uri)}
}

// unsubscribe unsubscribes at the server after the last subscriber.
func (n *Notifier) unsubscribe(ctx context.Context, key subscriptionKey, h subscriber, spelling string) {
	last := n.subscriptions.remove(key, h, spelling)
	n.showSubscription(key, registry.SubscriptionOn, nil)
	if last {
		n.unsubscribeUnused(ctx, key)
	}
}

func (n *Notifier) unsubscribeUnused(ctx context.Context, key subscriptionKey) {
	row, err := n.subscriptions.lock(ctx, key)
	if err != nil {
		return
	}
	defer n.subscriptions.unlock(key, row)
	if n.subscriptions.countSubscribers(key) == 0 { // no new subscriber meanwhile
		n.sendUnsubscribe(ctx, key)
	}
}

func (n *Notifier) findConn(key subscriptionKey) upstream.Conn {
	b := n.o.Servers.Get(key.server)
	if b == nil {
		return nil
	}
	for _, l := range n.o.Requests.Connections() {
		if l.Server == b.Server && key.matches(l.Conn) {
			return l.Conn
		}
	}
	return nil
}

func (n *Notifier) sendUnsubscribe(ctx context.Context, key subscriptionKey) {
	conn := n.findConn(key)
	if conn == nil {
		return
	}
	if reply, err := conn.Call(subscriptionCall(ctx, "resources/unsubscribe", key.uri)); err != nil {
		n.o.Logger.Warn("unsubscribe failed", "server", key.server, "uri", key.uri, "err", err)
	} else if reply.Error != nil {
		n.o.Logger.Warn("unsubscribe refused", "server", key.server, "uri", key.uri,
			"err", jsonrpc.ParseErrorObject(reply.Error).Message)
	}
}

// releaseTimeout limits the requests of a closed session.
const releaseTimeout = 10 * time.Second

func (n *Notifier) unsubscribeAll(h subscriber) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	rows := n.subscriptions.all(h)
	// Update the table before waiting for servers.
	rows = slices.DeleteFunc(rows, func(key subscriptionKey) bool {
		last := n.subscriptions.remove(key, h, "")
		n.showSubscription(key, registry.SubscriptionOn, nil)
		return !last
	})
	inflight.ForEachLimit(8, rows, func(_ int, key subscriptionKey) { n.unsubscribeUnused(ctx, key) })
}

// Refused subscriptions are retried with increasing pauses.
const (
	restoreTries    = 8
	restorePause    = time.Second
	restoreMaxPause = 30 * time.Second
)

// reopenUnits opens other connections with subscriptions to restore.
func (n *Notifier) reopenUnits(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	if conn.Info().SecondEra {
		return
	}
	type place struct {
		unit   string
		second bool
	}
	places := make(map[place]bool)
	for _, key := range n.subscriptions.keys(func(k subscriptionKey, row *subscription) bool {
		return k.server == s.Name() && (k.secondEra || conn.Unit() == "" && k.unit != "") && len(row.subscribers) > 0
	}) {
		places[place{key.unit, key.secondEra}] = true
	}
	for p := range places {
		n.work.Go(func() {
			if p.second {
				if s.Modern(ctx, p.unit) == nil && ctx.Err() == nil { // nil if there is no modern process
					n.subscriptions.move(s.Name(), func(key subscriptionKey, _ subscriber) subscriptionKey {
						key.secondEra = key.secondEra && key.unit != p.unit
						return key
					})
					n.restore(ctx, s.Name(), conn)
				}
			} else if _, err := s.Unit(ctx, p.unit); err != nil {
				n.o.Logger.Debug("connection for a client not reopened", "server", s.Name(), "err", err)
			}
			if p.unit != "" && !n.o.Clients.HasUnit(p.unit) {
				s.CloseUnit(p.unit) // its session closed meanwhile
			}
		})
	}
}

// restore repeats the previous connection's subscriptions. ctx ends with the connection.
func (n *Notifier) restore(ctx context.Context, server string, conn upstream.Conn) {
	pause := restorePause
	for range restoreTries {
		lost := n.subscriptions.keys(func(k subscriptionKey, row *subscription) bool {
			return k.server == server && k.matches(conn) && len(row.subscribers) > 0 && row.conn != conn
		})
		lost = slices.DeleteFunc(lost, func(k subscriptionKey) bool {
			denied := !n.isAllowed(k)
			if denied {
				n.showSubscription(k, registry.SubscriptionRefused, errDenied)
			}
			return denied
		})
		if len(lost) == 0 {
			return
		}
		if !conn.Info().Has("resources", "subscribe") {
			n.o.Logger.Warn("subscriptions lost: the server no longer supports them", "server", server, "count", len(lost))
			return
		}
		inflight.ForEachLimit(restoreParallelism(conn), lost, func(_ int, key subscriptionKey) { n.restoreOne(ctx, key, conn) })
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
	row, err := n.subscriptions.lock(ctx, key)
	if err != nil {
		return
	}
	defer n.subscriptions.unlock(key, row)
	if n.subscriptions.countSubscribers(key) > 0 && n.subscribedConn(row) != conn {
		n.resubscribe(ctx, key, row, conn)
	}
}

var errDenied = errors.New("denied by the config")

func (n *Notifier) resubscribe(ctx context.Context, key subscriptionKey, row *subscription, conn upstream.Conn) {
	if !n.isAllowed(key) {
		return
	}
	reply, err := conn.Call(subscriptionCall(ctx, "resources/subscribe", key.uri))
	if err == nil && reply.Error != nil {
		err = jsonrpc.ParseErrorObject(reply.Error)
	}
	if err != nil {
		n.o.Logger.Warn("subscription not restored", "server", key.server, "uri", key.uri, "err", err)
		n.showSubscription(key, registry.SubscriptionRefused, err)
		return
	}
	n.setSubscribedConn(row, conn)
	n.showSubscription(key, registry.SubscriptionOn, nil)
	// Updates in the meantime were lost.
	n.o.Registry.ResourceUpdated(key.server, key.uri)
	n.notifyRow(key, rawjson.Object("uri", key.uri))
}

// ResourceUpdated delivers an update to subscribers of its URI and of parent URIs: an
// update may name a sub-resource.
func (n *Notifier) ResourceUpdated(s *upstream.Server, conn upstream.Conn, params []byte) {
	server := s.Name()
	b := n.o.Servers.Get(server)
	if b == nil || b.Server != s {
		return // replaced by another server
	}
	uri, ok := rawjson.String(rawjson.Get(params, "uri"))
	if !ok || len(uri) > registry.MaxURI {
		n.o.Logger.Warn("resource update without a valid URI ignored", "server", server)
		return
	}
	if !b.Permits(registry.Resource, uri) {
		return
	}
	n.o.Registry.ResourceUpdated(server, uri)
	key := subscriptionKey{server: server, unit: conn.Unit(), uri: uri, secondEra: conn.Info().SecondEra}
	notified := make(map[subscriber]bool)
	n.notifySubscribers(key, uri, params, notified)
	for key.uri = range registry.ParentURIs(uri) {
		n.notifySubscribers(key, uri, params, notified)
	}
	if len(notified) == 0 {
		n.o.Journal.RecordNotification(registry.ToClient, nil, server, "notifications/resources/updated", uri, params)
	}
}

func (n *Notifier) notifyRow(key subscriptionKey, params []byte) {
	n.notifySubscribers(key, key.uri, params, make(map[subscriber]bool))
}

// Above maxUpdates unsent bytes, a subscriber gets one update for its own resource
// instead of one per sub-resource.
const maxUpdates = 1 << 20

func (n *Notifier) catalogOf(h subscriber) *registry.Snapshot {
	if h.listen != nil {
		return n.o.Visibility.For(h.listen.x)
	}
	return n.o.Visibility.ForSession(h.session)
}

func (h subscriber) unsentBytes() int64 {
	if h.listen != nil {
		return h.listen.unsentBytes()
	}
	return h.session.UnsentBytes()
}

// notifySubscribers notifies a row's subscribers, except those in notified, of an update
// of uri, at or below the row's. Each gets its own spelling.
func (n *Notifier) notifySubscribers(key subscriptionKey, uri string, params []byte, notified map[subscriber]bool) {
	server, watched := key.server, key.uri
	type notice struct {
		subscriber
		watched string // subscriber's spelling of the row's URI
		uri     string
	}
	var notices []notice
	n.subscriptions.mu.Lock()
	if row := n.subscriptions.rows[key]; row != nil {
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
	n.subscriptions.mu.Unlock()
	visible := notices[:0]
	for _, to := range notices {
		if seen := n.catalogOf(to.subscriber); seen.IsVisible(server, registry.Resource, uri) {
			to.uri = n.spelling(seen, server, to.watched, watched, uri)
			visible = append(visible, to)
		}
	}
	receivers := make([]telemetry.Receiver, len(visible))
	for i, to := range visible {
		params := params
		if to.unsentBytes() > maxUpdates {
			// The number of sub-resources and the size of params have no limit.
			to.uri = to.watched
			params = rawjson.Object("uri", to.uri)
		}
		receivers[i] = telemetry.Receiver{Session: to.session, Name: to.uri}
		if to.listen != nil {
			to.listen.resourceUpdated(to.uri, params)
			continue
		}
		to.session.NotifyLatest("updated:"+to.uri, "notifications/resources/updated", params,
			rawjson.ReplaceEdit(params, rawjson.Get(params, "uri"), rawjson.Quote(to.uri)))
	}
	if len(receivers) > 0 {
		n.o.Journal.RecordBroadcast(server, "notifications/resources/updated", n.o.Registry.ListedURI(server, uri), params, receivers)
	}
}

// spelling returns uri spelled like the subscriber's watched URI.
func (n *Notifier) spelling(seen *registry.Snapshot, server, spelling, watched, uri string) string {
	if uri == watched {
		return spelling
	}
	n.o.Registry.RecordLink(server, uri)
	if strings.HasSuffix(spelling, watched) {
		return spelling + uri[len(watched):]
	}
	return seen.ListedURI(server, uri)
}

func (n *Notifier) showSubscription(key subscriptionKey, status string, err error) {
	n.subscriptions.showMu.Lock() // publish the newest state last
	defer n.subscriptions.showMu.Unlock()
	if key.server != registry.Local && n.o.Servers.Get(key.server) == nil {
		return // sessions keep subscriptions for its return
	}
	n.o.Metrics.SetSubscriptions(key.server, n.subscriptions.countAt(key.server))
	subscribers, sessions := n.subscriptions.sessionIDs(key)
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

// restoreParallelism returns how many subscriptions to restore concurrently. A modern
// server gets one request for all.
func restoreParallelism(conn upstream.Conn) int {
	if conn.Info().Era == upstream.Modern {
		return 256
	}
	return 8
}
