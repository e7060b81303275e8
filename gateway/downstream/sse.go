package downstream

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

const (
	// keepAlive is the interval of comments on a quiet stream, below the usual timeouts
	// of proxies.
	keepAlive = 20 * time.Second
	// pieceSize is the size of a write in bytes. Each has a deadline, so a slow reader of
	// a large frame does not stall.
	pieceSize = 256 << 10
)

var (
	keepAliveComment = []byte(": keep-alive\n\n")
	eventPrefix      = []byte("event: message\ndata: ")
	errClientLeft    = errors.New("client hung up")
)

// eventStream is an answer as events. Frames may be sent before serve.
type eventStream struct {
	queue *jsonrpc.SendQueue
	w     http.ResponseWriter
	rc    *responseControl
	buf   []byte

	aborted atomic.Bool // cut off

	mu     sync.Mutex
	timer  *time.Timer // for keep-alives
	served bool
}

func newEventStream(of *memoryShare) *eventStream {
	f := &eventStream{}
	f.queue = jsonrpc.NewSendQueue(f)
	f.queue.SetOwner(of.Owner)
	return f
}

// serve writes until the stream is finished, the client leaves or stalls, or the session
// closes.
func (f *eventStream) serve(w http.ResponseWriter, r *http.Request, rc *responseControl, s *Session) {
	f.mu.Lock()
	f.w, f.rc = w, rc
	f.mu.Unlock()
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("Cache-Control", "no-cache")
	head.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if err := f.rc.Flush(); err != nil {
		f.queue.Close(err)
		return
	}
	rc.suspendWrite()
	defer context.AfterFunc(r.Context(), func() { f.queue.Close(errClientLeft) })()
	defer context.AfterFunc(s.ctx, func() { f.close(context.Cause(s.ctx)) })()
	f.mu.Lock()
	f.timer = time.AfterFunc(keepAlive, f.writeKeepAlive)
	f.mu.Unlock()
	err := f.queue.Run()
	f.mu.Lock()
	f.served = true
	f.timer.Stop()
	f.mu.Unlock()
	if err != nil && !errors.Is(err, errClientLeft) {
		s.opt.Logger.Debug("event stream failed", "session", s.id, "error", err)
	}
}

// close still writes the unsent frames, within the deadline, unless there are too many.
func (f *eventStream) close(cause error) {
	if errors.Is(cause, ErrOverflow) || errors.Is(cause, ErrNoMemory) {
		f.abort(cause)
	} else {
		f.queue.Finish()
	}
}

func (f *eventStream) abort(cause error) {
	f.aborted.Store(true)
	f.queue.Close(cause)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rc != nil && !f.served { // the connection may have another request
		stopWriting(f.rc)
	}
}

func (f *eventStream) writeKeepAlive() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.served {
		return
	}
	if f.queue.UnsentBytes() == 0 {
		f.queue.Send(keepAliveComment)
	}
	f.timer.Reset(keepAlive)
}

// WriteFrames implements [jsonrpc.Sink].
func (f *eventStream) WriteFrames(frames [][]byte) error {
	f.buf = f.buf[:0]
	for _, frame := range frames {
		if frame[0] == ':' {
			f.buf = append(f.buf, frame...)
			continue
		}
		f.buf = append(f.buf, eventPrefix...)
		if len(frame) < pieceSize {
			f.buf = append(f.buf, frame...)
			f.buf = append(f.buf, '\n')
			continue
		}
		if err := f.write(f.buf); err != nil {
			return err
		}
		if err := f.write(frame); err != nil {
			return err
		}
		f.buf = append(f.buf[:0], '\n')
	}
	err := f.write(f.buf)
	if cap(f.buf) > 64<<10 {
		f.buf = nil
	}
	err = errors.Join(err, f.rc.Flush())
	if err == nil {
		f.rc.suspendWrite()
	}
	return err
}

func (f *eventStream) write(p []byte) error { return writePieces(f.w, f.rc, p, f.aborted.Load, nil) }

// writePieces writes p with a deadline per piece and reports progress to wrote. To abort,
// make cut return true before calling stopWriting, which would otherwise be undone. cut
// and wrote may be nil.
func writePieces(w http.ResponseWriter, rc *responseControl, p []byte, cut func() bool, wrote func(n int)) error {
	for len(p) > 0 {
		rc.extendWrite()
		if cut != nil && cut() {
			stopWriting(rc) // for data written but not sent
			return memlimit.ErrFull
		}
		n, err := w.Write(p[:min(len(p), pieceSize)])
		if wrote != nil {
			wrote(n)
		}
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// stopWriting may be called in any goroutine.
func stopWriting(rc *responseControl) {
	rc.SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // not every writer can
}

var _ jsonrpc.Sink = (*eventStream)(nil)
