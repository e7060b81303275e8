package instance

import (
	"io"
	"sync"
)

// feed is what a Client sends, as a stream for the session to read. Pushing
// never blocks; what waits is bounded by the requests and answers that their
// senders wait for.
type feed struct {
	wake chan struct{} // capacity one

	mu    sync.Mutex
	queue [][]byte
	ended bool // nothing is taken any more
}

func newFeed() *feed { return &feed{wake: make(chan struct{}, 1)} }

// push queues a frame, which belongs to the feed from then on.
func (f *feed) push(frame []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.queue = append(f.queue, frame)
		f.poke()
	}
}

func (f *feed) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// finish ends the stream behind what is queued.
func (f *feed) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.poke()
}

// Close ends the stream at once.
func (f *feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.queue = true, nil
	f.poke()
	return nil
}

// Read implements io.Reader, for one goroutine.
func (f *feed) Read(p []byte) (int, error) {
	for {
		f.mu.Lock()
		if len(f.queue) > 0 {
			n := copy(p, f.queue[0])
			if f.queue[0] = f.queue[0][n:]; len(f.queue[0]) == 0 {
				f.queue[0] = nil
				f.queue = f.queue[1:]
			}
			f.mu.Unlock()
			return n, nil
		}
		ended := f.ended
		f.mu.Unlock()
		if ended {
			return 0, io.EOF
		}
		<-f.wake
	}
}
