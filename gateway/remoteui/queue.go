package remoteui

import "sync"

// queue holds pieces of input in order, up to maxQueued bytes.
type queue struct {
	mu       sync.Mutex
	changed  sync.Cond // something was added, taken or closed
	pieces   [][]byte
	bytes    int
	closed   bool
	dropping bool // put drops
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
	return q
}

// put adds a copy of p and waits for space. It returns false if the queue is closed.
func (q *queue) put(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed && !q.dropping && q.bytes > 0 && q.bytes+len(p) > maxQueued {
		q.changed.Wait()
	}
	if q.closed || q.dropping {
		return !q.closed
	}
	q.pieces = append(q.pieces, append([]byte(nil), p...))
	q.bytes += len(p)
	q.changed.Broadcast()
	return true
}

// read fills p from the first piece and waits for one. It returns false if the queue is
// closed and empty.
func (q *queue) read(p []byte) (int, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.pieces) == 0 {
		if q.closed {
			return 0, false
		}
		q.changed.Wait()
	}
	n := copy(p, q.pieces[0])
	if n == len(q.pieces[0]) {
		q.pieces[0] = nil
		q.pieces = q.pieces[1:]
	} else {
		q.pieces[0] = q.pieces[0][n:]
	}
	q.bytes -= n
	q.changed.Broadcast()
	return n, true
}

// setDropping makes put drop pieces instead of waiting.
func (q *queue) setDropping(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropping = on
	q.changed.Broadcast()
}

// close stops all waiting; queued pieces can still be read.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
