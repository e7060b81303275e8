package downstream

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
)

const (
	// maxFeeds is how many session-wide streams a session may hold; one more
	// ends the oldest.
	maxFeeds = 4
	// maxHeld is how many bytes of merged notifications wait for a session-wide
	// stream, besides the last one.
	maxHeld = 1 << 20
	// streamWait is how long a request to the client waits for a
	// session-wide stream: clients open theirs just after the handshake.
	streamWait = 5 * time.Second
	// countAbove is the backlog of one stream above which the others of the
	// session are added up too.
	countAbove = 64 << 10
)

// hub is the session-wide side of an HTTP session: its GET streams. A message
// goes to the newest of them only. While there is none, merged notifications
// wait, bounded, and others are dropped.
type hub struct {
	s       *Session
	key     string       // what requests name the session by; known to its client alone
	writing atomic.Int64 // bytes of JSON answers being written
	share   *share       // the session's, or of one stateless client

	mu     sync.Mutex
	gets   []*feed            // newest last
	feeds  map[*feed]struct{} // all streams, those of POSTs too
	next   *feed              // of merged notifications until a GET stream opens; nil for none
	opened chan struct{}      // closed when a GET stream opens; nil when nobody waits

	// drop ends what one stateless client reads, in the place of the session
	// that it shares with others; nil for the hub of a session.
	drop func()

	uses int       // requests, streams and exchanges; guarded by sessions.mu
	used time.Time // when uses fell last; guarded by sessions.mu
	over bool      // the session has ended; guarded by sessions.mu
}

func newHub(s *Session) *hub {
	b := &hub{s: s, share: s.share, key: randomID(), feeds: make(map[*feed]struct{}), used: time.Now()}
	s.base = b
	return b
}

func (b *hub) newestLocked() *feed {
	if len(b.gets) == 0 {
		return nil
	}
	return b.gets[len(b.gets)-1]
}

func (b *hub) send(frame []byte) {
	b.mu.Lock()
	f := b.newestLocked()
	if f == nil {
		b.mu.Unlock()
		return
	}
	f.out.Send(frame)
	b.mu.Unlock()
	b.check(f)
}

func (b *hub) chat(server, key string, frame []byte) (m jsonrpc.QueuePosition) {
	b.mu.Lock()
	f := b.newestLocked()
	if f == nil {
		if key != "" {
			b.holdLocked(key, frame)
		}
		b.mu.Unlock()
		return m
	}
	f.out.SendLow(server, key, frame)
	b.mu.Unlock()
	b.check(f)
	return m // answers have streams of their own
}

func (b *hub) waiting(server string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.newestLocked(); f != nil {
		return f.out.LaneBytes(server)
	}
	return 0
}

// holdLocked keeps a merged notification until a stream opens.
func (b *hub) holdLocked(key string, frame []byte) {
	if b.next == nil {
		b.next = newFeed(b.share)
	}
	if b.next.out.UnsentBytes() < maxHeld && !b.next.out.OverLimit() {
		b.next.out.SendLow("", key, frame)
	}
}

func (b *hub) request(ctx context.Context, frame []byte) error {
	timer := time.After(streamWait)
	for {
		b.mu.Lock()
		if f := b.newestLocked(); f != nil {
			f.out.Send(frame)
			b.mu.Unlock()
			b.check(f)
			return nil
		}
		if b.opened == nil {
			b.opened = make(chan struct{})
		}
		opened := b.opened
		b.mu.Unlock()
		select {
		case <-opened:
		case <-timer:
			return ErrNoStream
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-b.s.ctx.Done():
			return context.Cause(b.s.ctx)
		}
	}
}

func (b *hub) unsent() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.writing.Load()
	for f := range b.feeds {
		n += f.out.UnsentBytes()
	}
	return n
}

// check gives the client up when too much waits for it, after f got more.
func (b *hub) check(f *feed) {
	n := f.out.UnsentBytes()
	if n <= countAbove {
		return
	}
	crowded := f.out.OverLimit()
	switch over := b.unsent() > overflowFactor*b.s.opt.Limits.Unsent; {
	case !crowded && !over:
	case b.drop == nil && over:
		b.s.Close(ErrOverflow)
	case b.drop == nil:
		b.s.crowd(n)
	case over:
		b.cut(ErrOverflow)
	default:
		b.s.opt.Logger.Warn("an answer was cut off: too much is held for all clients and servers together", "session", b.s.id, "bytes", n)
		b.cut(ErrNoMemory)
	}
}

// cut ends what the client reads as events, and with it the request of a stateless
// one.
func (b *hub) cut(cause error) {
	b.mu.Lock()
	feeds := slices.Collect(maps.Keys(b.feeds))
	b.mu.Unlock()
	for _, f := range feeds {
		f.cut(cause)
	}
	if b.drop != nil {
		b.drop()
	}
}

// add counts the stream of a POST.
func (b *hub) add(f *feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.feeds[f] = struct{}{}
}

// addGet makes the session-wide stream, which begins with what waits for it.
func (b *hub) addGet() *feed {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.next
	if f == nil {
		f = newFeed(b.share)
	}
	b.next = nil
	b.feeds[f] = struct{}{}
	b.gets = append(b.gets, f)
	if len(b.gets) > maxFeeds {
		b.gets[0].out.Finish()
		b.gets = slices.Delete(b.gets, 0, 1)
	}
	if b.opened != nil {
		close(b.opened)
		b.opened = nil
	}
	return f
}

func (b *hub) remove(f *feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.feeds, f)
	f.out.Close(errHungUp)
	if i := slices.Index(b.gets, f); i >= 0 {
		b.gets = slices.Delete(b.gets, i, i+1)
	}
}

// get serves a session-wide stream.
func (h *HTTP) get(w http.ResponseWriter, r *http.Request, rc *http.ResponseController) {
	if _, events := accepts(r.Header); !events {
		refuse(w, http.StatusNotAcceptable, nil, "GET needs Accept: text/event-stream")
		return
	}
	if !checkProtocol(w, r) {
		return
	}
	b := h.session(w, r)
	if b == nil {
		return
	}
	defer h.sessions.release(b)
	if h.draining.Load() {
		unavailable(w, nil, "The server is shutting down")
		return
	}
	defer h.conns.outlasts()()
	f := b.addGet()
	defer b.remove(f)
	f.serve(w, r, rc, b.s)
}
