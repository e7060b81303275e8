package jsonrpc

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/memlimit"
)

// Sink writes frames, each ending with a line break. WriteFrames may block and is not
// called concurrently.
type Sink interface {
	WriteFrames(frames [][]byte) error
}

// TrySink is a Sink that can also write without blocking.
type TrySink interface {
	Sink
	// TryWrite writes as much as possible without blocking and returns the number of
	// bytes.
	TryWrite(frame []byte) (n int, err error)
}

// SendQueue is the queue of frames to a peer. Senders never block; a goroutine in
// [SendQueue.Run] writes the frames. Frames of Send are never dropped and precede those
// of SendLow, whose order is kept per lane.
//
// The queue has no limit. The owner must watch [SendQueue.UnsentBytes],
// [SendQueue.LaneBytes] and [SendQueue.StalledFor] to stop sending or close the peer.
type SendQueue struct {
	sink       Sink
	trySink    TrySink // nil if sink always blocks
	splittable bool    // a write may begin or end within a frame

	mu          sync.Mutex
	queue       [][]byte
	buffers     map[*byte]*Buffer    // of unsent frames, by lastByte
	lanes       []*lane              // with unsent frames, next turn first
	unsent      atomic.Int64         // changed under mu
	written     int64                // already subtracted from unsent for this write
	writing     bool                 // only one write at a time
	progressAt  time.Time            // of the current write
	err         error                // why writing stopped
	reservation memlimit.Reservation // of unsent
	overLimit   bool                 // the reservation was refused
	closing     bool                 // Finish was called
	wake        chan struct{}        // capacity one
}

// NewSendQueue returns a SendQueue for sink. Start Run.
func NewSendQueue(sink Sink) *SendQueue {
	o := &SendQueue{sink: sink, wake: make(chan struct{}, 1)}
	o.trySink, _ = sink.(TrySink)
	return o
}

// Send queues a frame, which must not be modified afterwards. A closed SendQueue drops
// it.
func (o *SendQueue) Send(frame []byte) { o.send(true, nil, frame) }

// SendBuffered queues a frame to be written with the following ones.
func (o *SendQueue) SendBuffered(frame []byte) { o.send(false, nil, frame) }

// SendParts sends a frame in immutable parts. It retains their Buffer, which may be nil,
// until they are written.
func (o *SendQueue) SendParts(parts [][]byte, of *Buffer) { o.send(true, of, parts...) }

// SendPartsBuffered combines SendParts and SendBuffered.
func (o *SendQueue) SendPartsBuffered(parts [][]byte, of *Buffer) { o.send(false, of, parts...) }

func (o *SendQueue) send(now bool, of *Buffer, parts ...[]byte) {
	if len(parts) > 1 && !o.splittable {
		o.send(now, nil, bytes.Join(parts, nil))
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.closing {
		return
	}
	o.flushLanesLocked()
	n := 0
	if now && o.trySink != nil && !o.writing && len(o.queue) == 0 {
		var err error
		if n, err = o.tryWriteParts(parts); err != nil {
			o.failLocked(err)
			return
		}
	}
	before := len(o.queue)
	for _, p := range parts {
		skip := min(n, len(p))
		if n -= skip; skip < len(p) {
			o.pushLocked(p[skip:])
		}
	}
	if of != nil && len(o.queue) > before {
		if o.buffers == nil {
			o.buffers = make(map[*byte]*Buffer)
		}
		of.retain()
		o.buffers[lastByte(parts[len(parts)-1])] = of
	}
}

// lastByte identifies a frame, even after a partial write.
func lastByte(frame []byte) *byte { return &frame[len(frame)-1] }

func (o *SendQueue) releaseLocked(frames [][]byte) {
	if len(o.buffers) == 0 {
		return
	}
	for _, f := range frames {
		if b := o.buffers[lastByte(f)]; b != nil {
			delete(o.buffers, lastByte(f))
			b.Release()
		}
	}
}

func (o *SendQueue) tryWriteParts(parts [][]byte) (int, error) {
	if len(parts) == 1 {
		return o.trySink.TryWrite(parts[0])
	}
	c := chunkPool.Get().(*chunk)
	defer chunkPool.Put(c)
	n := 0
	for _, p := range parts {
		n += copy(c[n:], p)
	}
	return o.trySink.TryWrite(c[:n])
}

func (o *SendQueue) queueUnflushed(frame []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && !o.closing {
		o.flushLanesLocked()
		o.queue = append(o.queue, frame)
		o.countLocked(int64(len(frame)))
	}
}

// flush writes the queue at once if that does not block, or wakes Run.
func (o *SendQueue) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.queue) == 0 || o.err != nil || o.writing:
		return // the current writer continues
	case o.trySink == nil || len(o.lanes) > 0 || o.unsent.Load() > int64(len(chunk{})):
		o.signal()
		return
	case len(o.queue) == 1:
		o.tryWriteLocked(o.queue[0])
		return
	}
	room := chunkPool.Get().(*chunk)
	defer chunkPool.Put(room)
	all := room[:0]
	for _, f := range o.queue {
		all = append(all, f...)
	}
	o.tryWriteLocked(all)
}

