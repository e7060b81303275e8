// Package bridge carries one stdio client's messages to the daemon and reconnects after
// crashes.
//
// It owns the client's end of that connection, the queues in both directions
// and what the next daemon has to be told of the session. It must not know how a
// daemon is found or started, nor what requests mean, but for the few methods
// whose effect a client takes for granted for the life of its session
// (initialize, the log level, subscriptions): it repeats them to the next daemon.
//
// [Run] blocks until the session is over and waits for the goroutines that it
// started; the exceptions are written at [Options]. Nothing is dropped but the
// answers to repeated requests and a client's answers to a daemon that has died.
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

// Options are the two ends of a bridge, and its bounds.
type Options struct {
	// Connect reaches the daemon, or starts it and reaches it. It is called
	// again when the daemon has died.
	Connect func(ctx context.Context) (net.Conn, error)
	// Alive tells whether the daemon that was reached last lives, if it is not nil: one that
	// hangs while requests wait is left ([mcpclient.WatchLiveness]).
	Alive func(ctx context.Context) error
	// In and Out are the client. A blocked read or write of them can be ended
	// only if they take deadlines, as pipes in non-blocking mode and sockets
	// do; on others it stays behind in its goroutine when Run returns.
	// Writes are also faster to those that do.
	In     io.Reader
	Out    io.Writer
	Frame  int64        // most bytes of a message from the client; 0: 128 MiB
	Logger *slog.Logger // nil: nothing is logged

	limits *limits // nil: defaultLimits
}

// limits are the times of a bridge.
type limits struct {
	start    time.Duration // to find or start the first daemon
	drain    time.Duration // for answers, after the client has hung up
	flush    time.Duration // for the client to take the last of them
	end      time.Duration // for everything after the client has hung up
	takeover time.Duration // to find the next daemon, before requests are refused
}

var defaultLimits = limits{start: 20 * time.Second, drain: 5 * time.Second, flush: 3 * time.Second, end: 9 * time.Second, takeover: 10 * time.Second}

const (
	settled      = 5 * time.Second // a daemon that lived this long is no part of a crash loop
	maxDelay     = 2 * time.Second // between attempts to find a daemon
	maxUnsent    = 8 << 20         // bytes waiting in one direction, before its reader stops
	maxChatter   = 256 << 10       // of that, before notifications wait: in the daemon, answers overtake them
	maxQuestions = 4096            // open questions of a daemon that are remembered
	defaultFrame = 128 << 20
)

// bridge carries one client's session from daemon to daemon. The client's reader,
// the reader of the current link and the loop in serve share the fields under
// mu; frames are sent outside it where one goroutine alone decides the order.
type bridge struct {
	o   Options
	lim limits
	log *slog.Logger
	out *jsonrpc.SendQueue // to the client
	ns  string             // begins the ids that the bridge makes; no client's do

	hard context.Context // ends when nothing more is waited for
	soft chan struct{}   // closed when the client will send nothing more
	wake chan struct{}   // capacity one: a frame came while no daemon was there

	mu        sync.Mutex
	closed    bool  // frames of the client are passed on no more
	link      *link // nil while there is no daemon that can take frames
	gen       int   // of the newest link
	waiting   []queuedFrame
	size      int64 // bytes in waiting
	open      map[string]call
	seq       int // of calls and subscriptions: repeats go in the old order
	questions map[string]struct{}
	session   session

	delay time.Duration // before the next attempt; belongs to serve
}

// queuedFrame is a frame of the client that waits for a daemon.
type queuedFrame struct {
	envelope
	frame []byte
}

// call is a client's request that a daemon has got. It counts, since clients
// in error use an id twice.
type call struct {
	n      int
	seq    int
	method string
	params []byte // only of requests that change what the bridge remembers
	frame  []byte // only of initialize, which is sent again
}

// Run carries the messages of one client to the daemon and back, until the
// client hangs up (its answers are then waited for, 5 s at most) or ctx ends,
// which is the same. It returns nil then, and an error when the first daemon
// cannot be reached or the client takes no more output; requests that came
// are answered before. It returns within 10 s of either end, even if the
// client reads nothing.
//
// Bytes are passed on as they are. When the daemon dies, requests it has not
// answeredLocked get errors, the session is repeated to the next daemon, and what the
// client sends meanwhile waits for that in order.
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
		b.out.Close(errors.New("the client reads nothing"))
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

// interrupt ends the reading from the client, where that is possible.
func (b *bridge) interrupt() bool {
	d, ok := b.o.In.(interface{ SetReadDeadline(time.Time) error })
	return ok && d.SetReadDeadline(time.Now()) == nil
}

// within reports whether done comes first.
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

// pause waits, and reports false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool { return !within(ctx.Done(), d, nil) }

// watch turns the client's end, or that of ctx, into the end of the bridge.
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
		cancel(nil) // nothing to wait for: do not start a daemon for nobody
		return
	}
	if pause(b.hard, b.lim.end) {
		cancel(nil)
	}
}

// readClient passes the client's frames on until it hangs up.
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
				if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) && b.hard.Err() == nil { // interrupt has set one
					b.log.Info("the client's input ended", "err", err)
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

// full reports whether the daemon, or the one that is awaited, owes so much
// reading that the client has to wait.
func (b *bridge) full(l *link) bool {
	if l != nil {
		return l.out.UnsentBytes() > maxUnsent
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.link == nil && b.size > maxUnsent
}

// fromClient passes a frame to the daemon, which it returns, or keeps it.
func (b *bridge) fromClient(frame []byte, burst *jsonrpc.WriteBatch) *link {
	e := scan(frame)
	b.mu.Lock()
	l := b.link
	if b.closed {
		defer b.mu.Unlock()
		for e := range messages(e, frame) {
			if e.request() {
				why := connectionError(fmt.Sprintf("the connection to Goblin is ending, so %s was not carried out; it is safe to send it again", e.method))
				b.out.Send(b.failureLocked(e.id, e.method, why))
			}
		}
		return nil
	}
	if e.answer {
		// Only the daemon that asked gets it, if it lives.
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
	// If the daemon died since, the frame is lost and its request, noted above,
	// is answered with the others.
	burst.Send(l.out, frame)
	return l
}

// tooLong answers in the place of a message that is not passed on.
func (b *bridge) tooLong(long *jsonrpc.TooLongError) {
	why := jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", long.Error())
	b.log.Warn("the client's message was dropped", "err", long)
	if long.IsResponse() && long.ID() != nil {
		b.fromClient(bytes.TrimSpace(why.Frame(long.ID())), nil)
		return
	}
	b.out.Send(why.Frame(long.ID()))
}
