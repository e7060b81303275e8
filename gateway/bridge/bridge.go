// Package bridge carries one stdio client's messages to the daemon and reconnects after
// crashes.
//
// It repeats the client's initialize, log level and subscriptions to the next daemon. It
// does not depend on how a daemon is found or started, or on the meaning of other
// requests.
//
// [Run] blocks until the session ends and waits for its goroutines, except those
// described at [Options]. It drops only responses to repeated requests and a client's
// responses to a dead daemon.
package bridge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

// Options are the two ends of a bridge and its limits.
type Options struct {
	// Connect connects to the daemon and starts it if necessary. The bridge calls it
	// again after the daemon died.
	Connect func(ctx context.Context) (net.Conn, error)
	// Alive, if not nil, reports whether the last daemon is alive. The bridge disconnects
	// from a daemon that hangs while requests wait ([mcpclient.WatchLiveness]).
	Alive func(ctx context.Context) error
	// In and Out connect the client. Blocked reads and writes can be cancelled only if
	// they support deadlines, as sockets and non-blocking pipes do. Otherwise their
	// goroutines outlive Run. Writes with deadlines are also faster.
	In     io.Reader
	Out    io.Writer
	Frame  int64        // max. bytes of a client's message; 0: 128 MiB
	Logger *slog.Logger // nil disables logging

	limits *limits // nil means defaultLimits
}

type limits struct {
	start    time.Duration // to find or start the first daemon
	drain    time.Duration // for responses, after the client hung up
	flush    time.Duration // for the client to read them
	end      time.Duration // for everything after the client hung up
	takeover time.Duration // to find the next daemon before refusing requests
}

var defaultLimits = limits{start: 20 * time.Second, drain: 5 * time.Second, flush: 3 * time.Second, end: 9 * time.Second, takeover: 10 * time.Second}

const (
	settled      = 5 * time.Second // lifetime above which a daemon is not in a crash loop
	maxDelay     = 2 * time.Second // between attempts to find a daemon
	maxUnsent    = 8 << 20         // bytes waiting in one direction before reading stops
	maxChatter   = 256 << 10       // the same for notifications, so that responses can overtake them in the daemon
	maxQuestions = 4096            // tracked requests of a daemon
	defaultFrame = 128 << 20
)

// bridge carries one client's session. mu protects fields shared by the client's reader,
// the current link's reader and serve. A frame is sent without mu where one goroutine
// decides the order.
type bridge struct {
	o   Options
	lim limits
	log *slog.Logger
	out *jsonrpc.SendQueue // to the client
	ns  string             // unique prefix of the bridge's own ids

	hard context.Context // ends when nothing is left to wait for
	soft chan struct{}   // closed when the client sends nothing more
	wake chan struct{}   // capacity 1: a frame arrived without a daemon

	mu        sync.Mutex
	closed    bool  // no more client frames are passed on
	link      *link // nil without a ready daemon
	gen       int   // of the newest link
	waiting   []queuedFrame
	size      int64 // bytes in waiting
	open      map[string]call
	seq       int // of calls and subscriptions, for repeating them in order
	questions map[string]struct{}
	session   session

	delay time.Duration // before the next attempt; only for serve
}

type queuedFrame struct {
	envelope
	frame []byte
}

// call is a client's request in a daemon. n counts its uses, since faulty clients reuse
// ids.
type call struct {
	n      int
	seq    int
	method string
	params []byte // only for requests that change the session
	frame  []byte // only for initialize, which is sent again
}

// Run relays messages between a client and the daemon until the client hangs up or ctx
// ends. It then waits up to 5 s for responses and returns nil. It returns an error if the
// first daemon cannot be reached or the client accepts no output. Before that, it answers
// all requests. Run returns within 10 s after the end, even if the client does not read.
//
// Messages are passed on unchanged. If the daemon dies, its open requests get errors. The
// bridge repeats the session to the next daemon, and new messages wait for that in order.
func Run(ctx context.Context, o Options) error {
	if o.Frame <= 0 {
		o.Frame = defaultFrame
	}
	b := &bridge{
		o: o, lim: defaultLimits, log: o.Logger, out: jsonrpc.NewStream(o.Out), ns: namespace(),
		soft: make(chan struct{}), wake: make(chan struct{}, 1),
		gen: -1, open: make(map[string]call), questions: make(map[string]struct{}),
		session: session{subs: make(map[string]*subscription)},
	}
	if o.limits != nil {
		b.lim = *o.limits
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	return b.run(ctx)
}

func namespace() string {
	var r [6]byte
	_, _ = rand.Read(r[:]) // never fails
	return "goblin-bridge-" + hex.EncodeToString(r[:])
}

func (b *bridge) run(ctx context.Context) error {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	b.hard = hard
	written, read, watched := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		if err := b.out.Run(); err != nil {
			cancel(fmt.Errorf("write to the client: %w", err))
		}
	}()
	go func() {
		defer close(read)
		b.readClient()
	}()
	go func() {
		defer close(watched)
		b.watch(ctx, read, cancel)
	}()

	err := b.serve()

	b.out.Finish()
	if !within(written, b.lim.flush, hard.Done()) {
		b.out.Close(errors.New("the client does not read"))
		if d, ok := b.o.Out.(interface{ SetWriteDeadline(time.Time) error }); ok && d.SetWriteDeadline(time.Now()) == nil {
			<-written
		}
	}
	cancel(nil)
	<-watched
	if b.interrupt() {
		<-read
	}
	return err
}

