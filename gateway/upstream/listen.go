package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/upstream/wire"
	"goblin/registry/rawjson"
)

// listener runs the single subscriptions/listen of a modern connection. It covers the
// subscribed resources. It covers list changes too, if the server's lists are the
// catalog.
type listener struct {
	*link
	lists []string // filter members for list changes
	wake  chan struct{}
	first chan struct{}

	mu      sync.Mutex
	watched map[string]*watchedResource
	// open is the acknowledged stream, next its pending successor.
	open, next *listenStream
	stale      *listenStream // replaced, not closed yet
	broken     bool          // lost, without acknowledged successor
	listsStale bool          // lists may be older than the stream
	// reopenDelay is the delay after open ends. It grows with each short-lived stream.
	reopenDelay time.Duration
}

type watchedResource struct {
	acknowledged bool
	waiters      []chan error // capacity one each
}

type listenStream struct {
	call           *Call
	id             int64
	subscriptionID string // id as in subscriptionId
	uris           []string
	acked          chan struct{} // closed once
	// ended is closed when the call is over; err is the reason.
	ended chan struct{}
	err   error
	// Set before acked is closed.
	granted map[string]bool
	empty   bool // the server granted nothing
	since   time.Time
}

var errNotAcknowledged = errors.New("not acknowledged by the server")

const ackLimit = 10 * time.Second

// listen starts listening and waits briefly for the first acknowledgement. So no list
// change is missed during the first fetch.
func (l *link) listen(ctx context.Context) {
	ls := &listener{link: l, wake: make(chan struct{}, 1), first: make(chan struct{}), watched: map[string]*watchedResource{}}
	if info := l.Info(); l.Unit() == "" || l.srv.isPerProject() || l.srv.verifiesLists() { // otherwise its lists are not the catalog
		on := l.srv.opt.ListChanged
		for _, k := range []struct {
			capability, member string
			on                 bool
		}{
			{"tools", "toolsListChanged", on.Tools || l.srv.verifiesLists()},
			{"prompts", "promptsListChanged", on.Prompts},
			{"resources", "resourcesListChanged", on.Resources},
		} {
			if k.on && info.Has(k.capability, "listChanged") {
				ls.lists = append(ls.lists, k.member)
			}
		}
	}
	l.listener.Store(ls)
	if !l.spawn(ls.run) || len(ls.lists) == 0 {
		return
	}
	ls.wakeRun()
	select {
	case <-ls.first:
		return
	case <-ctx.Done():
	case <-l.done:
	case <-time.After(l.srv.tune.discoverTimeout):
	}
	ls.mu.Lock()
	ls.listsStale = true
	ls.mu.Unlock()
}

func (ls *listener) wakeRun() {
	select {
	case ls.wake <- struct{}{}:
	default:
	}
}

func (ls *listener) run() {
	var again <-chan time.Time
	pause := ls.srv.tune.reopenDelay
	for {
		select {
		case <-ls.wake:
		case <-again:
		case <-ls.ctx.Done():
			ls.failWaiters()
			return
		}
		again = nil
		if sleep(ls.ctx, ls.srv.tune.listenDebounce) != nil {
			ls.failWaiters()
			return
		}
		select {
		case <-ls.wake:
		default:
		}
		if err := ls.update(); err != nil {
			ls.srv.log.Debug("not listening", "err", err)
			again = time.After(pause)
			pause = min(2*pause, maxWait)
		} else {
			pause = ls.srv.tune.reopenDelay
		}
	}
}

func (ls *listener) failWaiters() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for uri := range ls.watched {
		ls.resolveLocked(uri, ls.link.err)
	}
}

func (ls *listener) resolveLocked(uri string, err error) {
	w := ls.watched[uri]
	if w == nil {
		return
	}
	w.acknowledged = err == nil
	for _, ch := range w.waiters {
		ch <- err
	}
	w.waiters = nil
	if err != nil {
		delete(ls.watched, uri)
	}
}

// update must be called again after an error.
func (ls *listener) update() error {
	agreed, fresh := ls.wantedURIs()
	var rpc errRPC
	if len(fresh) == 0 {
		err := ls.replace(agreed)
		if errors.As(err, &rpc) && rpc.object.Code == jsonrpc.CodeMethodNotFound {
			ls.srv.note(slog.LevelWarn, "subscriptions/listen was refused: changes will go unnoticed")
			return nil
		}
		return err
	}
	err := ls.replace(append(slices.Clone(agreed), fresh...))
	if len(fresh) == 1 || !errors.As(err, &rpc) {
		ls.resolveURIs(fresh, err)
		return ignoreRefusal(err)
	}
	// Try each, so that one refused resource doesn't affect the others.
	for _, uri := range fresh {
		err = ls.replace(append(slices.Clone(agreed), uri))
		ls.resolveURIs([]string{uri}, err)
		if err == nil && ls.isAcknowledged(uri) {
			agreed = append(agreed, uri)
		}
	}
	return ignoreRefusal(err)
}

