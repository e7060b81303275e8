package downstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/memlimit"
)

// byteStream sends all frames through one queue.
type byteStream struct {
	session *Session
	queue   *jsonrpc.SendQueue

	mu       sync.Mutex
	timer    *time.Timer // runs while bytes are unsent
	watching atomic.Bool // changed under mu
}

func (w *byteStream) send(frame []byte) {
	w.queue.Send(frame)
	w.checkLimit()
}

func (w *byteStream) sendLow(server, key string, frame []byte) jsonrpc.QueuePosition {
	m := w.queue.SendLow(server, key, frame)
	w.checkLimit()
	return m
}

func (w *byteStream) request(_ context.Context, frame []byte) error {
	w.send(frame)
	return nil
}

func (w *byteStream) answer(frame []byte, _ int, burst *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition) {
	switch {
	case len(after) > 0 && w.queue.SendAfter(after, frame):
	case burst != nil:
		burst.Send(w.queue, frame)
	case w.session.busy():
		w.queue.SendBuffered(frame)
	default:
		w.queue.Send(frame)
	}
	w.checkLimit()
}

func (w *byteStream) answerParts(frame [][]byte, of *jsonrpc.Buffer, burst *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition) {
	switch {
	case len(after) > 0 && w.queue.SendAfter(after, frame...):
	case burst != nil:
		burst.Flush() // keeps the order
		w.queue.SendParts(frame, of)
	case w.session.busy():
		w.queue.SendPartsBuffered(frame, of)
	default:
		w.queue.SendParts(frame, of)
	}
	w.checkLimit()
}

func (w *byteStream) abandon()                      {}
func (w *byteStream) unsentBytes() int64            { return w.queue.UnsentBytes() }
func (w *byteStream) laneBytes(server string) int64 { return w.queue.LaneBytes(server) }

// checkLimit closes the session if too much is unsent, or watches for progress.
func (w *byteStream) checkLimit() {
	n := w.queue.UnsentBytes()
	switch {
	case n == 0:
		return
	case n > overflowFactor*w.session.opt.Limits.Unsent:
		w.session.Close(ErrOverflow)
		return
	case n > memlimit.FreeSize && w.queue.OverLimit():
		w.session.closeNoMemory(n)
		return
	}
	if w.watching.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.session.ctx.Err() != nil || w.watching.Swap(true) {
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(stallTimeout/12, w.watch)
	} else {
		w.timer.Reset(stallTimeout / 12)
	}
}

func (w *byteStream) watch() {
	w.mu.Lock()
	w.watching.Store(false)
	w.mu.Unlock()
	if w.queue.StalledFor() >= stallTimeout {
		w.session.Close(ErrStalled)
		return
	}
	w.checkLimit()
}

func (w *byteStream) stopWatching() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching.Store(true)
	if w.timer != nil {
		w.timer.Stop()
	}
}

// ServeStream runs one session with one message per line until r or ctx ends or the
// session closes. In the first two cases it answers requests in flight within
// Options.Drain and returns nil. Otherwise it returns the reason.
//
// It closes Options.Closers, but not r and w. It unblocks calls by deadlines on r and w
// if possible. A call blocked for another second is left behind without further effect.
func ServeStream(ctx context.Context, o Options, transport string, r io.Reader, w io.Writer) error {
	s := newSession(ctx, o.withDefaults(), transport)
	out := &byteStream{session: s, queue: jsonrpc.NewStream(w)}
	out.queue.SetOwner(s.share.Owner)
	defer s.share.Release()
	s.sender = out

	written := make(chan struct{})
	go func() {
		defer close(written)
		if err := out.queue.Run(); err != nil {
			s.Close(fmt.Errorf("write to client: %w", err))
		}
	}()
	s.logPanic("opened", func() { s.opt.Handler.SessionOpened(s) })
	in := jsonrpc.NewReader(r, s.opt.Limits.Frame).CheckWhileReading(s.opt.Limits.Depth)
	in.SetOwner(s.share.Owner, func() { s.Close(ErrSilent) })
	read := make(chan error, 1)
	go func() { read <- s.read(in, out) }()

	var err error
	reason := ErrSessionEnded
	ended := false // the reader has returned
	select {
	case err = <-read:
		ended = true
	case <-ctx.Done():
		reason = ErrShutdown
	case <-s.ctx.Done():
		reason = context.Cause(s.ctx)
	}
	s.stop(reason)
	if !ended {
		interruptRead(r)
	}
	s.drain(out, written)
	if cause := context.Cause(s.ctx); err == nil && cause != nil && !errors.Is(cause, errDrained) {
		err = cause
	}

	s.cancel(reason)
	out.stopWatching()
	out.queue.Close(reason)
	select {
	case <-written:
	default:
		interruptWrite(w)
	}
	for _, c := range s.opt.Closers {
		c.Close() //nolint:errcheck // nothing is left to lose
	}
	grace, stopGrace := context.WithTimeout(context.Background(), flushGrace)
	defer stopGrace()
	if !ended {
		select {
		case <-read: //nolint:errcheck // why the session ends is known already
		case <-grace.Done():
		}
	}
	select {
	case <-written:
	case <-grace.Done():
	}
	s.finish(reason)
	if err != nil {
		s.opt.Logger.Debug("session closed", "session", s.id, "transport", transport, "error", err)
	}
	return err
}

