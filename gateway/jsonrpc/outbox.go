package jsonrpc

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/memlimit"
)

// Sink writes frames to a peer. WriteFrames may block; it is called by one
// goroutine at a time. Every frame ends with a line break.
type Sink interface {
	WriteFrames(frames [][]byte) error
}

// TrySink is a Sink that can also write without blocking.
type TrySink interface {
	Sink
	// TryWrite writes as much of frame as the peer takes at once and returns
	// how much that was; zero when it would have to wait.
	TryWrite(frame []byte) (n int, err error)
}

// SendQueue is the ordered queue of frames to a peer. Senders never wait:
// frames are queued and a writer goroutine, [SendQueue.Run], writes them. Frames
// given to Send are never dropped, and go before what is given to Chat, if that is
// much: of that, each party's has an order of its own, and of frames with the same key
// only the newest stays while it waits, in the place of the first. The queues
// have no bound of their own: the owner watches [SendQueue.UnsentBytes],
// [SendQueue.LaneBytes] and [SendQueue.StalledFor], stops feeding the peer, or closes it.
type SendQueue struct {
	sink  Sink
	try   TrySink // nil when the sink cannot write without blocking
	parts bool    // the sink does not mind where frames begin

	mu      sync.Mutex
	queue   [][]byte
	buffers map[*byte]*Buffer    // of frames in the queue or being written, by endOf
	lanes   []*lane              // those that wait, in the order of their turns
	unsent  atomic.Int64         // bytes queued or being written; changed under mu
	written int64                // bytes of the write under way that unsent has no more
	writing bool                 // a write is under way, so order forbids another
	since   time.Time            // when the write under way began or last made progress
	err     error                // why nothing more is written
	claim   memlimit.Reservation // of unsent
	crowded bool                 // there was no room for all that
	closing bool                 // no more frames are taken; Run ends when the queue is empty
	wake    chan struct{}        // capacity one
}

// NewSendQueue returns an Outbox that writes to sink; Run must be started.
func NewSendQueue(sink Sink) *SendQueue {
	o := &SendQueue{sink: sink, wake: make(chan struct{}, 1)}
	o.try, _ = sink.(TrySink)
	return o
}

// Send queues a frame, in the order of the calls. The frame belongs to the
// Outbox from then on. It is discarded once the Outbox is closed.
func (o *SendQueue) Send(frame []byte) { o.send(true, nil, frame) }

// SendBuffered is Send for a frame that others will follow at once: it waits for
// them, so that one write takes them all.
func (o *SendQueue) SendBuffered(frame []byte) { o.send(false, nil, frame) }

// SendParts is Send for a frame in parts, which must not be written to any more.
// The Outbox holds the buffer of parts, which may be nil, until it has written
// them.
func (o *SendQueue) SendParts(parts [][]byte, of *Buffer) { o.send(true, of, parts...) }

// SendPartsBuffered is SendParts as Gather is Send.
func (o *SendQueue) SendPartsBuffered(parts [][]byte, of *Buffer) { o.send(false, of, parts...) }

func (o *SendQueue) send(now bool, of *Buffer, parts ...[]byte) {
	if len(parts) > 1 && !o.parts {
		o.send(now, nil, bytes.Join(parts, nil))
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.closing {
		return
	}
	o.inOrder()
	n := 0
	if now && o.try != nil && !o.writing && len(o.queue) == 0 {
		var err error
		if n, err = o.tryParts(parts); err != nil {
			o.fail(err)
			return
		}
	}
	before := len(o.queue)
	for _, p := range parts {
		skip := min(n, len(p))
		if n -= skip; skip < len(p) {
			o.push(p[skip:])
		}
	}
	if of != nil && len(o.queue) > before {
		if o.buffers == nil {
			o.buffers = make(map[*byte]*Buffer)
		}
		of.hold()
		o.buffers[endOf(parts[len(parts)-1])] = of
	}
}

// endOf stands for a frame: however much of it is written, its last byte is the
// last to go.
func endOf(frame []byte) *byte { return &frame[len(frame)-1] }

// gone lets go of the buffers of frames that were written.
func (o *SendQueue) gone(frames [][]byte) {
	if len(o.buffers) == 0 {
		return
	}
	for _, f := range frames {
		if b := o.buffers[endOf(f)]; b != nil {
			delete(o.buffers, endOf(f))
			b.Release()
		}
	}
}

// tryParts writes what the peer takes at once of the beginning of a frame.
func (o *SendQueue) tryParts(parts [][]byte) (int, error) {
	if len(parts) == 1 {
		return o.try.TryWrite(parts[0])
	}
	c := chunks.Get().(*chunk)
	defer chunks.Put(c)
	n := 0
	for _, p := range parts {
		n += copy(c[n:], p)
	}
	return o.try.TryWrite(c[:n])
}

// hold queues a frame that flush will send, if it is not sent before.
func (o *SendQueue) hold(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && !o.closing {
		o.inOrder()
		o.queue = append(o.queue, frame)
		o.countLocked(int64(len(frame)))
	}
}

// flush sends what hold has queued: in one write, if that need not wait.
func (o *SendQueue) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.queue) == 0 || o.err != nil || o.writing:
		return // whoever writes goes on with what is queued
	case o.try == nil || len(o.lanes) > 0 || o.unsent.Load() > int64(len(chunk{})):
		o.poke()
		return
	case len(o.queue) == 1:
		o.attempt(o.queue[0])
		return
	}
	room := chunks.Get().(*chunk)
	defer chunks.Put(room)
	all := room[:0]
	for _, f := range o.queue {
		all = append(all, f...)
	}
	o.attempt(all)
}

