package jsonrpc

import (
	"io"
	"syscall"
	"time"
)

// Stream is the [Sink] of a byte stream. If it is non-blocking, senders write frames
// directly, which saves two goroutine switches.
type Stream struct {
	w       io.Writer
	raw     syscall.RawConn // nil if writes to w can block
	queue   *SendQueue
	scratch []byte
	attempt *attempt // of TryWrite
}

// attempt is a non-blocking write, reused because a closure per message would cost an
// allocation.
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

// NewStream returns a SendQueue for w. Only one goroutine at a time writes to w, which is
// never closed.
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

// nonBlocking reports whether w is in the runtime's poller, since only then it has
// deadlines.
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

// WriteFrames implements [Sink]. It joins small frames and splits large ones, so that a
// slow peer shows progress.
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
		// Large frames are not copied, except their ends, which are joined with other
		// frames.
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

// mergeSize is the size of these ends, in bytes.
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