// ignoreRefusal returns nil for a refusal, which would be repeated.
func ignoreRefusal(err error) error {
	if _, ok := errors.AsType[errRPC](err); ok {
		return nil
	}
	return err
}

func (ls *listener) wantedURIs() (agreed, fresh []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for uri, w := range ls.watched {
		if w.acknowledged {
			agreed = append(agreed, uri)
		} else {
			fresh = append(fresh, uri)
		}
	}
	slices.Sort(agreed)
	slices.Sort(fresh)
	return agreed, fresh
}

func (ls *listener) isAcknowledged(uri string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w := ls.watched[uri]
	return w != nil && w.acknowledged
}

func (ls *listener) resolveURIs(uris []string, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, uri := range uris {
		switch {
		case err != nil:
			ls.resolveLocked(uri, err)
		case ls.open == nil || !ls.open.granted[uri]:
			ls.resolveLocked(uri, errNotAcknowledged)
		default:
			ls.resolveLocked(uri, nil)
		}
	}
}

// replace opens a stream for the lists and these resources and closes the previous one
// after the acknowledgement. It does nothing if the current stream covers them.
func (ls *listener) replace(uris []string) error {
	slices.Sort(uris)
	ls.mu.Lock()
	old := ls.open
	ls.mu.Unlock()
	empty := len(uris) == 0 && len(ls.lists) == 0
	if old != nil && (old.covers(uris) || empty) {
		if empty {
			ls.mu.Lock()
			ls.open = nil
			ls.mu.Unlock()
			ls.closeStale()
			ls.closeStream(old)
		}
		return nil
	}
	if empty {
		return nil
	}
	if ls.closeStale() && sleep(ls.ctx, ls.srv.tune.listenDebounce) != nil {
		return ls.link.err
	}
	x, err := ls.startStream(uris)
	if err != nil {
		return err
	}
	select {
	case <-x.acked:
		return nil
	case <-x.ended:
		select {
		case <-x.acked: // acknowledged, but empty
			return nil
		default:
		}
		err = x.err
	case <-time.After(min(ackLimit, ls.srv.cfg.Timeout)):
		err = ls.srv.newError(RequestTimeout, "did not acknowledge subscriptions/listen", context.DeadlineExceeded)
		ls.closeStream(x)
	case <-ls.done:
		err = ls.link.err
	}
	ls.mu.Lock()
	if ls.next == x {
		ls.next = nil
	}
	ls.mu.Unlock()
	ls.endFirstAttempt()
	return err
}

func (x *listenStream) covers(uris []string) bool {
	return slices.Equal(x.uris, uris) && !slices.ContainsFunc(uris, func(uri string) bool { return !x.granted[uri] })
}

func (ls *listener) closeStale() bool {
	ls.mu.Lock()
	x := ls.stale
	ls.stale = nil
	ls.mu.Unlock()
	if x != nil {
		ls.closeStream(x)
	}
	return x != nil
}

func (ls *listener) endFirstAttempt() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	select {
	case <-ls.first:
	default:
		close(ls.first)
	}
}

func (ls *listener) startStream(uris []string) (*listenStream, error) {
	filter := []byte{'{'}
	for _, member := range ls.lists {
		filter = rawjson.AppendMember(filter, rawjson.Quote(member), []byte("true"))
	}
	if len(uris) > 0 {
		filter = rawjson.AppendMember(filter, []byte(`"resourceSubscriptions"`), rawjson.Strings(uris))
	}
	params := slices.Concat([]byte(`{"notifications":`), filter, []byte("}}"))

	x := &listenStream{uris: uris, acked: make(chan struct{}), ended: make(chan struct{})}
	x.call = &Call{Context: ls.ctx, Method: "subscriptions/listen", Params: params, modern: true, listen: x}
	open, err := ls.calls.Add(x.call)
	if err != nil {
		return nil, err
	}
	x.id = open.ID
	x.subscriptionID = strconv.FormatInt(x.id, 10)
	ls.mu.Lock()
	ls.next = x
	ls.mu.Unlock()
	if !ls.spawn(func() {
		outcome := <-open.Done()
		x.call.end()
		reply, err := outcome.Take()
		ls.calls.Release(open)
		ls.streamEnded(x, reply, err)
	}) {
		ls.calls.Remove(x.id)
		return nil, ls.link.err
	}
	ls.wire.request(x.call, x.id, ls.modernFrame(x.call, []byte(x.subscriptionID)))
	return x, nil
}

var errReplaced replaced

type replaced struct{}

func (replaced) Error() string        { return "replaced by another subscriptions/listen" }
func (replaced) CancelReason() string { return "replaced by another subscriptions/listen" }