func (b *bridge) interrupt() bool {
	d, ok := b.o.In.(interface{ SetReadDeadline(time.Time) error })
	return ok && d.SetReadDeadline(time.Now()) == nil
}

// within reports whether done closes before limit and end.
func within(done <-chan struct{}, limit time.Duration, end <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
	case <-end:
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func pause(ctx context.Context, d time.Duration) bool { return !within(ctx.Done(), d, nil) }

func (b *bridge) watch(ctx context.Context, read <-chan struct{}, cancel context.CancelCauseFunc) {
	select {
	case <-read:
	case <-ctx.Done():
		b.interrupt()
	case <-b.hard.Done():
	}
	b.mu.Lock()
	b.closed = true
	idle := b.link == nil && len(b.waiting) == 0
	b.mu.Unlock()
	close(b.soft)
	if idle {
		cancel(nil) // nothing to wait for: start no daemon
		return
	}
	if pause(b.hard, b.lim.end) {
		cancel(nil)
	}
}

func (b *bridge) readClient() {
	r := jsonrpc.NewReader(b.o.In, b.o.Frame)
	var burst jsonrpc.WriteBatch
	defer burst.Flush()
	for {
		if !r.Ready() {
			burst.Flush()
		}
		frame, err := r.Read()
		if err != nil {
			var long *jsonrpc.TooLongError
			if !errors.As(err, &long) {
				if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) && b.hard.Err() == nil { // the deadline is set by interrupt
					b.log.Info("client input failed", "err", err)
				}
				return
			}
			b.tooLong(long)
			continue
		}
		l := b.fromClient(frame, &burst)
		for b.full(l) {
			burst.Flush()
			if !pause(b.hard, 2*time.Millisecond) {
				return
			}
			b.mu.Lock()
			l = b.link
			b.mu.Unlock()
		}
	}
}

// full reports whether a daemon, or the queue for the next one, has too much unread data.
func (b *bridge) full(l *link) bool {
	if l != nil {
		return l.out.UnsentBytes() > maxUnsent
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.link == nil && b.size > maxUnsent
}

func (b *bridge) fromClient(frame []byte, burst *jsonrpc.WriteBatch) *link {
	e := scan(frame)
	b.mu.Lock()
	l := b.link
	if b.closed {
		defer b.mu.Unlock()
		for e := range messages(e, frame) {
			if e.request() {
				why := connectionError(fmt.Sprintf("the connection to Goblin is closing; %s did not run, so it is safe to retry", e.method))
				b.out.Send(b.failureLocked(e.id, e.method, why))
			}
		}
		return nil
	}
	if e.answer {
		// A response goes only to the daemon that asked.
		frame = b.toDaemonLocked(l, e, frame)
		b.mu.Unlock()
		if frame != nil {
			burst.Send(l.out, append(frame, '\n'))
		}
		return l
	}
	if rawjson.IsArray(frame) {
		if frame = b.batchToDaemonLocked(l, frame); frame == nil {
			b.mu.Unlock()
			return l
		}
	}
	frame = append(frame, '\n')
	if l == nil {
		b.waiting = append(b.waiting, queuedFrame{e, frame})
		b.size += int64(len(frame))
		b.mu.Unlock()
		select {
		case b.wake <- struct{}{}:
		default:
		}
		return nil
	}
	b.noteAllLocked(e, frame)
	b.mu.Unlock()
	// If the daemon has died, the frame is lost, and its request is answered together
	// with the other open ones.
	burst.Send(l.out, frame)
	return l
}

// tooLong answers a message that exceeds the limit.
func (b *bridge) tooLong(long *jsonrpc.TooLongError) {
	why := jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", long.Error())
	b.log.Warn("dropped a message of the client", "err", long)
	if long.IsResponse() && long.ID() != nil {
		b.fromClient(bytes.TrimSpace(why.Frame(long.ID())), nil)
		return
	}
	b.out.Send(why.Frame(long.ID()))
}
