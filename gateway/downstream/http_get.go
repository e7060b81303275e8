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
	// maxGetStreams limits the streams per session; a further one closes the oldest.
	maxGetStreams = 4
	// maxBuffered limits the bytes buffered for a session-wide stream, plus one
	// notification.
	maxBuffered = 1 << 20
	// streamWait limits the wait for a session-wide stream. Clients open it just after
	// the handshake.
	streamWait = 5 * time.Second
	// sumThreshold is the unsent size of a stream above which the session's sum is
	// checked.
	sumThreshold = 64 << 10
)

// httpSession holds the GET streams of an HTTP session. Messages go to the newest one.
// Without a stream, notifications with a key are buffered and others dropped.
type httpSession struct {
	session *Session
	key     string       // secret id in HTTP headers
	writing atomic.Int64 // bytes of JSON answers being written
	share   *memoryShare // of the session, or of one stateless request

	mu       sync.Mutex
	gets     []*eventStream            // newest last
	streams  map[*eventStream]struct{} // including those of POSTs
	buffered *eventStream              // for the next GET stream; may be nil
	opened   chan struct{}             // closed when a GET stream opens; nil without a waiter

	// closeRequest cancels a stateless request; nil for a session.
	closeRequest func()

	refs     int       // uses; guarded by sessionTable.mu
	lastUsed time.Time // last release; guarded by sessionTable.mu
	ended    bool      // guarded by sessionTable.mu
}

func newHTTPSession(s *Session) *httpSession {
	b := &httpSession{session: s, share: s.share, key: randomID(), streams: make(map[*eventStream]struct{}), lastUsed: time.Now()}
	s.sender = b
	return b
}

func (b *httpSession) newestLocked() *eventStream {
	if len(b.gets) == 0 {
		return nil
	}
	return b.gets[len(b.gets)-1]
}

func (b *httpSession) send(frame []byte) {
	b.mu.Lock()
	f := b.newestLocked()
	if f == nil {
		b.mu.Unlock()
		return
	}
	f.queue.Send(frame)
	b.mu.Unlock()
	b.checkLimit(f)
}

func (b *httpSession) sendLow(server, key string, frame []byte) (m jsonrpc.QueuePosition) {
	b.mu.Lock()
	f := b.newestLocked()
	if f == nil {
		if key != "" {
			b.bufferLocked(key, frame)
		}
		b.mu.Unlock()
		return m
	}
	f.queue.SendLow(server, key, frame)
	b.mu.Unlock()
	b.checkLimit(f)
	return m // answers have separate streams
}

func (b *httpSession) laneBytes(server string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.newestLocked(); f != nil {
		return f.queue.LaneBytes(server)
	}
	return 0
}

func (b *httpSession) bufferLocked(key string, frame []byte) {
	if b.buffered == nil {
		b.buffered = newEventStream(b.share)
	}
	if b.buffered.queue.UnsentBytes() < maxBuffered && !b.buffered.queue.OverLimit() {
		b.buffered.queue.SendLow("", key, frame)
	}
}

func (b *httpSession) request(ctx context.Context, frame []byte) error {
	timer := time.After(streamWait)
	for {
		b.mu.Lock()
		if f := b.newestLocked(); f != nil {
			f.queue.Send(frame)
			b.mu.Unlock()
			b.checkLimit(f)
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
		case <-b.session.ctx.Done():
			return context.Cause(b.session.ctx)
		}
	}
}

func (b *httpSession) unsentBytes() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.writing.Load()
	for f := range b.streams {
		n += f.queue.UnsentBytes()
	}
	return n
}

// checkLimit closes the session or stateless request if too much is unsent.
func (b *httpSession) checkLimit(f *eventStream) {
	n := f.queue.UnsentBytes()
	if n <= sumThreshold {
		return
	}
	crowded := f.queue.OverLimit()
	switch over := b.unsentBytes() > overflowFactor*b.session.opt.Limits.Unsent; {
	case !crowded && !over:
	case b.closeRequest == nil && over:
		b.session.Close(ErrOverflow)
	case b.closeRequest == nil:
		b.session.closeNoMemory(n)
	case over:
		b.closeStreams(ErrOverflow)
	default:
		b.session.opt.Logger.Warn("answer cut off: memory limit for all clients and servers reached", "session", b.session.id, "bytes", n)
		b.closeStreams(ErrNoMemory)
	}
}

func (b *httpSession) closeStreams(cause error) {
	b.mu.Lock()
	feeds := slices.Collect(maps.Keys(b.streams))
	b.mu.Unlock()
	for _, f := range feeds {
		f.abort(cause)
	}
	if b.closeRequest != nil {
		b.closeRequest()
	}
}

func (b *httpSession) addPost(f *eventStream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams[f] = struct{}{}
}

func (b *httpSession) addGet() *eventStream {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.buffered
	if f == nil {
		f = newEventStream(b.share)
	}
	b.buffered = nil
	b.streams[f] = struct{}{}
	b.gets = append(b.gets, f)
	if len(b.gets) > maxGetStreams {
		b.gets[0].queue.Finish()
		b.gets = slices.Delete(b.gets, 0, 1)
	}
	if b.opened != nil {
		close(b.opened)
		b.opened = nil
	}
	return f
}

func (b *httpSession) remove(f *eventStream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.streams, f)
	f.queue.Close(errClientLeft)
	if i := slices.Index(b.gets, f); i >= 0 {
		b.gets = slices.Delete(b.gets, i, i+1)
	}
}

func (h *HTTP) get(w http.ResponseWriter, r *http.Request, rc *responseControl) {
	if _, events := accepts(r.Header); !events {
		writeRPCError(w, http.StatusNotAcceptable, nil, "GET needs Accept: text/event-stream")
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
		writeUnavailable(w, nil, "Goblin is shutting down")
		return
	}
	defer h.listener.addStream()()
	f := b.addGet()
	defer b.remove(f)
	f.serve(w, r, rc, b.session)
}
