package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"goblin/gateway/state"
)

// RunningError says that another daemon serves the place.
type RunningError struct {
	PID int // 0 when unknown
}

func (e *RunningError) Error() string {
	if e.PID == 0 {
		return "a daemon for this config is already running"
	}
	return fmt.Sprintf("a daemon for this config is already running (pid %d)", e.PID)
}

// Handlers serve connections. MCP and Screen own their connection until they
// return (it is closed afterwards); r gives what was read ahead and then c.
// They should return soon after ctx ends: 5 s later the connection is closed
// under them. Each call has a goroutine of its own.
type Handlers struct {
	MCP    func(ctx context.Context, c net.Conn, r io.Reader, from Client)
	Screen func(ctx context.Context, c net.Conn, r io.Reader)
	// Control performs one operation; its result is sent as JSON. ctx ends
	// when the asker hangs up or the daemon ends; an operation that ends the
	// daemon may still return and is answered.
	Control func(ctx context.Context, op string, args json.RawMessage) (any, error)
	Logger  *slog.Logger // nil: nothing is logged
}

// Listener is the daemon's end: locks and sockets.
type Listener struct {
	endpoint Endpoint
	moveMu   sync.Mutex // held while it moves

	mu      sync.Mutex
	sockets []*boundSocket     // the one of place first
	accept  func(*boundSocket) // begins to take connections; nil before Serve
	linger  time.Duration
	lingers bool
	busy    func() bool // what else holds a lingering daemon; nil for nothing
	timer   *time.Timer // runs while no connection holds a lingering daemon
	holding int         // connections that do
	ending  bool
	done    chan struct{}     // closed when ending
	conns   map[net.Conn]bool // open connections; true once introduced
	wg      sync.WaitGroup
	log     *slog.Logger

	hello    time.Duration // helloLimit
	handlers time.Duration // how long they may go on after the end of their context
}

// lockLimit is how long Listen waits for a daemon that holds the lock but
// takes no connections any more: it is stopping its servers.
const lockLimit = 15 * time.Second

// Listen makes this process the daemon of a place: it takes the lock, removes the socket
// that a killed daemon left, and listens. Another living daemon, also one of the same config
// with the same variables and more, is a [*RunningError]. Connections wait until Serve
// runs.
func Listen(p Endpoint) (*Listener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lockLimit)
	defer cancel()
	for _, q := range supersets(p) {
		if other, _ := runningDaemon(ctx, q); other != nil {
			return nil, other
		}
	}
	lock, err := acquireLock(ctx, p)
	if err != nil {
		return nil, err
	}
	s, err := bind(p, lock)
	if err != nil {
		return nil, err
	}
	return &Listener{
		endpoint: p, sockets: []*boundSocket{s}, done: make(chan struct{}), log: slog.New(slog.DiscardHandler),
		conns: make(map[net.Conn]bool), hello: helloLimit, handlers: 5 * time.Second,
	}, nil
}

// acquireLock takes the lock. Its holder either answers, and is the daemon; or is on
// its way up or down, and decides within moments.
func acquireLock(ctx context.Context, p Endpoint) (*flock.Flock, error) {
	lock := p.lock()
	for {
		ok, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", p.Lock, err)
		}
		// It may be ours because somebody has removed that of a daemon that lives.
		other, err := runningDaemon(ctx, p)
		switch {
		case other != nil:
			return nil, errors.Join(other, lock.Close())
		case ok:
			return lock, nil
		case !errors.Is(err, ErrNotRunning) || !pause(ctx, 20*time.Millisecond):
			return nil, errors.Join(&RunningError{lockHolder(p)}, lock.Close())
		}
	}
}

// runningDaemon asks the socket of a place for its daemon; nil, and why, when nothing
// answers.
func runningDaemon(ctx context.Context, p Endpoint) (*RunningError, error) {
	c, err := dial(ctx, p, KindControl)
	var refused *RefusedError
	switch {
	case err == nil:
		c.Close()
		return &RunningError{c.pid}, nil
	case errors.As(err, &refused):
		return &RunningError{refused.PID}, nil
	default:
		return nil, err
	}
}

// lockHolder is the pid that the holder wrote into the lock file.
func lockHolder(p Endpoint) int {
	text, err := state.Read(p.Lock, maxNote)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return pid
}

