package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// session is the part of the client's session that is repeated to the next daemon.
type session struct {
	initialize  []byte // params, once answered
	initialized []byte // frame
	level       []byte // params of logging/setLevel
	subs        map[string]*subscription
}

type subscription struct {
	params []byte
	seq    int
	failed bool // refused by the current daemon; its server may start later
}

// replay is a request that the bridge sends for the client.
type replay struct {
	method string
	uri    string
}

var errEnded = errors.New("the client disconnected")

// serve connects to one daemon after the other until the bridge ends.
func (b *bridge) serve() error {
	l, err := b.attempt(b.lim.start)
	if err != nil {
		b.refuse(err)
		return b.result(err)
	}
	for {
		if b.awaitEnd(l) {
			return b.result(nil)
		}
		for l, err = b.next(); err != nil; l, err = b.attempt(b.lim.takeover) {
			b.refuse(err)
			if !b.idle() {
				return b.result(nil)
			}
		}
	}
}

// result returns the reason why the client cannot be served, or nil if it disconnected.
func (b *bridge) result(err error) error {
	if b.hard.Err() == nil {
		return err
	}
	if cause := context.Cause(b.hard); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// next tries with increasing delays, for lim.takeover at most.
func (b *bridge) next() (*link, error) {
	until := time.Now().Add(b.lim.takeover)
	for {
		if !pause(b.hard, b.delay) {
			return nil, errEnded
		}
		l, err := b.attempt(time.Until(until))
		if err == nil {
			return l, nil
		}
		b.increaseDelay()
		if b.hard.Err() != nil || time.Now().Add(b.delay).After(until) {
			return nil, err
		}
		b.log.Info("no daemon yet", "err", err)
	}
}

func (b *bridge) increaseDelay() { b.delay = min(max(2*b.delay, 50*time.Millisecond), maxDelay) }

func (b *bridge) attempt(limit time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(b.hard, limit)
	defer cancel()
	conn, err := b.o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	l := b.connected(conn)
	if err := b.reinitialize(ctx, l); err != nil {
		l.abort()
		return nil, fmt.Errorf("restore the session in the new daemon: %w", err)
	}
	b.adopt(l)
	return l, nil
}

func (b *bridge) reinitialize(ctx context.Context, l *link) error {
	b.mu.Lock()
	params := b.session.initialize
	if params == nil {
		b.mu.Unlock()
		return nil
	}
	b.repeatLocked(l, replay{method: initialize}, params)
	b.mu.Unlock()
	select {
	case err := <-l.ready:
		return err
	case <-l.done:
		return errors.New("it exited immediately")
	case <-ctx.Done():
		return errors.New("it does not answer initialize")
	}
}

func (b *bridge) repeatLocked(l *link, r replay, params []byte) {
	b.seq++
	id := rawjson.Quote(b.ns + ":r" + strconv.Itoa(b.seq))
	l.replays[string(id)] = r
	l.out.Send(jsonrpc.RequestFrame(id, r.method, params))
}

func (b *bridge) replayedLocked(l *link, e envelope, frame []byte) {
	r, ok := l.replays[string(e.id)]
	if !ok {
		return
	}
	delete(l.replays, string(e.id))
	var err error
	if e.failed {
		err = jsonrpc.ParseErrorObject(rawjson.Get(frame, "error"))
	}
	s := b.session.subs[r.uri]
	switch {
	case r.method == initialize:
		l.ready <- err
	case r.method == subscribe && s != nil:
		s.failed = err != nil
	}
	if err != nil {
		b.log.Warn("new daemon refused a repeated request", "method", r.method, "uri", r.uri, "err", err)
	}
}

// retryLocked repeats refused subscriptions after resources changed, since the missing
// server may be up.
func (b *bridge) retryLocked(l *link) {
	for _, uri := range b.subscriptionsLocked() {
		if s := b.session.subs[uri]; s.failed {
			s.failed = false
			b.repeatLocked(l, replay{subscribe, uri}, s.params)
		}
	}
}

// subscriptionsLocked returns the URIs in order of subscription.
func (b *bridge) subscriptionsLocked() []string {
	return slices.SortedFunc(maps.Keys(b.session.subs), func(x, y string) int {
		return cmp.Compare(b.session.subs[x].seq, b.session.subs[y].seq)
	})
}

// adopt makes l the current daemon. It sends the rest of the session, then the queued
// frames.
func (b *bridge) adopt(l *link) {
	b.mu.Lock()
	defer b.mu.Unlock()
	again := b.session.initialize != nil && b.session.initialized != nil
	if again {
		l.out.Send(b.session.initialized)
	}
	if b.session.level != nil {
		b.repeatLocked(l, replay{method: setLevel}, b.session.level)
	}
	for _, uri := range b.subscriptionsLocked() {
		s := b.session.subs[uri]
		s.failed = false
		b.repeatLocked(l, replay{subscribe, uri}, s.params)
	}
	for _, h := range b.waiting {
		b.noteAllLocked(h.envelope, h.frame)
		l.out.Send(h.frame)
	}
	b.waiting, b.size = nil, 0
	b.link = l
	if again {
		// The next daemon may list other entries.
		for _, method := range []string{toolChanged, promptChgd, resChanged} {
			b.out.SendLow("", method, jsonrpc.NotificationFrame(method, nil))
		}
	}
}

// noteAllLocked ignores an initialize in a batch, which the daemon refuses.
func (b *bridge) noteAllLocked(e envelope, frame []byte) {
	alone := !rawjson.IsArray(frame)
	for e, m := range messages(e, frame) {
		if alone || e.method != initialize {
			b.noteLocked(e, m)
		}
	}
}

func (b *bridge) noteLocked(e envelope, frame []byte) {
	switch e.method {
	case initialized:
		b.session.initialized = frame
	case cancelled: // a cancelled request gets no response
		if id := rawjson.Path(frame, "params", "requestId"); id != nil {
			b.forgetLocked(id)
		}
	}
	if !e.request() {
		return
	}
	c := b.open[string(e.id)]
	b.seq++
	c.n, c.seq, c.method = c.n+1, b.seq, e.method
	switch e.method {
	case initialize:
		c.params, c.frame = rawjson.Get(frame, "params"), frame
	case setLevel, subscribe:
		c.params = rawjson.Get(frame, "params")
	case unsubscribe:
		c.params = rawjson.Get(frame, "params")
		// The subscription ends regardless of the response.
		if uri, ok := rawjson.String(rawjson.Get(c.params, "uri")); ok {
			delete(b.session.subs, uri)
		}
	}
	b.open[string(e.id)] = c
}

func (b *bridge) forgetLocked(id []byte) (call, bool) {
	c, ok := b.open[string(id)]
	if c.n > 1 {
		c.n--
		b.open[string(id)] = c
	} else {
		delete(b.open, string(id))
	}
	return c, ok
}

func (b *bridge) answeredLocked(e envelope) {
	c, ok := b.forgetLocked(e.id)
	if !ok || e.failed || c.params == nil {
		return
	}
	switch c.method {
	case initialize:
		b.session.initialize = c.params
	case setLevel:
		b.session.level = c.params
	case subscribe:
		if uri, ok := rawjson.String(rawjson.Get(c.params, "uri")); ok && !b.unwantedLocked(uri, c.seq) {
			b.session.subs[uri] = &subscription{params: c.params, seq: c.seq}
		}
	}
}

// unwantedLocked reports whether the client has unsubscribed since.
func (b *bridge) unwantedLocked(uri string, since int) bool {
	for _, c := range b.open {
		if c.method == unsubscribe && c.seq > since {
			if own := rawjson.GetString(c.params, "uri"); own == uri {
				return true
			}
		}
	}
	return false
}

// awaitEnd waits until l or the bridge ends, and reports the latter.
func (b *bridge) awaitEnd(l *link) bool {
	select {
	case <-l.done:
		gone := b.failOpenCalls()
		if time.Since(l.since) > settled {
			b.delay = 0
		} else {
			b.increaseDelay()
		}
		if gone {
			b.refuse(errEnded)
		}
		return gone
	case <-b.soft:
	case <-b.hard.Done():
	}
	l.out.Finish() // the daemon sees the end after the last frame
	within(l.done, b.lim.drain, b.hard.Done())
	l.abort()
	b.failOpenCalls()
	b.refuse(errEnded)
	return true
}

// failOpenCalls answers the open calls of the last daemon with errors. It reports whether
// the client has disconnected, so that no other daemon is needed.
func (b *bridge) failOpenCalls() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.link = nil
	ids := slices.SortedFunc(maps.Keys(b.open), func(x, y string) int {
		return cmp.Compare(b.open[x].seq, b.open[y].seq)
	})
	if !b.closed {
		b.log.Warn("daemon stopped; reconnecting", "unanswered", len(ids))
	}
	for _, id := range ids {
		c := b.open[id]
		if c.frame != nil && !b.closed {
			// The client is not initialized yet and needs no error.
			again := []queuedFrame{{scan(c.frame), c.frame}}
			if early := b.session.initialized; early != nil && b.session.initialize == nil { // sent before the response to initialize
				again = append(again, queuedFrame{scan(early), early})
			}
			for _, p := range again {
				b.size += int64(len(p.frame))
			}
			b.waiting = slices.Insert(b.waiting, 0, again...)
			continue
		}
		for range c.n {
			b.out.Send(b.failureLocked([]byte(id), c.method, unansweredError(c.method, b.closed)))
		}
	}
	clear(b.open)
	for id := range b.questions {
		b.out.Send(jsonrpc.CancelFrame([]byte(id), "the daemon that asked has stopped"))
	}
	clear(b.questions)
	return b.closed
}

