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

// listener runs the one subscriptions/listen of a modern connection. It covers the changed lists of the
// server, if its lists are the catalog, and the subscribed resources.
type listener struct {
	*link
	lists []string // members of the filter for changed lists
	wake  chan struct{}
	first chan struct{} // closed when the first attempt is over

	mu      sync.Mutex
	watched map[string]*watchedResource // by URI
	// open is the acknowledged one, next the one that is about to be.
	open, next *listenStream
	stale      *listenStream // has been replaced and is still to be closed
	broken     bool          // a stream ended by itself, and none was acknowledged since
	listsStale bool          // the lists may have been fetched before anything was listened for
	// reopenDelay is the wait when open ends. It grows with each stream that ended soon.
	reopenDelay time.Duration
}

// watchedResource is a resource with a subscription.
type watchedResource struct {
	acknowledged bool
	waiters      []chan error // capacity one each
}

// listenStream is one subscriptions/listen request.
type listenStream struct {
	call           *Call
	id             int64
	subscriptionID string // the id as it stands in subscriptionId
	uris           []string
	acked          chan struct{} // closed once
	// ended is closed when the call is over, for the reason err.
	ended chan struct{}
	err   error
	// Set before acked is closed.
	granted map[string]bool
	empty   bool // nothing of what was asked for is listened for
	since   time.Time
}

// errNotAcknowledged is the error of a subscription that the server did not acknowledge.
var errNotAcknowledged = errors.New("left out of the acknowledgement")

// ackLimit bounds the wait for an acknowledgement.
const ackLimit = 10 * time.Second

// listen starts listening for what the connection needs, and waits a moment
// for the first acknowledgement, so that no change of a list is missed that is
// about to be fetched.
func (l *link) listen(ctx context.Context) {
	ls := &listener{link: l, wake: make(chan struct{}, 1), first: make(chan struct{}), watched: map[string]*watchedResource{}}
	if info := l.Info(); l.Unit() == "" || l.srv.isPerProject() || l.srv.verifiesLists() { // else its lists are not the catalog
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

// wakeRun makes run compare the stream with the wanted subjects.
func (ls *listener) wakeRun() {
	select {
	case ls.wake <- struct{}{}:
	default:
	}
}

// run opens and reopens until the connection ends.
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
			ls.srv.log.Debug("Not listening", "err", err)
			again = time.After(pause)
			pause = min(2*pause, maxWait)
		} else {
			pause = ls.srv.tune.reopenDelay
		}
	}
}

// failWaiters fails the waiting callers because the connection has ended.
func (ls *listener) failWaiters() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for uri := range ls.watched {
		ls.resolveLocked(uri, ls.link.err)
	}
}

// resolveLocked returns err to the callers that wait for a resource.
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

// update makes the stream cover the wanted subjects. An error asks for another attempt.
func (ls *listener) update() error {
	agreed, fresh := ls.wantedURIs()
	var rpc errRPC
	if len(fresh) == 0 {
		err := ls.replace(agreed)
		if errors.As(err, &rpc) && rpc.object.Code == jsonrpc.CodeMethodNotFound {
			ls.srv.note(slog.LevelWarn, "subscriptions/listen is refused: changes will not be noticed")
			return nil
		}
		return err
	}
	err := ls.replace(append(slices.Clone(agreed), fresh...))
	if len(fresh) == 1 || !errors.As(err, &rpc) {
		ls.resolveURIs(fresh, err)
		return ignoreRefusal(err)
	}
	// One that the server refuses must not cost the others.
	for _, uri := range fresh {
		err = ls.replace(append(slices.Clone(agreed), uri))
		ls.resolveURIs([]string{uri}, err)
		if err == nil && ls.isAcknowledged(uri) {
			agreed = append(agreed, uri)
		}
	}
	return ignoreRefusal(err)
}

// ignoreRefusal returns err, or nil for a refusal, which another attempt would only repeat.
func ignoreRefusal(err error) error {
	if _, ok := errors.AsType[errRPC](err); ok {
		return nil
	}
	return err
}

