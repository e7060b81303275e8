package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"goblin/gateway/call"
	"goblin/gateway/config"
	"goblin/gateway/journal"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream"
	"goblin/registry"
	"goblin/registry/members"
	"goblin/registry/rawjson"
)

// subscribe acknowledges once the backend did; only the first holder makes it
// ask.
func (g *Gateway) subscribe(r *request) {
	uri, _, err := stringMember(r.Params(), "uri")
	if err != nil {
		r.fail(err)
		return
	}
	r.name = uri
	t, err := g.find(r.Context(), (*registry.Registry).ResolveResource, uri)
	if err != nil {
		r.fail(err)
		return
	}
	r.server = t.Server
	err = g.watch(r.Context(), holder{session: r.Session()}, t, uri)
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		w := call.Rewriter{Registry: g.reg, Server: t.Server}
		r.refuse(w.Read(members.Fault, refused.object), w.Edits...)
	case err != nil:
		r.fail(err)
	default:
		r.reply(emptyResult)
	}
}

// refusedError is a backend's own error.
type refusedError struct{ object []byte }

func (e *refusedError) Error() string { return jsonrpc.ParseErrorObject(e.object).Message }

// watch makes h a holder of a resource, in the spelling that it used, and
// returns when the backend has agreed.
func (g *Gateway) watch(ctx context.Context, h holder, t registry.Target, spelling string) error {
	key := subscriptionKey{server: t.Server, uri: t.Name}
	if err := g.subscriptions.full(key, h, spelling); err != nil {
		return err
	}
	var conn upstream.Conn
	if t.Local == nil {
		b := g.Servers.Get(t.Server)
		if b == nil {
			return &upstream.Error{Code: upstream.ConnectionError, Server: t.Server, Reason: "it was removed"}
		}
		if b.PerSession() {
			key.unit = h.session.Unit()
		}
		// A process knows best what its own clients do. Over HTTP one connection
		// hears it all.
		own := h.listen != nil && b.Config().Type == config.Stdio
		var err error
		if conn, err = g.Servers.Conn(ctx, b, h.session, own); err != nil {
			return err
		}
		key.second = conn.Info().Second
	}
	row, err := g.subscriptions.enter(ctx, key)
	if err != nil {
		return err
	}
	defer g.subscriptions.leave(key, row)
	// An update can follow the backend's answer so closely that it must find
	// the holder here already.
	added, err := g.subscriptions.hold(key, row, h, spelling)
	if err != nil {
		return err
	}
	if t.Local == nil {
		if err := g.agree(ctx, conn, key, row); err != nil {
			if added {
				g.subscriptions.let(key, h, spelling)
				g.showSubscription(key, registry.SubscriptionOn, nil) // of others, if any
			}
			return err
		}
	}
	if g.subscriptions.holders(key) == 0 { // unsubscribed meanwhile, by another spelling
		g.setAgreed(row, nil)
		g.tellOff(ctx, key)
	} else if conn := g.connOf(key); conn != nil && conn != g.agreed(row) {
		// Replaced since it agreed, and before this row counted.
		g.askAgain(ctx, key, row, conn)
	}
	g.showSubscription(key, registry.SubscriptionOn, nil)
	return nil
}

// agree makes the backend watch a resource, unless it does already.
func (g *Gateway) agree(ctx context.Context, conn upstream.Conn, key subscriptionKey, row *subscription) error {
	if !g.watchable(key) { // by a config that is newer than the request
		return &registry.NotFoundError{Kind: registry.Resource, Name: key.uri, Reason: registry.ReasonNotFound}
	}
	if !conn.Info().Has("resources", "subscribe") {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Server '%s' offers no subscriptions", key.server)
	}
	if g.agreed(row) == conn {
		return nil
	}
	g.showSubscription(key, registry.SubscriptionAsked, nil)
	reply, err := conn.Call(subscriptionCall(ctx, "resources/subscribe", key.uri))
	if err != nil {
		return err
	}
	if reply.Error != nil {
		return &refusedError{reply.Error}
	}
	g.setAgreed(row, conn)
	return nil
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
	return &upstream.Call{Context: ctx, Method: method, Params: rawjson.Object("uri", uri)}
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
	s, me := r.Session(), holder{session: r.Session()}
	held := g.subscriptions.spelled(me, uri)
	if len(held) == 0 {
		if t, err := g.reg.ResolveResource(uri); err == nil {
			held = append(held, subscriptionKey{server: t.Server, uri: t.Name}, subscriptionKey{server: t.Server, unit: s.Unit(), uri: t.Name})
		}
	}
	for _, key := range held {
		r.server = key.server
		g.release(r.Context(), key, me, uri)
	}
	r.reply(emptyResult)
}