func unansweredError(method string, closing bool) *jsonrpc.Error {
	what := "the Goblin daemon stopped"
	if closing {
		what = "the connection to Goblin ended"
	}
	advice := "it may have run, so check before retrying"
	if repeatable[method] {
		advice = "it is safe to retry"
	}
	return connectionError(fmt.Sprintf("%s before %s was answered; %s", what, method, advice))
}

// failureLocked treats a client without initialize as one of a stateless revision.
func (b *bridge) failureLocked(id []byte, method string, e *jsonrpc.Error) []byte {
	return jsonrpc.ToolErrorFrame(id, method, b.session.initialize == nil, e)
}

func connectionError(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: message, Data: []byte(`{"code":"CONNECTION_ERROR","server":"goblin"}`)}
}

func (b *bridge) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.waiting {
		for m, frame := range messages(h.envelope, h.frame) {
			if m.request() {
				e := connectionError(fmt.Sprintf("cannot reach a Goblin daemon: %v; %s did not run, so it is safe to retry", err, m.method))
				b.out.Send(b.failureLocked(m.id, m.method, e))
			}
			if m.method == initialized {
				b.session.initialized = frame
			}
		}
	}
	if !errors.Is(err, errEnded) && b.hard.Err() == nil { // otherwise the client disconnected
		b.log.Error("cannot reach a daemon", "err", err, "refused", len(b.waiting))
	}
	b.waiting, b.size = nil, 0
}

// idle waits without a daemon for the client's next frame. It returns false when the
// bridge ends.
func (b *bridge) idle() bool {
	for {
		select {
		case <-b.wake:
		case <-b.soft:
			return false
		case <-b.hard.Done():
			return false
		}
		b.mu.Lock()
		some := len(b.waiting) > 0
		b.mu.Unlock()
		if some {
			return true
		}
	}
}
