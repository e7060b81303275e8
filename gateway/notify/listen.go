package notify

import (
	"context"
	"maps"
	"slices"
	"sync"

	"goblin/gateway/downstream"
	"goblin/gateway/inflight"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// subscriptionIDKey is the _meta key for the listen's id.
const subscriptionIDKey = downstream.MetaPrefix + "subscriptionId"

// maxListens limits the listens per session on a byte stream. Over HTTP, connections are
// limited.
const maxListens = 256

// listen is a subscriptions/listen of a stateless client (2026-07-28).
type listen struct {
	n      *Notifier
	x      *downstream.Request
	wanted []bool // by index of listNotifications
	uris   []string

	mu           sync.Mutex
	seen         [registry.Kinds]view.Version // last notified versions
	refetched    [registry.Kinds]uint64       // see Notifier.refetched
	acknowledged bool
	queued       []notification // until the acknowledgement, which comes first
	queuedBytes  int64          // of queued
}

func (l *listen) unsentBytes() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.x.UnsentBytes() + l.queuedBytes
}

type notification struct {
	key, method string
	params      []byte
}

type listenTable struct {
	mu  sync.Mutex
	all map[*listen]struct{}
}

// add returns false if the session has too many listens.
func (t *listenTable) add(l *listen) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := l.x.Session(); !s.Stateless() {
		n := 0
		for other := range t.all {
			if other.x.Session() == s {
				n++
			}
		}
		if n >= maxListens {
			return false
		}
	}
	if t.all == nil {
		t.all = make(map[*listen]struct{})
	}
	t.all[l] = struct{}{}
	return true
}

func (t *listenTable) remove(l *listen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, l)
}

func (t *listenTable) open() []*listen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.all))
}

// filterMembers is indexed like listNotifications.
var filterMembers = []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"}

// Listen serves a subscriptions/listen until the request or session closes. It calls
// acknowledged after the acknowledgement.
func (n *Notifier) Listen(x *downstream.Request, acknowledged func()) ([]byte, error) {
	l, err := n.newListen(x)
	if err != nil {
		return nil, err
	}
	if !l.begin() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Too many listens: at most %d per session", maxListens)
	}
	me := subscriber{x.Session(), l}
	defer func() {
		n.listens.remove(l)
		if len(l.uris) > 0 {
			n.work.Go(func() { n.unsubscribeAll(me) })
		}
	}()
	honoured := n.subscribeAll(x.Context(), me, l.uris)
	if x.Context().Err() == nil {
		n.acknowledge(l, honoured, acknowledged)
	}
	if len(honoured) > 0 || slices.Contains(l.wanted, true) {
		select {
		case <-x.Context().Done():
		case <-x.Session().Stopping():
		}
	}
	return rawjson.SetMember(empty, "_meta", l.meta()), nil
}

func (l *listen) begin() bool {
	l.mu.Lock() // no notification before seen is set
	defer l.mu.Unlock()
	if !l.n.listens.add(l) {
		return false
	}
	now := l.n.o.Visibility.ListsFor(l.x)
	l.refetched = l.n.refetched.counts(now)
	l.seen = versionsOf(now)
	return true
}

func (n *Notifier) newListen(x *downstream.Request) (*listen, error) {
	filter := rawjson.Get(x.Params(), "notifications")
	if !rawjson.IsObject(filter) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `Invalid params: member "notifications" must be an object`)
	}
	l := &listen{n: n, x: x, wanted: make([]bool, len(filterMembers))}
	for i, name := range filterMembers {
		l.wanted[i] = string(rawjson.Get(filter, name)) == "true"
	}
	uris := rawjson.Get(filter, "resourceSubscriptions")
	if uris == nil || string(uris) == "null" {
		return l, nil
	}
	bad := !rawjson.IsArray(uris)
	known, size := make(map[string]bool), 0
	for v := range rawjson.Elements(uris) {
		uri, ok := rawjson.String(v)
		bad = bad || !ok
		if len(uri) > registry.MaxURI {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
				`Invalid params: member "resourceSubscriptions" has a URI longer than %d bytes`, registry.MaxURI)
		}
		if !known[uri] {
			known[uri] = true
			l.uris = append(l.uris, uri)
			size += len(uri)
		}
		if len(l.uris) > maxSubscriptions {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Too many subscriptions: at most %d per listen", maxSubscriptions)
		}
		if size > maxClientBytes {
			return nil, errTooLarge
		}
	}
	if bad {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `Invalid params: member "resourceSubscriptions" must be an array of strings`)
	}
	return l, nil
}

