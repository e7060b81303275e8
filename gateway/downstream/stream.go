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

// wire is the carrier of a byte stream: one outbox for everything. What was sent
// first arrives first, but for notifications of others than the request that is
// answered.
type wire struct {
	s   *Session
	out *jsonrpc.SendQueue

	mu    sync.Mutex
	timer *time.Timer // runs while bytes wait
	armed atomic.Bool // changed under mu
}

func (w *wire) send(frame []byte) {
	w.out.Send(frame)
	w.check()
}

func (w *wire) chat(server, key string, frame []byte) jsonrpc.QueuePosition {
	m := w.out.SendLow(server, key, frame)
	w.check()
	return m
}

func (w *wire) request(_ context.Context, frame []byte) error {
	w.send(frame)
	return nil
}

func (w *wire) answer(frame []byte, _ int, burst *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition) {
	switch {
	case len(after) > 0 && w.out.SendAfter(after, frame):
	case burst != nil:
		burst.Send(w.out, frame)
	case w.s.busy():
		w.out.SendBuffered(frame)
	default:
		w.out.Send(frame)
	}
	w.check()
}

// answerParts is answer for a frame in parts.
func (w *wire) answerParts(frame [][]byte, of *jsonrpc.Buffer, burst *jsonrpc.WriteBatch, after []jsonrpc.QueuePosition) {
	switch {
	case len(after) > 0 && w.out.SendAfter(after, frame...):
	case burst != nil:
		burst.Flush() // it is no more than that which it waits for
		w.out.SendParts(frame, of)
	case w.s.busy():
		w.out.SendPartsBuffered(frame, of)
	default:
		w.out.SendParts(frame, of)
	}
	w.check()
}

func (w *wire) abandon()                    {}
func (w *wire) unsent() int64               { return w.out.UnsentBytes() }
func (w *wire) waiting(server string) int64 { return w.out.LaneBytes(server) }

// check gives the client up when too much waits, and starts to watch for
// progress when anything does.
func (w *wire) check() {
	n := w.out.UnsentBytes()
	switch {
	case n == 0:
		return
	case n > overflowFactor*w.s.opt.Limits.Unsent:
		w.s.Close(ErrOverflow)
		return
	case n > memlimit.FreeSize && w.out.OverLimit():
		w.s.crowd(n)
		return
	}
	if w.armed.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s.ctx.Err() != nil || w.armed.Swap(true) {
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(stallTimeout/12, w.watch)
	} else {
		w.timer.Reset(stallTimeout / 12)
	}
}

func (w *wire) watch() {
	w.mu.Lock()
	w.armed.Store(false)
	w.mu.Unlock()
	if w.out.StalledFor() >= stallTimeout {
		w.s.Close(ErrStalled)
		return
	}
	w.check()
}

func (w *wire) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed.Store(true)
	if w.timer != nil {
		w.timer.Stop()
	}
}

// ServeStream runs one session over a byte stream, one message per line, and
// returns when it is over: r ended, ctx ended, or the session was closed.
// After the first two, requests in flight are answered and the answers
// delivered as long as Options.Drain allows, and the result is nil; otherwise
// it says why the session ended.
//
// r and w are not closed; Options.Closers are. Read and write deadlines are
// set on r and w, where they have them, to end a blocked call. One that
// cannot be ended is left behind after a second: it ends with its stream and
// touches nothing any more.
func ServeStream(ctx context.Context, o Options, transport string, r io.Reader, w io.Writer) error {
	s := newSession(ctx, o.withDefaults(), transport)
	out := &wire{s: s, out: jsonrpc.NewStream(w)}
	out.out.SetOwner(s.share.Owner)
	defer s.share.Release()
	s.base = out

	written := make(chan struct{})
	go func() {
		defer close(written)
		if err := out.out.Run(); err != nil {
			s.Close(fmt.Errorf("write to client: %w", err))
		}
	}()
	s.guard("opened", func() { s.opt.Handler.SessionOpened(s) })
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
	out.disarm()
	out.out.Close(reason)
	select {
	case <-written:
	default:
		interruptWrite(w)
	}
	for _, c := range s.opt.Closers {
		c.Close() //nolint:errcheck // nothing is left to lose
	}
	grace := time.After(flushGrace)
	for waiting := true; waiting && (!ended || written != nil); {
		select {
		case <-read: //nolint:errcheck // why the session ends is known already
			ended, read = true, nil
		case <-written:
			written = nil
		case <-grace:
			waiting = false
		}
	}
	s.finish(reason)
	if err != nil {
		s.opt.Logger.Debug("session ended", "session", s.id, "transport", transport, "error", err)
	}
	return err
}