// wantedURIs returns the acknowledged resources, and those that are not acknowledged yet.
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

// resolveURIs returns the outcome err of a listen to the callers that wait for its resources.
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

// replace opens a listen for the lists and those resources, and closes the one
// before when it is acknowledged. Nothing happens when that listens for them
// already.
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
		case <-x.acked: // and nothing is left to listen for
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

// covers reports whether the stream has those resources, and the server acknowledged each.
func (x *listenStream) covers(uris []string) bool {
	return slices.Equal(x.uris, uris) && !slices.ContainsFunc(uris, func(uri string) bool { return !x.granted[uri] })
}

// closeStale closes the replaced stream. It reports whether there was one.
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

// endFirstAttempt marks the first attempt as over.
func (ls *listener) endFirstAttempt() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	select {
	case <-ls.first:
	default:
		close(ls.first)
	}
}

// startStream sends a subscriptions/listen.
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

// errReplaced ends a listen from our side.
var errReplaced replaced

type replaced struct{}

func (replaced) Error() string        { return "not listened on any more" }
func (replaced) CancelReason() string { return "another subscriptions/listen has taken its place" }

// closeStream cancels a listen.
func (ls *listener) closeStream(x *listenStream) {
	if ls.calls.Fail(x.id, errReplaced) {
		ls.abandonCall(x.call, x.id, errReplaced)
	}
}

// streamEnded is called when a listen has ended, for any reason.
func (ls *listener) streamEnded(x *listenStream, reply jsonrpc.Reply, err error) {
	if err == nil && reply.Error != nil {
		err = ls.srv.rpcError(reply.Error)
	}
	ls.mu.Lock()
	if x.err = err; err == nil {
		x.err = errors.New("the server ended the listen")
	}
	current := ls.open == x && !x.empty
	pause := ls.srv.tune.reopenDelay
	if current {
		ls.open, ls.broken = nil, true
		// They are asked for again with the next one.
		if ls.reopenDelay > 0 && time.Since(x.since) < ls.srv.tune.settled {
			pause = min(2*ls.reopenDelay, maxWait)
		}
		ls.reopenDelay = pause
	}
	ls.mu.Unlock()
	close(x.ended)
	if current && ls.ctx.Err() == nil {
		ls.srv.log.Debug("The stream of notifications was lost", "err", x.err)
		ls.srv.note(slog.LevelInfo, "the stream of notifications ended; it is opened again")
		ls.invalidateTools() // what happens until then is not announced
		if ls.spawn(func() {
			if sleep(ls.ctx, pause) == nil {
				ls.wakeRun()
			}
		}) {
			return
		}
	}
}

// take looks at a notification; it reports true when that was for listens alone.
// It runs on read loops. What the protocol put into params is taken out.
func (ls *listener) take(c *Call, m *jsonrpc.Message) (done bool) {
	if m.Method == "notifications/cancelled" {
		// The only request that a server may end so is a listen.
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
		return true // of one that is over
	}
	if m.Method == "notifications/subscriptions/acknowledged" {
		if x == nil {
			x = next // some servers forget the tag
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

// errListenCancelled is the error of a listen that the server has cancelled.
var errListenCancelled = errors.New("the server cancelled the listen")

func (ls *listener) handleCancelled(id []byte) bool {
	ls.mu.Lock()
	mine := ls.open != nil && string(id) == ls.open.subscriptionID || ls.next != nil && string(id) == ls.next.subscriptionID
	ls.mu.Unlock()
	return mine && ls.calls.Resolve(id, jsonrpc.Reply{}, errListenCancelled)
}

// handleAcknowledged makes a listen the one that counts, on the read loop, so that
// what comes next on it is heard and what comes on the old one is not.
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
			ls.srv.note(slog.LevelWarn, fmt.Sprintf("%d subscriptions were not taken up again: the server does not watch these resources any more", n))
		}
		for uri := range x.granted {
			ls.srv.opt.Handler.HandleNotification(ls.srv, ls.link, nil, "notifications/resources/updated", rawjson.Object("uri", uri))
		}
	}
}