// subscribeAll returns the URIs whose subscriptions were accepted.
func (n *Notifier) subscribeAll(ctx context.Context, me subscriber, uris []string) (honoured []string) {
	agreed := make([]bool, len(uris))
	inflight.ForEachLimit(8, uris, func(i int, uri string) {
		t, err := n.o.Visibility.Find(ctx, me.listen.x, (*registry.Snapshot).ResolveResource, uri)
		if err == nil {
			err = n.subscribe(ctx, me, t, uri)
		}
		agreed[i] = err == nil
		if err != nil && ctx.Err() == nil {
			n.o.Logger.Warn("subscription omitted from a listen", "server", t.Server, "uri", n.o.Mask.String(uri), "err", err)
		}
	})
	for i, uri := range uris {
		if agreed[i] {
			honoured = append(honoured, uri)
		}
	}
	return honoured
}

// acknowledge sends the accepted filter, then the queued notifications.
func (n *Notifier) acknowledge(l *listen, honoured []string, acknowledged func()) {
	filter := []byte("{}")
	for i, name := range filterMembers {
		if l.wanted[i] {
			filter = rawjson.SetMember(filter, name, []byte("true"))
		}
	}
	if len(l.uris) > 0 {
		filter = rawjson.SetMember(filter, "resourceSubscriptions", rawjson.Strings(honoured))
	}
	params := rawjson.SetMember(rawjson.SetMember(empty, "_meta", l.meta()), "notifications", filter)
	l.mu.Lock()
	defer l.mu.Unlock()
	const method = "notifications/subscriptions/acknowledged"
	l.send(notification{method, method, params})
	n.o.Journal.RecordNotification(registry.ToClient, l.x.Session(), "", method, "", params)
	l.acknowledged = true
	for _, early := range l.queued {
		l.send(early)
	}
	l.queued, l.queuedBytes = nil, 0
	acknowledged()
}

func (l *listen) meta() []byte {
	return rawjson.SetMember(empty, subscriptionIDKey, l.x.ID())
}

// update records the current list versions and announcements, and reports whether any is
// new.
func (l *listen) update(kinds []registry.Kind) (news bool) {
	now := l.n.o.Visibility.ListsFor(l.x)
	announced := l.n.refetched.counts(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range kinds {
		version := view.ListVersion(now, k)
		news = news || l.seen[k] != version || l.refetched[k] != announced[k]
		l.seen[k], l.refetched[k] = version, announced[k]
	}
	return news
}

func (l *listen) listChanged(method string) {
	l.deliver(notification{method, method, rawjson.SetMember(empty, "_meta", l.meta())})
}

// resourceUpdated uses the client's spelling of the URI.
func (l *listen) resourceUpdated(uri string, params []byte) {
	meta := rawjson.Get(params, "_meta")
	if !rawjson.IsObject(meta) {
		meta = empty
	}
	params = rawjson.SetMember(params, "uri", rawjson.Quote(uri))
	params = rawjson.SetMember(params, "_meta", rawjson.SetMember(meta, subscriptionIDKey, l.x.ID()))
	l.deliver(notification{"updated:" + uri, "notifications/resources/updated", params})
}

// deliver queues a notification until the acknowledgement.
func (l *listen) deliver(n notification) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acknowledged {
		l.send(n)
		return
	}
	if i := slices.IndexFunc(l.queued, func(other notification) bool { return other.key == n.key }); i >= 0 {
		l.queuedBytes += int64(len(n.params) - len(l.queued[i].params))
		l.queued[i] = n
		return
	}
	if len(l.queued) < maxSubscriptions {
		l.queued = append(l.queued, n)
		l.queuedBytes += int64(len(n.params))
	}
}

func (l *listen) send(n notification) { l.x.NotifyLatest(n.key, n.method, n.params) }