var errDrained = errors.New("time to finish is over")

// drain waits until the requests in flight are answered and the answers are
// written, or the time for that is over, or the session is closed.
func (s *Session) drain(out *wire, written <-chan struct{}) {
	limit := time.AfterFunc(s.opt.Drain, func() { s.Close(errDrained) })
	defer limit.Stop()
	select {
	case <-s.idle:
	case <-s.ctx.Done():
	}
	out.out.Finish()
	select {
	case <-written:
		return
	case <-s.ctx.Done():
	}
	cause := context.Cause(s.ctx)
	if errors.Is(cause, ErrOverflow) || errors.Is(cause, ErrNoMemory) || errors.Is(cause, ErrStalled) || errors.Is(cause, ErrSilent) || errors.Is(cause, errDrained) {
		return
	}
	// Closed by the handler: a client that reads still gets what is queued.
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

// read handles messages until in or the session ends; nil at the end of in.
func (s *Session) read(in *jsonrpc.Reader, out *wire) error {
	parse := in.Parse
	burst := new(jsonrpc.WriteBatch)
	defer burst.Flush()
	for {
		if !in.Ready() {
			burst.Flush()
		}
		if !s.roomy() {
			burst.Flush()
			if !s.room(s.ctx.Done()) {
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
			s.tooLong(long, out)
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("read from client: %w", err)
		}
	}
}

func (s *Session) stopped() bool { return s.closing.Load() || s.ctx.Err() != nil }

// busy reports whether further requests are under way besides one that is
// being answered.
func (s *Session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inFlight) > 0
}

// roomy reports whether the client has read enough to be asked for more.
func (s *Session) roomy() bool { return s.base.unsent() <= s.opt.Limits.Unsent }

// room waits until the client has read enough to be asked for more; false
// when done was closed first.
func (s *Session) room(done <-chan struct{}) bool {
	if s.roomy() {
		return true
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for !s.roomy() {
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

func (s *Session) receive(frame []byte, parse func([]byte) (jsonrpc.Message, error), out *wire, burst *jsonrpc.WriteBatch) {
	m, err := parse(frame)
	if err == nil && s.greeting != nil && m.Method != "ping" {
		burst.Flush()
		s.awaitGreeting()
	}
	switch {
	case isBatch(err):
		burst.Flush()
		wrong := wrongBatch(frame, s.Protocol(), s.opt.Limits.Depth)
		for _, answer := range wrong {
			out.send(jsonrpc.OneLine(answer))
		}
		if wrong == nil {
			s.batched(frame, out, s.share, nil)
		}
	case err != nil:
		if answer := s.malformed(err); answer != nil {
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
			// Its answer comes before those of all others but ping, which is read meanwhile.
			burst.Flush()
			answered := make(chan struct{})
			s.greeting = answered
			go func() {
				defer close(answered)
				x.run()
			}()
		default:
			x.serve(burst)
		}
	case m.IsNotification():
		s.notified(m.Method, m.Params)
	default:
		s.responded(&m)
	}
}

// awaitGreeting waits until initialize was answered or the session stops.
func (s *Session) awaitGreeting() {
	select {
	case <-s.greeting:
		s.greeting = nil
	case <-s.stopping:
	case <-s.ctx.Done():
	}
}

// tooLong answers a message that was thrown away.
func (s *Session) tooLong(e *jsonrpc.TooLongError, out *wire) {
	s.opt.Logger.Warn("message from client was thrown away", "session", s.id, "error", e)
	if e.IsResponse() && s.calls.Resolve(e.ID(), jsonrpc.Reply{}, e) {
		return
	}
	out.send((&jsonrpc.ParseError{Code: jsonrpc.CodeInvalidRequest, Cause: e}).Reply().Frame(e.ID()))
}