// Close removes the sockets, if Serve has not, and gives up the locks, so that
// the next daemon can start. Call it when Serve has returned and everything
// that two daemons must not own at once has been stopped.
func (l *Listener) Close() error {
	l.end()
	l.wg.Wait()
	l.moveMu.Lock()
	defer l.moveMu.Unlock()
	var err error
	for _, s := range l.sockets {
		err = errors.Join(err, s.lock.Unlock())
	}
	return err
}

// firstLinger is how long a lingering daemon waits at least for its first
// connection: the process that started it must find it.
const firstLinger = time.Second

// SetLinger makes the daemon end by itself: d after its last mcp or screen
// connection ended, or (but not within a second) after Serve began and none
// came. Call it before Serve.
// While busy (nil for never) reports true when the time is over, as for
// clients that came by another way, the daemon lingers on.
func (l *Listener) SetLinger(d time.Duration, busy func() bool) {
	l.linger, l.lingers, l.busy = max(d, 0), true, busy
}

// Done is closed when the daemon takes no more connections.
func (l *Listener) Done() <-chan struct{} { return l.done }

// restoreEvery is how often a daemon looks whether its sockets are there.
const restoreEvery = 5 * time.Second

// TouchFiles makes the files of the daemon look used: programs that clear folders of what is
// old would else remove them while it runs, and another daemon start beside it. A socket that
// was removed is made anew, which Serve does by itself within seconds.
// Call it every few hours.
func (l *Listener) TouchFiles() {
	l.restore()
	l.mu.Lock()
	sockets := l.sockets
	l.mu.Unlock()
	now := time.Now()
	for _, s := range sockets {
		for _, path := range []string{s.endpoint.Lock, s.endpoint.Socket, s.endpoint.Log} {
			_ = os.Chtimes(path, now, now) // there may be no log
		}
	}
}

// Serve takes connections until ctx ends or the daemon has lingered for its
// time, both of which return nil, and waits for the handlers. The lock is
// held until Close.
func (l *Listener) Serve(ctx context.Context, h Handlers) error {
	if h.Logger != nil {
		l.log = h.Logger
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, l.end)
	defer stop()
	l.startLinger()
	err := l.acceptAll(ctx, h)
	l.end()
	cancel()
	force := time.AfterFunc(l.handlers, l.closeAll)
	l.wg.Wait()
	force.Stop()
	return err
}

// acceptAll takes connections at all sockets until the first of them fails, or the daemon
// ends.
func (l *Listener) acceptAll(ctx context.Context, h Handlers) error {
	failed := make(chan error, 1)
	begin := func(s *boundSocket) {
		l.wg.Go(func() {
			if err := l.acceptAt(ctx, s, h); err != nil {
				select {
				case failed <- err:
				default: // one is enough
				}
			}
		})
	}
	l.mu.Lock()
	l.accept = begin
	for _, s := range l.sockets {
		begin(s)
	}
	l.mu.Unlock()
	look := time.NewTicker(restoreEvery)
	defer look.Stop()
	for {
		select {
		case err := <-failed:
			return err
		case <-l.done:
			return nil
		case <-look.C:
			l.restore()
		}
	}
}

func (l *Listener) acceptAt(ctx context.Context, s *boundSocket, h Handlers) error {
	for {
		c, err := s.ln.AcceptUnix()
		if err == nil {
			l.admit(ctx, c, h)
			continue
		}
		if l.isEnding() || s.released.Load() {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("take connections: %w", err)
		}
		// Out of descriptors, mostly; that passes.
		l.log.Warn("cannot take a connection", "err", err)
		pause(ctx, 50*time.Millisecond)
	}
}

// admit serves c in a goroutine, unless the daemon has just begun to end.
func (l *Listener) admit(ctx context.Context, c *net.UnixConn, h Handlers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	limit := l.hello
	if l.ending {
		limit = endingLimit
	}
	_ = c.SetDeadline(time.Now().Add(limit))
	l.conns[c] = false
	l.wg.Go(func() {
		defer l.forget(c)
		l.serve(ctx, c, h)
	})
}