// tryWriteLocked writes what it can of the joined queue.
func (o *SendQueue) tryWriteLocked(all []byte) {
	n, err := o.trySink.TryWrite(all)
	if err != nil {
		o.failLocked(err)
		return
	}
	o.countLocked(-int64(n))
	done := 0
	for done < len(o.queue) && n >= len(o.queue[done]) {
		n -= len(o.queue[done])
		done++
	}
	o.releaseLocked(o.queue[:done])
	o.queue = o.dropFirstLocked(done)
	if len(o.queue) > 0 {
		o.queue[0] = o.queue[0][n:]
		o.signal()
	}
}

func (o *SendQueue) pushLocked(frame []byte) {
	o.queue = append(o.queue, frame)
	o.countLocked(int64(len(frame)))
	o.signal()
}

func (o *SendQueue) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *SendQueue) failLocked(err error) {
	if o.err == nil {
		o.err = err
	}
	o.queue, o.lanes = nil, nil
	o.buffers = nil // a write may still use them
	o.countLocked(-o.unsent.Load())
	o.signal()
}

// SetOwner counts unsent bytes in p's share. Call it before the first Send.
func (o *SendQueue) SetOwner(p *memlimit.Owner) { o.reservation.SetOwner(p) }

// OverLimit reports whether the owner's share is exceeded. The owner must then close the
// queue.
func (o *SendQueue) OverLimit() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.overLimit
}

func (o *SendQueue) countLocked(n int64) { o.overLimit = !o.reservation.Resize(o.unsent.Add(n)) }

// UnsentBytes returns the bytes not yet written.
func (o *SendQueue) UnsentBytes() int64 { return o.unsent.Load() }

// StalledFor returns the time without progress of the current write, or 0.
func (o *SendQueue) StalledFor() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writing {
		return 0
	}
	return time.Since(o.progressAt)
}

func (o *SendQueue) addProgress(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.progressAt = time.Now()
	if o.err == nil {
		o.countLocked(-int64(n))
		o.written += int64(n)
	}
}

// Finish refuses further frames. Run returns after the queued ones.
func (o *SendQueue) Finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.signal()
}

// Close drops unsent frames. Run returns err after the current write; close the peer to
// unblock it.
func (o *SendQueue) Close(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failLocked(err)
}

// maxBatch limits a call of WriteFrames, in bytes plus one frame, so that UnsentBytes and
// StalledFor stay exact. A frame of up to maxTail bytes, such as the end of a split one,
// is added.
const (
	maxBatch = 256 << 10
	maxTail  = 1 << 10
)

// Run writes until Finish, Close or an error of the sink. It returns nil after Finish.
func (o *SendQueue) Run() error {
	var batch [][]byte
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && len(o.lanes) == 0 && o.err == nil && !o.closing {
			o.mu.Unlock()
			<-o.wake
			// Let other senders queue first, so that one write takes all.
			runtime.Gosched()
			o.mu.Lock()
		}
		if o.err != nil || len(o.queue) == 0 && len(o.lanes) == 0 {
			err := o.err
			o.mu.Unlock()
			return err
		}
		o.takeTurnLocked()
		batch = o.nextBatchLocked(batch[:0])
		o.writing, o.progressAt = true, time.Now()
		o.mu.Unlock()

		err := o.sink.WriteFrames(batch)

		o.mu.Lock()
		o.writing = false
		if err == nil {
			o.releaseLocked(batch)
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
			o.failLocked(err)
		}
		o.mu.Unlock()
	}
}

func (o *SendQueue) nextBatchLocked(batch [][]byte) [][]byte {
	size, n := 0, 0
	for n < len(o.queue) && size < maxBatch {
		size += len(o.queue[n])
		n++
	}
	if n < len(o.queue) && len(o.queue[n]) <= maxTail {
		n++
	}
	batch = append(batch, o.queue[:n]...)
	o.queue = o.dropFirstLocked(n)
	return batch
}

func (o *SendQueue) dropFirstLocked(n int) [][]byte {
	clear(o.queue[:n]) // do not retain them
	switch {
	case n < len(o.queue):
		return o.queue[n:]
	case cap(o.queue) > 1024:
		return nil // free the memory of a burst
	}
	return o.queue[:0]
}