// release takes a holder off a row; the last one makes the backend stop.
func (g *Gateway) release(ctx context.Context, key subscriptionKey, h holder, spelling string) {
	last := g.subscriptions.let(key, h, spelling)
	g.showSubscription(key, registry.SubscriptionOn, nil)
	if last {
		g.giveBack(ctx, key)
	}
}

// giveBack makes the backend stop watching what nobody holds any more.
func (g *Gateway) giveBack(ctx context.Context, key subscriptionKey) {
	row, err := g.subscriptions.enter(ctx, key)
	if err != nil {
		return
	}
	defer g.subscriptions.leave(key, row)
	if g.subscriptions.holders(key) == 0 { // nobody came meanwhile
		g.tellOff(ctx, key)
	}
}

// connOf is the open connection that a row belongs to; nil for none.
func (g *Gateway) connOf(key subscriptionKey) upstream.Conn {
	b := g.Servers.Get(key.server)
	if b == nil {
		return nil
	}
	for _, l := range g.calls.Links() {
		if l.Server == b.Server && key.on(l.Conn) {
			return l.Conn
		}
	}
	return nil
}

// tellOff asks the backend to stop. A backend that is down forgot already.
func (g *Gateway) tellOff(ctx context.Context, key subscriptionKey) {
	conn := g.connOf(key)
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

// releaseSubscriptions gives back all that a session or listen held that has
// ended.
func (g *Gateway) releaseSubscriptions(h holder) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	held := g.subscriptions.all(h)
	// First what is ours to end, then what needs a backend that may be slow.
	held = slices.DeleteFunc(held, func(key subscriptionKey) bool {
		last := g.subscriptions.let(key, h, "")
		g.showSubscription(key, registry.SubscriptionOn, nil)
		return !last
	})
	var each errgroup.Group
	each.SetLimit(8)
	for _, key := range held {
		each.Go(func() error {
			g.giveBack(ctx, key)
			return nil
		})
	}
	_ = each.Wait() // none of them returns an error
}

// Rows that a new connection refused are asked for again, ever more slowly.
const (
	restoreTries    = 8
	restorePause    = time.Second
	restoreMaxPause = 30 * time.Second
)

// reopen opens the connections beside a new one that have something to be
// restored on them: its server may have taken the place of another.
func (g *Gateway) reopen(ctx context.Context, s *upstream.Server, conn upstream.Conn) {
	if conn.Info().Second {
		return
	}
	type place struct {
		unit   string
		second bool
	}
	places := make(map[place]bool)
	for _, key := range g.subscriptions.keys(func(k subscriptionKey, row *subscription) bool {
		return k.server == s.Name() && (k.second || conn.Unit() == "" && k.unit != "") && len(row.holders) > 0
	}) {
		places[place{key.unit, key.second}] = true
	}
	for p := range places {
		g.work.Go(func() {
			if p.second {
				s.Modern(ctx, p.unit)
			} else if _, err := s.Unit(ctx, p.unit); err != nil {
				g.log.Debug("Connection of a client not opened again", "server", s.Name(), "err", err)
			}
			if p.unit != "" && !g.inhabited(p.unit) {
				s.EndUnit(p.unit) // its session ended meanwhile
			}
		})
	}
}

// inhabited reports whether a session of an isolation unit is open.
func (g *Gateway) inhabited(unit string) bool {
	return slices.ContainsFunc(g.allClients(), func(c *client) bool { return c.session.Unit() == unit })
}

