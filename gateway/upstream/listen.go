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

// listens keeps the one subscriptions/listen of a modern connection: of the
// changed lists of the server that owns the catalog, and of the resources that
// the gateway subscribes to.
//
// A listen cannot be changed. When resources come or go (gathered for a moment)
// a new one is opened, and the old one is closed when the new one has been
// acknowledged, so that nothing is missed; what still comes on the old one then
// is dropped, so that nothing comes twice. Over stdio the old one is closed only
// before the next is opened: there, servers of the official Go SDK forget all
// that their client listens for when any of its listens ends, so the end of one
// must not come last. When a stream is lost and opened
// again, the lists are fetched anew and all subscribers are told of an update,
// because what happened in between was not announced.
type listens struct {
	*link
	lists []string // members of the filter for changed lists
	wake  chan struct{}
	first chan struct{} // closed when the first attempt is over

	mu   sync.Mutex
	want map[string]*watch // by URI
	// open is the acknowledged one, next the one that is about to be.
	open, next *listening
	stale      *listening // has been replaced and is still to be closed
	lost       bool       // a stream ended by itself, and none was acknowledged since
	late       bool       // the lists may have been fetched before anything was listened for
	// pause is how long to wait when open ends; it grows with each that ended soon.
	pause time.Duration
}

// watch is a resource that is subscribed to.
type watch struct {
	agreed  bool
	waiters []chan error // capacity one each
}

// listening is one subscriptions/listen.
type listening struct {
	call  *Call
	id    int64
	tag   string // the id as it stands in subscriptionId
	uris  []string
	acked chan struct{} // closed once
	// ended is closed when the call is over, for the reason err.
	ended chan struct{}
	err   error
	// Set before acked is closed.
	honoured map[string]bool
	idle     bool // nothing of what was asked for is listened for
	since    time.Time
}

// errLeftOut is why a subscription was not acknowledged.
var errLeftOut = errors.New("left out of the acknowledgement")

// ackLimit bounds the wait for an acknowledgement.
const ackLimit = 10 * time.Second

// listen starts listening for what the connection needs, and waits a moment
// for the first acknowledgement, so that no change of a list is missed that is
// about to be fetched.
func (l *link) listen(ctx context.Context) {
	ls := &listens{link: l, wake: make(chan struct{}, 1), first: make(chan struct{}), want: map[string]*watch{}}
	if info := l.Info(); l.Unit() == "" || l.srv.perProject() || l.srv.checked() { // else its lists are not the catalog
		on := l.srv.opt.ListChanged
		for _, k := range []struct {
			capability, member string
			on                 bool
		}{
			{"tools", "toolsListChanged", on.Tools || l.srv.checked()},
			{"prompts", "promptsListChanged", on.Prompts},
			{"resources", "resourcesListChanged", on.Resources},
		} {
			if k.on && info.Has(k.capability, "listChanged") {
				ls.lists = append(ls.lists, k.member)
			}
		}
	}
	l.listens.Store(ls)
	if !l.spawn(ls.run) || len(ls.lists) == 0 {
		return
	}
	ls.stir()
	select {
	case <-ls.first:
		return
	case <-ctx.Done():
	case <-l.done:
	case <-time.After(l.srv.tune.probe):
	}
	ls.mu.Lock()
	ls.late = true
	ls.mu.Unlock()
}

// stir makes run look at what is wanted.
func (ls *listens) stir() {
	select {
	case ls.wake <- struct{}{}:
	default:
	}
}

// run opens and reopens until the connection ends.
func (ls *listens) run() {
	var again <-chan time.Time
	pause := ls.srv.tune.reopen
	for {
		select {
		case <-ls.wake:
		case <-again:
		case <-ls.ctx.Done():
			ls.dismiss()
			return
		}
		again = nil
		if sleep(ls.ctx, ls.srv.tune.gather) != nil {
			ls.dismiss()
			return
		}
		select {
		case <-ls.wake:
		default:
		}
		if err := ls.renew(); err != nil {
			ls.srv.log.Debug("Not listening", "err", err)
			again = time.After(pause)
			pause = min(2*pause, maxWait)
		} else {
			pause = ls.srv.tune.reopen
		}
	}
}

// dismiss tells waiting callers that the connection has ended.
func (ls *listens) dismiss() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for uri := range ls.want {
		ls.settleLocked(uri, ls.link.err)
	}
}

// settleLocked tells the callers that wait for a resource how it went.
func (ls *listens) settleLocked(uri string, err error) {
	w := ls.want[uri]
	if w == nil {
		return
	}
	w.agreed = err == nil
	for _, ch := range w.waiters {
		ch <- err
	}
	w.waiters = nil
	if err != nil {
		delete(ls.want, uri)
	}
}