func (l *Listener) forget(c net.Conn) {
	c.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

func (l *Listener) serve(ctx context.Context, c *net.UnixConn, h Handlers) {
	who, err := checkPeer(c)
	if err != nil {
		l.log.Warn("connection refused", "err", err)
		return
	}
	first, rest, err := readHello(c)
	if isHangup(err) {
		return
	}
	_ = c.SetDeadline(time.Now().Add(helloLimit))
	var reason string
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		reason = "the first line did not come in time"
	case err != nil:
		reason = err.Error()
	default:
		reason = l.refusal(first, h)
	}
	if reason != "" {
		l.log.Info("connection refused", "kind", first.Kind, "pid", who.pid, "reason", reason)
		_ = writeLine(c, welcome{Goblin: protocol, PID: os.Getpid(), Build: l.endpoint.Build, Error: reason})
		return
	}
	if !l.enter(c, first.Kind) {
		_ = writeLine(c, welcome{Goblin: protocol, PID: os.Getpid(), Ending: true, Error: "this daemon is ending; start the next one"})
		return
	}
	defer l.leave(first.Kind)
	if err := writeLine(c, welcome{Goblin: protocol, OK: true, PID: os.Getpid(), Build: l.endpoint.Build}); err != nil {
		return
	}
	l.handle(ctx, c, rest, first, h)
}

func (l *Listener) handle(ctx context.Context, c *net.UnixConn, rest []byte, first hello, h Handlers) {
	_ = c.SetDeadline(time.Time{})
	var r io.Reader = c
	if len(rest) > 0 {
		r = &prefixedConn{c, rest}
	}
	switch first.Kind {
	case KindMCP:
		h.MCP(ctx, c, r, first.Client)
	case KindScreen:
		h.Screen(ctx, c, r)
	case KindControl:
		if err := control(ctx, c, r, h.Control); err != nil {
			l.log.Info("control connection failed", "err", err)
		}
	}
}

// prefixedConn is a connection of which some bytes have been read already. It still
// takes deadlines.
type prefixedConn struct {
	*net.UnixConn
	rest []byte
}

func (a *prefixedConn) Read(p []byte) (int, error) {
	if len(a.rest) == 0 {
		return a.UnixConn.Read(p)
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// refusal says why this daemon does not serve a connection; "" when it does.
func (l *Listener) refusal(f hello, h Handlers) string {
	switch {
	case f.Kind != KindMCP && f.Kind != KindScreen && f.Kind != KindControl:
		return fmt.Sprintf("connections of kind %q are not known here; kinds are mcp, screen and control", f.Kind)
	case f.Version != l.endpoint.Version:
		return fmt.Sprintf("this daemon is of version %q and you are of %q; the versions must be the same", l.endpoint.Version, f.Version)
	case f.Kind == KindScreen && f.Build != l.endpoint.Build: // a UI that knows builds checks it, too
		return fmt.Sprintf("this daemon runs another build (%s) than yours (%s); run \"goblin stop\" and start again", buildName(l.endpoint.Build), buildName(f.Build))
	case f.Kind == KindMCP && h.MCP == nil, f.Kind == KindScreen && h.Screen == nil, f.Kind == KindControl && h.Control == nil:
		return fmt.Sprintf("no %s in this daemon yet", f.Kind)
	}
	return ""
}

// enter counts a connection in; false when the daemon is ending, so that
// nobody relies on it.
func (l *Listener) enter(c net.Conn, kind string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return false
	}
	l.conns[c] = true
	if kind != KindControl {
		l.holding++
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	return true
}

func (l *Listener) leave(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind != KindControl {
		l.holding--
	}
	if l.timer != nil && !l.ending && l.holding == 0 {
		l.timer.Reset(l.linger)
	}
}

func (l *Listener) startLinger() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.lingers || l.ending {
		return
	}
	l.timer = time.AfterFunc(max(l.linger, firstLinger), func() {
		busy := l.busy != nil && l.busy()
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.holding > 0:
		case busy && !l.ending:
			l.timer.Reset(max(l.linger, firstLinger))
		default:
			l.endLocked()
		}
	})
}

func (l *Listener) isEnding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ending
}

func (l *Listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endLocked()
}

// endLocked stops taking connections. Those that have not introduced
// themselves yet are refused when they do; those in the system's queue see
// the connection closed; both lead to the next daemon.
func (l *Listener) endLocked() {
	if l.ending {
		return
	}
	l.ending = true
	if l.timer != nil {
		l.timer.Stop()
	}
	for _, s := range l.sockets {
		_ = s.close() // we still hold the lock
	}
	for c, introduced := range l.conns {
		if !introduced {
			_ = c.SetDeadline(time.Now().Add(endingLimit))
		}
	}
	close(l.done)
}

func (l *Listener) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Close()
	}
}