// restore asks a new connection for what sessions held on the one before. ctx
// ends with the connection.
func (g *Gateway) restore(ctx context.Context, server string, conn upstream.Conn) {
	pause := restorePause
	for range restoreTries {
		lost := g.subscriptions.keys(func(k subscriptionKey, row *subscription) bool {
			return k.server == server && k.on(conn) && len(row.holders) > 0 && row.conn != conn
		})
		lost = slices.DeleteFunc(lost, func(k subscriptionKey) bool {
			denied := !g.watchable(k)
			if denied {
				g.showSubscription(k, registry.SubscriptionRefused, errDenied)
			}
			return denied
		})
		if len(lost) == 0 {
			return
		}
		if !conn.Info().Has("resources", "subscribe") {
			g.log.Warn("Subscriptions lost: the server no longer offers them", "server", server, "count", len(lost))
			return
		}
		var each errgroup.Group
		each.SetLimit(restoreWidth(conn))
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

var errDenied = errors.New("the config denies it now")

// askAgain makes a new connection watch what the one before it did.
func (g *Gateway) askAgain(ctx context.Context, key subscriptionKey, row *subscription, conn upstream.Conn) {
	if !g.watchable(key) {
		return
	}
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
	g.reg.Touched(key.server, key.uri)
	g.tellSubscribers(key, rawjson.Object("uri", key.uri))
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
func (g *Gateway) updated(server string, conn upstream.Conn, params []byte) {
	uri, ok := rawjson.String(rawjson.Get(params, "uri"))
	if !ok || len(uri) > registry.MaxURI {
		g.log.Warn("Update without a URI, or with one that is too long, ignored", "server", server)
		return
	}
	if b := g.Servers.Get(server); b == nil || !b.Permits(registry.Resource, uri) {
		return
	}
	g.reg.Touched(server, uri)
	key := subscriptionKey{server: server, unit: conn.Unit(), uri: uri, second: conn.Info().Second}
	told := make(map[holder]bool)
	g.tellSubsOf(key, uri, params, told)
	for key.uri = range registry.Above(uri) {
		g.tellSubsOf(key, uri, params, told)
	}
	if len(told) == 0 {
		g.journal.Notification(registry.ToClient, nil, server, "notifications/resources/updated", uri, params)
	}
}

func (g *Gateway) tellSubscribers(key subscriptionKey, params []byte) {
	g.tellSubsOf(key, key.uri, params, make(map[holder]bool))
}

// maxUpdates is how many bytes may wait for a subscriber before it is told of the
// resource that it watches instead of each below that.
const maxUpdates = 1 << 20

// unsent is how many bytes wait for a holder.
func (h holder) unsent() int64 {
	if h.listen != nil {
		return h.listen.unsent()
	}
	return h.session.Unsent()
}

// tellSubsOf tells the subscribers of a row that uri, at or below the row's,
// changed, but for those that told holds, and adds them there. Each gets the
// spelling that it subscribed with.
func (g *Gateway) tellSubsOf(key subscriptionKey, uri string, params []byte, told map[holder]bool) {
	server, watched := key.server, key.uri
	type notice struct {
		to      holder
		watched string // the row's own URI in the subscriber's spelling
		uri     string
	}
	var notices []notice
	g.subscriptions.mu.Lock()
	if row := g.subscriptions.rows[key]; row != nil {
		for s, spellings := range row.holders {
			if told[s] {
				continue
			}
			told[s] = true
			for _, spelling := range spellings {
				notices = append(notices, notice{s, spelling, g.spell(server, spelling, watched, uri)})
			}
		}
	}
	g.subscriptions.mu.Unlock()
	receivers := make([]journal.Receiver, len(notices))
	for i, n := range notices {
		params := params
		if n.to.unsent() > maxUpdates {
			// There is no end of what may be below it, or of what the server adds.
			n.uri = n.watched
			params = rawjson.Object("uri", n.uri)
		}
		receivers[i] = journal.Receiver{Session: n.to.session, Name: n.uri}
		if n.to.listen != nil {
			n.to.listen.updated(n.uri, params)
			continue
		}
		n.to.session.Merge("updated:"+n.uri, "notifications/resources/updated", params,
			rawjson.Replace(params, rawjson.Get(params, "uri"), rawjson.Quote(n.uri)))
	}
	if len(receivers) > 0 {
		g.journal.Broadcast(server, "notifications/resources/updated", g.reg.ListedURI(server, uri), params, receivers)
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
	g.subscriptions.show.Lock() // the last word is the newest
	defer g.subscriptions.show.Unlock()
	if key.server != registry.Local && g.Servers.Get(key.server) == nil {
		return // it was removed; its sessions keep what they hold, in case that it comes back
	}
	g.metrics.Subscriptions(key.server, g.subscriptions.held(key.server))
	holders, sessions := g.subscriptions.holderIDs(key)
	if holders == 0 && status != registry.SubscriptionAsked {
		g.reg.DropSubscription(key.server, key.uri)
		return
	}
	state := registry.SubscriptionState{
		Server: key.server, URI: key.uri, Listed: g.reg.ListedURI(key.server, key.uri),
		Status: status, Holders: holders, Sessions: sessions,
	}
	if err != nil {
		state.Error = g.mask.String(err.Error())
	}
	g.reg.SetSubscription(state)
}
