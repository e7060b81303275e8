package jsonrpc

import (
	"io"
	"syscall"
	"time"
)

// Stream is the [Sink] of a byte stream: frames one after another. Where the
// system lets it ask (a pipe or socket in non-blocking mode), a frame is
// written by its sender at once, which saves two switches between goroutines
// per message.
type Stream struct {
	w       io.Writer
	raw     syscall.RawConn // nil when w cannot be written without blocking
	queue   *SendQueue
	scratch []byte
	attempt *attempt // of TryWrite
}

// attempt is one non-blocking write. It is kept, and its function made once,
// because a closure for each message would cost as much as the write's frame.
type attempt struct {
	write func(fd uintptr) bool
	frame []byte
	n     int
	err   error
}

func newAttempt() *attempt {
	a := &attempt{}
	a.write = func(fd uintptr) bool {
		a.n, a.err = writeOnce(fd, a.frame)
		return true
	}
	return a
}

// NewStream returns a SendQueue that writes to w. Only one goroutine writes to w at a time,
// and w is never closed.
func NewStream(w io.Writer) *SendQueue {
	s := &Stream{w: w}
	if nonBlocking(w) {
		if c, ok := w.(syscall.Conn); ok {
			s.raw, _ = c.SyscallConn()
		}
	}
	s.attempt = newAttempt()
	if s.raw == nil {
		s.queue = NewSendQueue(struct{ Sink }{s})
	} else {
		s.queue = NewSendQueue(s)
	}
	s.queue.splittable = true
	return s.queue
}

// nonBlocking reports whether w is in the runtime's poller, which is so just
// when it takes deadlines.
func nonBlocking(w io.Writer) bool {
	d, ok := w.(interface{ SetWriteDeadline(time.Time) error })
	return ok && d.SetWriteDeadline(time.Time{}) == nil
}

// TryWrite implements [TrySink].
func (s *Stream) TryWrite(frame []byte) (n int, err error) {
	a := s.attempt
	a.frame, a.n, a.err = frame, 0, nil
	err = s.raw.Write(a.write)
	a.frame = nil
	if a.err != nil {
		err = a.err
	}
	return max(a.n, 0), err
}

// WriteFrames implements [Sink]. Small frames go out in one write; large ones
// in pieces, so that a slow reader of a large frame counts as progress.
func (s *Stream) WriteFrames(frames [][]byte) error {
	if len(frames) == 1 {
		return s.write(frames[0])
	}
	out := s.scratch[:0]
	for _, f := range frames {
		if len(f) <= maxBatch/4 && len(out)+len(f) <= maxBatch {
			out = append(out, f...)
			continue
		}
		// Not copied, but for its beginning and its end, which go with what is
		// before and behind.
		if len(out) > 0 {
			n := min(len(f), mergeSize)
			out, f = append(out, f[:n]...), f[n:]
			if err := s.write(out); err != nil {
				return err
			}
		}
		n := max(len(f)-mergeSize, 0)
		if err := s.write(f[:n]); err != nil {
			return err
		}
		out = append(out[:0], f[n:]...)
	}
	s.scratch = out[:0]
	return s.write(out)
}

// mergeSize is the number of bytes at either end of a large frame that are written together
// with other frames.
const mergeSize = 8 << 10

func (s *Stream) write(out []byte) error {
	for len(out) > 0 {
		n, err := s.w.Write(out[:min(len(out), maxBatch)])
		if err != nil {
			return err
		}
		out = out[n:]
		s.queue.addProgress(n)
	}
	return nil
}