var errDrained = errors.New("time for draining is over")

// drain waits for answers and their delivery, within Options.Drain.
func (s *Session) drain(out *byteStream, written <-chan struct{}) {
	limit := time.AfterFunc(s.opt.Drain, func() { s.Close(errDrained) })
	defer limit.Stop()
	select {
	case <-s.idle:
	case <-s.ctx.Done():
	}
	out.queue.Finish()
	select {
	case <-written:
		return
	case <-s.ctx.Done():
	}
	cause := context.Cause(s.ctx)
	if errors.Is(cause, ErrOverflow) || errors.Is(cause, ErrNoMemory) || errors.Is(cause, ErrStalled) || errors.Is(cause, ErrSilent) || errors.Is(cause, errDrained) {
		return
	}
	// still deliver queued frames
	select {
	case <-written:
	case <-time.After(flushGrace):
	}
}

func interruptRead(r io.Reader) {
	if d, ok := r.(interface{ SetReadDeadline(time.Time) error }); ok {
		d.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // tried only
	}
}

func interruptWrite(w io.Writer) {
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		d.SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // tried only
	}
}

// read returns nil at the end of in or of the session.
func (s *Session) read(in *jsonrpc.Reader, out *byteStream) error {
	parse := in.Parse
	burst := new(jsonrpc.WriteBatch)
	defer burst.Flush()
	for {
		if !in.Ready() {
			burst.Flush()
		}
		if !s.hasRoom() {
			burst.Flush()
			if !s.awaitRoom(s.ctx.Done()) {
				return nil
			}
		}
		frame, err := in.Read()
		if s.stopped() {
			return nil
		}
		if err == nil {
			s.receive(frame, parse, out, burst)
			continue
		}
		var long *jsonrpc.TooLongError
		switch {
		case errors.As(err, &long):
			s.answerTooLong(long, out)
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("read from client: %w", err)
		}
	}
}

func (s *Session) stopped() bool { return s.closing.Load() || s.ctx.Err() != nil }

func (s *Session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inFlight) > 0
}

// hasRoom reports whether few enough bytes are unsent to handle another request.
func (s *Session) hasRoom() bool { return s.sender.unsentBytes() <= s.opt.Limits.Unsent }

// awaitRoom returns false if done was closed or the session stopped.
func (s *Session) awaitRoom(done <-chan struct{}) bool {
	if s.hasRoom() {
		return true
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !s.hasRoom() {
		select {
		case <-done:
			return false
		case <-tick.C:
			if s.stopped() {
				return false
			}
		}
	}
	return true
}

func (s *Session) receive(frame []byte, parse func([]byte) (jsonrpc.Message, error), out *byteStream, burst *jsonrpc.WriteBatch) {
	m, err := parse(frame)
	if err == nil && s.initializeDone != nil && m.Method != "ping" {
		burst.Flush()
		s.awaitInitialize()
	}
	switch {
	case isBatch(err):
		burst.Flush()
		wrong := rejectBatch(frame, s.Protocol(), s.opt.Limits.Depth)
		for _, answer := range wrong {
			out.send(jsonrpc.OneLine(answer))
		}
		if wrong == nil {
			s.serveBatch(frame, out, s.share, nil)
		}
	case err != nil:
		if answer := s.malformedReply(err); answer != nil {
			out.send(answer)
		}
	case m.IsRequest():
		modern, fault := s.statelessRequest(&m)
		var x *Request
		if fault == nil {
			x, fault = s.begin(&m, modern, out, s.share, nil)
		}
		switch {
		case fault != nil:
			out.send(fault.Frame(m.ID))
		case m.Method == "initialize" && modern == nil:
			// The answer to initialize precedes all other answers except those to ping.
			burst.Flush()
			answered := make(chan struct{})
			s.initializeDone = answered
			go func() {
				defer close(answered)
				x.run()
			}()
		default:
			x.serve(burst)
		}
	case m.IsNotification():
		s.handleNotification(m.Method, m.Params)
	default:
		s.handleResponse(&m)
	}
}

func (s *Session) awaitInitialize() {
	select {
	case <-s.initializeDone:
		s.initializeDone = nil
	case <-s.stopping:
	case <-s.ctx.Done():
	}
}

func (s *Session) answerTooLong(e *jsonrpc.TooLongError, out *byteStream) {
	s.opt.Logger.Warn("message from client discarded", "session", s.id, "error", e)
	if e.IsResponse() && s.calls.Resolve(e.ID(), jsonrpc.Reply{}, e) {
		return
	}
	out.send((&jsonrpc.ParseError{Code: jsonrpc.CodeInvalidRequest, Cause: e}).Reply().Frame(e.ID()))
}