// renew brings what is listened for to what is wanted. An error asks for
// another attempt.
func (ls *listens) renew() error {
	agreed, fresh := ls.wanted()
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
		ls.conclude(fresh, err)
		return lostOnly(err)
	}
	// One that the server refuses must not cost the others.
	for _, uri := range fresh {
		err = ls.replace(append(slices.Clone(agreed), uri))
		ls.conclude([]string{uri}, err)
		if err == nil && ls.agreed(uri) {
			agreed = append(agreed, uri)
		}
	}
	return lostOnly(err)
}

// lostOnly is err, unless it is a refusal: asking again is no use then.
func lostOnly(err error) error {
	if _, ok := errors.AsType[errRPC](err); ok {
		return nil
	}
	return err
}

// wanted are the resources that are agreed on, and those that are not yet.
func (ls *listens) wanted() (agreed, fresh []string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for uri, w := range ls.want {
		if w.agreed {
			agreed = append(agreed, uri)
		} else {
			fresh = append(fresh, uri)
		}
	}
	slices.Sort(agreed)
	slices.Sort(fresh)
	return agreed, fresh
}

func (ls *listens) agreed(uri string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	w := ls.want[uri]
	return w != nil && w.agreed
}

// conclude settles resources that a listen, which ended in err, was opened for.
func (ls *listens) conclude(uris []string, err error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for _, uri := range uris {
		switch {
		case err != nil:
			ls.settleLocked(uri, err)
		case ls.open == nil || !ls.open.honoured[uri]:
			ls.settleLocked(uri, errLeftOut)
		default:
			ls.settleLocked(uri, nil)
		}
	}
}

// replace opens a listen for the lists and those resources, and closes the one
// before when it is acknowledged. Nothing happens when that listens for them
// already.
func (ls *listens) replace(uris []string) error {
	slices.Sort(uris)
	ls.mu.Lock()
	old := ls.open
	ls.mu.Unlock()
	empty := len(uris) == 0 && len(ls.lists) == 0
	if old != nil && (old.serves(uris) || empty) {
		if empty {
			ls.mu.Lock()
			ls.open = nil
			ls.mu.Unlock()
			ls.tidy()
			ls.end(old)
		}
		return nil
	}
	if empty {
		return nil
	}
	if ls.tidy() && sleep(ls.ctx, ls.srv.tune.gather) != nil {
		return ls.link.err
	}
	x, err := ls.begin(uris)
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
		err = ls.srv.failure(RequestTimeout, "did not acknowledge subscriptions/listen", context.DeadlineExceeded)
		ls.end(x)
	case <-ls.done:
		err = ls.link.err
	}
	ls.mu.Lock()
	if ls.next == x {
		ls.next = nil
	}
	ls.mu.Unlock()
	ls.began()
	return err
}

// serves reports whether a listen is for those resources, and the server agreed
// to each.
func (x *listening) serves(uris []string) bool {
	return slices.Equal(x.uris, uris) && !slices.ContainsFunc(uris, func(uri string) bool { return !x.honoured[uri] })
}

// tidy closes the one that was replaced; it reports whether there was one.
func (ls *listens) tidy() bool {
	ls.mu.Lock()
	x := ls.stale
	ls.stale = nil
	ls.mu.Unlock()
	if x != nil {
		ls.end(x)
	}
	return x != nil
}

// began marks the first attempt as over.
func (ls *listens) began() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	select {
	case <-ls.first:
	default:
		close(ls.first)
	}
}

// begin sends a subscriptions/listen.
func (ls *listens) begin(uris []string) (*listening, error) {
	filter := []byte{'{'}
	for _, member := range ls.lists {
		filter = rawjson.AppendMember(filter, rawjson.Quote(member), []byte("true"))
	}
	if len(uris) > 0 {
		filter = rawjson.AppendMember(filter, []byte(`"resourceSubscriptions"`), rawjson.Strings(uris))
	}
	params := slices.Concat([]byte(`{"notifications":`), filter, []byte("}}"))

	x := &listening{uris: uris, acked: make(chan struct{}), ended: make(chan struct{})}
	x.call = &Call{Context: ls.ctx, Method: "subscriptions/listen", Params: params, modern: true, listening: x}
	open, err := ls.calls.Add(x.call)
	if err != nil {
		return nil, err
	}
	x.id = open.ID
	x.tag = strconv.FormatInt(x.id, 10)
	ls.mu.Lock()
	ls.next = x
	ls.mu.Unlock()
	if !ls.spawn(func() {
		outcome := <-open.Done()
		x.call.end()
		reply, err := outcome.Take()
		ls.calls.Release(open)
		ls.finish(x, reply, err)
	}) {
		ls.calls.Remove(x.id)
		return nil, ls.link.err
	}
	ls.wire.request(x.call, x.id, ls.modernFrame(x.call, []byte(x.tag)))
	return x, nil
}

