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

// subscriptionIDKey is where every message of a listen carries its id.
const subscriptionIDKey = downstream.MetaPrefix + "subscriptionId"

// maxListens bounds the listens of one session on a byte stream. Over HTTP
// connections are bounded.
const maxListens = 256

// listen is one subscriptions/listen of a stateless client (2026-07-28): a
// stream of the notices that it asked for, until the client ends it.
type listen struct {
	n     *Notifier
	x     *downstream.Request
	wants []bool // of listNotices
	uris  []string

	mu        sync.Mutex
	seen      [registry.Kinds]view.Version // versions of the lists that it knows
	announced [registry.Kinds]uint64       // of News.announced
	acked     bool
	early     []notice // came before the acknowledgement, which must be first
	bytes     int64    // of early
}

// unsent is how many bytes wait for the client.
func (l *listen) unsent() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.x.UnsentBytes() + l.bytes
}

type notice struct {
	key, method string
	params      []byte
}

// listens are those that are open.
type listens struct {
	mu  sync.Mutex
	all map[*listen]struct{}
}

// add reports false when the session has too many.
func (t *listens) add(l *listen) bool {
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

func (t *listens) remove(l *listen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, l)
}

func (t *listens) open() []*listen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.all))
}

// filters are the members of a listen's filter that stand for listNotices.
var filters = []string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"}

// Listen serves a subscriptions/listen until the client ends the request, or the
// session ends, and returns its result. acknowledged is called when the client knows
// what the listen delivers.
func (n *Notifier) Listen(x *downstream.Request, acknowledged func()) ([]byte, error) {
	l, err := n.newListen(x)
	if err != nil {
		return nil, err
	}
	if !l.begin() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Too many listens at a time; at most %d", maxListens)
	}
	me := subscriber{x.Session(), l}
	defer func() {
		n.listens.remove(l)
		if len(l.uris) > 0 {
			n.work.Go(func() { n.releaseAll(me) })
		}
	}()
	honoured := n.watchAll(x.Context(), me, l.uris)
	if x.Context().Err() == nil {
		n.acknowledge(l, honoured, acknowledged)
	}
	if len(honoured) > 0 || slices.Contains(l.wants, true) {
		select {
		case <-x.Context().Done():
		case <-x.Session().Stopping():
		}
	}
	return rawjson.SetMember(empty, "_meta", l.tag()), nil
}

// begin puts the listen among those that are told of changes from now on.
func (l *listen) begin() bool {
	l.mu.Lock() // before it is told of anything, it must know where it begins
	defer l.mu.Unlock()
	if !l.n.listens.add(l) {
		return false
	}
	now := l.n.o.Visibility.ListsFor(l.x)
	l.announced = l.n.announced.counts(now)
	l.seen = versionsOf(now)
	return true
}

// newListen reads what a listen asks for.
func (n *Notifier) newListen(x *downstream.Request) (*listen, error) {
	filter := rawjson.Get(x.Params(), "notifications")
	if !rawjson.IsObject(filter) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `Invalid params: member "notifications" must be an object`)
	}
	l := &listen{n: n, x: x, wants: make([]bool, len(filters))}
	for i, name := range filters {
		l.wants[i] = string(rawjson.Get(filter, name)) == "true"
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
				`Invalid params: member "resourceSubscriptions" has a URI that is longer than %d bytes`, registry.MaxURI)
		}
		if !known[uri] {
			known[uri] = true
			l.uris = append(l.uris, uri)
			size += len(uri)
		}
		if len(l.uris) > maxSubscriptions {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "Too many subscriptions: a listen may hold %d", maxSubscriptions)
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

// watchAll subscribes to what a listen names, and gives the URIs that are known
// and to which the servers agreed. Others are left out of the acknowledgement.
func (n *Notifier) watchAll(ctx context.Context, me subscriber, uris []string) (honoured []string) {
	agreed := make([]bool, len(uris))
	inflight.ForEachLimit(8, uris, func(i int, uri string) {
		t, err := n.o.Visibility.Find(ctx, me.listen.x, (*registry.Snapshot).ResolveResource, uri)
		if err == nil {
			err = n.watch(ctx, me, t, uri)
		}
		agreed[i] = err == nil
		if err != nil && ctx.Err() == nil {
			n.o.Logger.Warn("Subscription left out of a listen", "server", t.Server, "uri", n.o.Mask.String(uri), "err", err)
		}
	})
	for i, uri := range uris {
		if agreed[i] {
			honoured = append(honoured, uri)
		}
	}
	return honoured
}

// acknowledge tells what the listen will deliver, and then what came so far.
func (n *Notifier) acknowledge(l *listen, honoured []string, acknowledged func()) {
	filter := []byte("{}")
	for i, name := range filters {
		if l.wants[i] {
			filter = rawjson.SetMember(filter, name, []byte("true"))
		}
	}
	if len(l.uris) > 0 {
		filter = rawjson.SetMember(filter, "resourceSubscriptions", rawjson.Strings(honoured))
	}
	params := rawjson.SetMember(rawjson.SetMember(empty, "_meta", l.tag()), "notifications", filter)
	l.mu.Lock()
	defer l.mu.Unlock()
	const method = "notifications/subscriptions/acknowledged"
	l.send(notice{method, method, params})
	n.o.Journal.Notification(registry.ToClient, l.x.Session(), "", method, "", params)
	l.acked = true
	for _, early := range l.early {
		l.send(early)
	}
	l.early, l.bytes = nil, 0
	acknowledged()
}

// tag is the _meta of every message of the listen.
func (l *listen) tag() []byte {
	return rawjson.SetMember(empty, subscriptionIDKey, l.x.ID())
}

// notified records the versions and announcements of lists, and reports whether one of
// them is news.
func (l *listen) notified(kinds []registry.Kind) (news bool) {
	now := l.n.o.Visibility.ListsFor(l.x)
	announced := l.n.announced.counts(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range kinds {
		version := view.ListVersion(now, k)
		news = news || l.seen[k] != version || l.announced[k] != announced[k]
		l.seen[k], l.announced[k] = version, announced[k]
	}
	return news
}

// changed tells of a changed list.
func (l *listen) changed(method string) {
	l.deliver(notice{method, method, rawjson.SetMember(empty, "_meta", l.tag())})
}

// updated tells of a changed resource, in the spelling that the client used.
func (l *listen) updated(uri string, params []byte) {
	meta := rawjson.Get(params, "_meta")
	if !rawjson.IsObject(meta) {
		meta = empty
	}
	params = rawjson.SetMember(params, "uri", rawjson.Quote(uri))
	params = rawjson.SetMember(params, "_meta", rawjson.SetMember(meta, subscriptionIDKey, l.x.ID()))
	l.deliver(notice{"updated:" + uri, "notifications/resources/updated", params})
}

// deliver sends a notice, once the acknowledgement is out.
func (l *listen) deliver(n notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.acked {
		l.send(n)
		return
	}
	if i := slices.IndexFunc(l.early, func(other notice) bool { return other.key == n.key }); i >= 0 {
		l.bytes += int64(len(n.params) - len(l.early[i].params))
		l.early[i] = n
		return
	}
	if len(l.early) < maxSubscriptions {
		l.early = append(l.early, n)
		l.bytes += int64(len(n.params))
	}
}

func (l *listen) send(n notice) { l.x.NotifyLatest(n.key, n.method, n.params) }