// attempt writes what is queued, all, as far as the peer takes it at once, and
// leaves the rest to Run.
func (o *SendQueue) attempt(all []byte) {
	n, err := o.try.TryWrite(all)
	if err != nil {
		o.fail(err)
		return
	}
	o.countLocked(-int64(n))
	done := 0
	for done < len(o.queue) && n >= len(o.queue[done]) {
		n -= len(o.queue[done])
		done++
	}
	o.gone(o.queue[:done])
	o.queue = o.after(done)
	if len(o.queue) > 0 {
		o.queue[0] = o.queue[0][n:]
		o.poke()
	}
}

func (o *SendQueue) push(frame []byte) {
	o.queue = append(o.queue, frame)
	o.countLocked(int64(len(frame)))
	o.poke()
}

func (o *SendQueue) poke() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *SendQueue) fail(err error) {
	if o.err == nil {
		o.err = err
	}
	o.queue, o.lanes = nil, nil
	o.buffers = nil // a write may still be under way
	o.countLocked(-o.unsent.Load())
	o.poke()
}

// SetOwner counts what waits for p; see [SendQueue.OverLimit]. It is called before the first
// frame.
func (o *SendQueue) SetOwner(p *memlimit.Owner) { o.claim.SetOwner(p) }

// OverLimit reports whether more waits than there is room for. The owner then closes
// the Outbox.
func (o *SendQueue) OverLimit() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.crowded
}

func (o *SendQueue) countLocked(n int64) { o.crowded = !o.claim.Resize(o.unsent.Add(n)) }

// UnsentBytes is how many bytes wait to be written.
func (o *SendQueue) UnsentBytes() int64 { return o.unsent.Load() }

// StalledFor is how long the write under way has made no progress; zero when
// none is.
func (o *SendQueue) StalledFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writing {
		return 0
	}
	return time.Since(o.since)
}

// progress notes that the write under way goes on, with so many bytes.
func (o *SendQueue) progress(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.since = time.Now()
	if o.err == nil {
		o.countLocked(-int64(n))
		o.written += int64(n)
	}
}

// Finish takes no more frames; Run returns when those queued are written.
func (o *SendQueue) Finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.poke()
}

// Close discards what waits; Run returns err as soon as the write under way,
// if any, has ended (close the peer to end it).
func (o *SendQueue) Close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(err)
}

// maxBatch is how many bytes one WriteFrames call gets at most, besides its
// last frame, so that Stalled and Unsent follow large queues closely. A frame of
// up to maxTail, which may be the end of one in parts, goes with the one before.
const (
	maxBatch = 256 << 10
	maxTail  = 1 << 10
)

// Run writes until Finish, Close or the first error of the sink, and returns
// that error; nil after Finish.
func (o *SendQueue) Run() error {
	var batch [][]byte
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && len(o.lanes) == 0 && o.err == nil && !o.closing {
			o.mu.Unlock()
			<-o.wake
			// Whoever is about to send comes first, so that one write takes
			// the frames of all.
			runtime.Gosched()
			o.mu.Lock()
		}
		if o.err != nil || len(o.queue) == 0 && len(o.lanes) == 0 {
			err := o.err
			o.mu.Unlock()
			return err
		}
		o.turn()
		batch = o.take(batch[:0])
		o.writing, o.since = true, time.Now()
		o.mu.Unlock()

		err := o.sink.WriteFrames(batch)

		o.mu.Lock()
		o.writing = false
		if err == nil {
			o.gone(batch)
		}
		left := -o.written
		o.written = 0
		for i, f := range batch {
			left += int64(len(f))
			batch[i] = nil
		}
		o.countLocked(-left)
		if o.err != nil {
			o.countLocked(-o.unsent.Load())
		}
		if err != nil {
			o.fail(err)
		}
		o.mu.Unlock()
	}
}

// take moves the next frames from the queue into batch.
func (o *SendQueue) take(batch [][]byte) [][]byte {
	size, n := 0, 0
	for n < len(o.queue) && size < maxBatch {
		size += len(o.queue[n])
		n++
	}
	if n < len(o.queue) && len(o.queue[n]) <= maxTail {
		n++
	}
	batch = append(batch, o.queue[:n]...)
	o.queue = o.after(n)
	return batch
}

// after is the queue without its first n frames.
func (o *SendQueue) after(n int) [][]byte {
	clear(o.queue[:n]) // or they would stay as long as the queue
	switch {
	case n < len(o.queue):
		return o.queue[n:]
	case cap(o.queue) > 1024:
		return nil // the memory of a burst long gone
	}
	return o.queue[:0]
}