// errReplaced ends a listen from our side.
var errReplaced replaced

type replaced struct{}

func (replaced) Error() string        { return "not listened on any more" }
func (replaced) CancelReason() string { return "another subscriptions/listen has taken its place" }

// end closes a listen from our side.
func (ls *listens) end(x *listening) {
	if ls.calls.Fail(x.id, errReplaced) {
		ls.abandon(x.call, x.id, errReplaced)
	}
}

// finish is called when a listen has ended, for whatever reason.
func (ls *listens) finish(x *listening, reply jsonrpc.Reply, err error) {
	if err == nil && reply.Error != nil {
		err = ls.srv.refused(reply.Error)
	}
	ls.mu.Lock()
	if x.err = err; err == nil {
		x.err = errors.New("the server ended the listen")
	}
	current := ls.open == x && !x.idle
	pause := ls.srv.tune.reopen
	if current {
		ls.open, ls.lost = nil, true
		// They are asked for again with the next one.
		if ls.pause > 0 && time.Since(x.since) < ls.srv.tune.settled {
			pause = min(2*ls.pause, maxWait)
		}
		ls.pause = pause
	}
	ls.mu.Unlock()
	close(x.ended)
	if current && ls.ctx.Err() == nil {
		ls.srv.log.Debug("The stream of notifications was lost", "err", x.err)
		ls.srv.note(slog.LevelInfo, "the stream of notifications ended; it is opened again")
		ls.outdate() // what happens until then is not announced
		if ls.spawn(func() {
			if sleep(ls.ctx, pause) == nil {
				ls.stir()
			}
		}) {
			return
		}
	}
}

// take looks at a notification; it reports true when that was for listens alone.
// It runs on read loops. What the protocol put into params is taken out.
func (ls *listens) take(c *Call, m *jsonrpc.Message) (done bool) {
	if m.Method == "notifications/cancelled" {
		// The only request that a server may end so is a listen.
		return ls.withdrawn(rawjson.Get(m.Params, "requestId"))
	}
	tag := rawjson.Path(m.Params, "_meta", wire.Subscription)
	name, quoted := rawjson.String(tag)
	if !quoted {
		name = string(tag)
	}
	ls.mu.Lock()
	open, next := ls.open, ls.next
	ls.mu.Unlock()
	var x *listening
	switch {
	case c != nil && c.listening != nil:
		x = c.listening
	case tag == nil:
	case open != nil && name == open.tag:
		x = open
	case next != nil && name == next.tag:
		x = next
	default:
		return true // of one that is over
	}
	if m.Method == "notifications/subscriptions/acknowledged" {
		if x == nil {
			x = next // some servers forget the tag
		}
		if x != nil && x == next {
			ls.acknowledged(x, rawjson.Get(m.Params, "notifications"))
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

// errEnded is why a listen is over that the server has cancelled.
var errEnded = errors.New("the server cancelled the listen")

func (ls *listens) withdrawn(id []byte) bool {
	ls.mu.Lock()
	mine := ls.open != nil && string(id) == ls.open.tag || ls.next != nil && string(id) == ls.next.tag
	ls.mu.Unlock()
	return mine && ls.calls.Resolve(id, jsonrpc.Reply{}, errEnded)
}

// acknowledged makes a listen the one that counts, on the read loop, so that
// what comes next on it is heard and what comes on the old one is not.
func (ls *listens) acknowledged(x *listening, honoured []byte) {
	x.honoured = make(map[string]bool, len(x.uris))
	for v := range rawjson.Elements(rawjson.Get(honoured, "resourceSubscriptions")) {
		if uri, ok := rawjson.String(v); ok {
			x.honoured[uri] = true
		}
	}
	x.idle = len(x.honoured) == 0
	for _, member := range ls.lists {
		if string(rawjson.Get(honoured, member)) == "true" {
			x.idle = false
		}
	}
	x.since = time.Now()
	ls.mu.Lock()
	old := ls.open
	ls.open, ls.next = x, nil
	if ls.wire.local() && old != nil {
		old, ls.stale = nil, old
	}
	again, late := ls.lost, ls.late
	ls.lost, ls.late = false, false
	ls.mu.Unlock()
	close(x.acked)
	ls.began()
	if old != nil {
		ls.end(old)
	}
	if again || late {
		ls.srv.relist(ls.link)
	}
	if again {
		if n := len(x.uris) - len(x.honoured); n > 0 {
			ls.srv.note(slog.LevelWarn, fmt.Sprintf("%d subscriptions were not taken up again: the server does not watch these resources any more", n))
		}
		for uri := range x.honoured {
			ls.srv.opt.Handler.HandleNotification(ls.srv, ls.link, nil, "notifications/resources/updated", rawjson.Object("uri", uri))
		}
	}
}