func (ls *listener) closeStream(x *listenStream) {
	if ls.calls.Fail(x.id, errReplaced) {
		ls.abandonCall(x.call, x.id, errReplaced)
	}
}

func (ls *listener) streamEnded(x *listenStream, reply jsonrpc.Reply, err error) {
	if err == nil && reply.Error != nil {
		err = ls.srv.rpcError(reply.Error)
	}
	ls.mu.Lock()
	if x.err = err; err == nil {
		x.err = errors.New("the server closed the stream")
	}
	current := ls.open == x && !x.empty
	pause := ls.srv.tune.reopenDelay
	if current {
		ls.open, ls.broken = nil, true
		// The next stream requests its resources again.
		if ls.reopenDelay > 0 && time.Since(x.since) < ls.srv.tune.settled {
			pause = min(2*ls.reopenDelay, maxWait)
		}
		ls.reopenDelay = pause
	}
	ls.mu.Unlock()
	close(x.ended)
	if current && ls.ctx.Err() == nil {
		ls.srv.log.Debug("notification stream lost", "err", x.err)
		ls.srv.note(slog.LevelInfo, "notification stream lost; reopening")
		ls.invalidateTools() // changes until then are not announced
		if ls.spawn(func() {
			if sleep(ls.ctx, pause) == nil {
				ls.wakeRun()
			}
		}) {
			return
		}
	}
}

// take processes a notification on the read loop. It returns true if the notification
// concerned only the stream. It removes protocol members from params.
func (ls *listener) take(c *Call, m *jsonrpc.Message) (done bool) {
	if m.Method == "notifications/cancelled" {
		// A server may cancel only a listen this way.
		return ls.handleCancelled(rawjson.Get(m.Params, "requestId"))
	}
	tag := rawjson.Path(m.Params, "_meta", wire.Subscription)
	name, quoted := rawjson.String(tag)
	if !quoted {
		name = string(tag)
	}
	ls.mu.Lock()
	open, next := ls.open, ls.next
	ls.mu.Unlock()
	var x *listenStream
	switch {
	case c != nil && c.listen != nil:
		x = c.listen
	case tag == nil:
	case open != nil && name == open.subscriptionID:
		x = open
	case next != nil && name == next.subscriptionID:
		x = next
	default:
		return true // of a closed stream
	}
	if m.Method == "notifications/subscriptions/acknowledged" {
		if x == nil {
			x = next // some servers omit the tag
		}
		if x != nil && x == next {
			ls.handleAcknowledged(x, rawjson.Get(m.Params, "notifications"))
		}
		return true
	}
	if x != nil && x != open && x != next {
		return true
	}
	if m.Params != nil {
		m.Params = wire.StripHopKeys(m.Params, false)
	}
	return false
}

var errListenCancelled = errors.New("the server cancelled the stream")

func (ls *listener) handleCancelled(id []byte) bool {
	ls.mu.Lock()
	mine := ls.open != nil && string(id) == ls.open.subscriptionID || ls.next != nil && string(id) == ls.next.subscriptionID
	ls.mu.Unlock()
	return mine && ls.calls.Resolve(id, jsonrpc.Reply{}, errListenCancelled)
}

// handleAcknowledged makes a stream the current one. It runs on the read loop, so that
// later notifications of the old stream are ignored.
func (ls *listener) handleAcknowledged(x *listenStream, honoured []byte) {
	x.granted = make(map[string]bool, len(x.uris))
	for v := range rawjson.Elements(rawjson.Get(honoured, "resourceSubscriptions")) {
		if uri, ok := rawjson.String(v); ok {
			x.granted[uri] = true
		}
	}
	x.empty = len(x.granted) == 0
	for _, member := range ls.lists {
		if string(rawjson.Get(honoured, member)) == "true" {
			x.empty = false
		}
	}
	x.since = time.Now()
	ls.mu.Lock()
	old := ls.open
	ls.open, ls.next = x, nil
	if ls.wire.isLocal() && old != nil {
		old, ls.stale = nil, old
	}
	again, late := ls.broken, ls.listsStale
	ls.broken, ls.listsStale = false, false
	ls.mu.Unlock()
	close(x.acked)
	ls.endFirstAttempt()
	if old != nil {
		ls.closeStream(old)
	}
	if again || late {
		ls.srv.relist(ls.link)
	}
	if again {
		if n := len(x.uris) - len(x.granted); n > 0 {
			ls.srv.note(slog.LevelWarn, fmt.Sprintf("%d subscriptions not restored: the server no longer accepts them", n))
		}
		for uri := range x.granted {
			ls.srv.opt.Handler.HandleNotification(ls.srv, ls.link, nil, "notifications/resources/updated", rawjson.Object("uri", uri))
		}
	}
}
