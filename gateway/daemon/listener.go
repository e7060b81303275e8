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

// RunningError reports that another daemon serves the endpoint.
type RunningError struct {
	PID int // 0 if unknown
}

func (e *RunningError) Error() string {
	if e.PID == 0 {
		return "a daemon for this config is already running"
	}
	return fmt.Sprintf("a daemon for this config is already running (pid %d)", e.PID)
}

// Handlers serve connections, each call in its own goroutine. MCP and Screen own their
// connection until they return, and then it is closed. r returns data that was already
// read, then data from c. Handlers should return soon after ctx ends. The connection is
// closed 5 s later in any case.
type Handlers struct {
	MCP    func(ctx context.Context, c net.Conn, r io.Reader, from Client)
	Screen func(ctx context.Context, c net.Conn, r io.Reader)
	// Control performs an operation, whose result is sent as JSON. ctx ends when the
	// caller disconnects or the daemon stops. An operation that stops the daemon is still
	// answered.
	Control func(ctx context.Context, op string, args json.RawMessage) (any, error)
	Logger  *slog.Logger // nil disables logging
}

// Listener is the daemon's side: locks and sockets.
type Listener struct {
	endpoint Endpoint
	moveMu   sync.Mutex // serializes moves

	mu      sync.Mutex
	sockets []*boundSocket     // the endpoint's own first
	accept  func(*boundSocket) // accepts connections; nil before Serve
	linger  time.Duration
	lingers bool
	busy    func() bool // another reason to stay; nil means none
	timer   *time.Timer // runs while a lingering daemon has no connection
	holding int         // connections that keep the daemon running
	ending  bool
	done    chan struct{}
	conns   map[net.Conn]bool // open connections; true after the handshake
	wg      sync.WaitGroup
	log     *slog.Logger

	hello    time.Duration // see helloLimit
	handlers time.Duration // time to return after their context ends
}

// lockLimit is the maximum wait of Listen for a daemon that stops its servers.
const lockLimit = 15 * time.Second

// Listen makes this process the daemon of an endpoint. It takes the lock, removes the
// socket of a killed daemon and listens. A running daemon, even one that has more
// variables, is a [*RunningError]. Connections wait until Serve runs.
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

// acquireLock takes the lock. Its holder is a running daemon, or decides soon because it
// is starting or stopping.
func acquireLock(ctx context.Context, p Endpoint) (*flock.Flock, error) {
	lock := p.lock()
	for {
		ok, err := lock.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", p.Lock, err)
		}
		// The lock file of a running daemon may have been removed and created again.
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

// runningDaemon returns the daemon that answers at p, or nil and the reason.
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

// Close removes the sockets and releases the locks, so that the next daemon can start.
// Call it after Serve has returned and all exclusive resources are stopped.
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

// firstLinger is the minimum wait for a first connection. The process that started the
// daemon needs time to connect.
const firstLinger = time.Second

// SetLinger makes Serve return d after the last connection of [KindMCP] or [KindScreen]
// closed. Without any connection, it returns at the earliest one second after it began.
// If busy, which may be nil, reports true at that time, the daemon waits again. Call
// SetLinger before Serve.
func (l *Listener) SetLinger(d time.Duration, busy func() bool) {
	l.linger, l.lingers, l.busy = max(d, 0), true, busy
}

// Done is closed when the daemon accepts no more connections.
func (l *Listener) Done() <-chan struct{} { return l.done }

const restoreEvery = 5 * time.Second

// TouchFiles updates the times of the daemon's files. Otherwise cleanup programs could
// remove them, and another daemon could start. It also restores a removed socket, which
// Serve does every 5 s anyway. Call it every few hours.
func (l *Listener) TouchFiles() {
	l.restore()
	l.mu.Lock()
	sockets := l.sockets
	l.mu.Unlock()
	now := time.Now()
	for _, s := range sockets {
		for _, path := range []string{s.endpoint.Lock, s.endpoint.Socket, s.endpoint.Log} {
			_ = os.Chtimes(path, now, now) // the log may not exist
		}
	}
}

// Serve accepts connections until ctx ends or the linger time is over, and then waits for
// the handlers. It returns nil in both cases. The lock is held until Close.
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

func (l *Listener) acceptAll(ctx context.Context, h Handlers) error {
	failed := make(chan error, 1)
	begin := func(s *boundSocket) {
		l.wg.Go(func() {
			if err := l.acceptAt(ctx, s, h); err != nil {
				select {
				case failed <- err:
				default: // the first error is enough
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
			return fmt.Errorf("accept connections: %w", err)
		}
		// Usually out of file descriptors, which is temporary.
		l.log.Warn("cannot accept a connection", "err", err)
		pause(ctx, 50*time.Millisecond)
	}
}

// admit serves c in a goroutine. While the daemon stops, it shortens the handshake.
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
		reason = "timeout before the first line"
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
		_ = writeLine(c, welcome{Goblin: protocol, PID: os.Getpid(), Ending: true, Error: "this daemon is stopping; start a new one"})
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

// prefixedConn is a connection with data that was already read. It supports deadlines.
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

func (l *Listener) refusal(f hello, h Handlers) string {
	switch {
	case f.Kind != KindMCP && f.Kind != KindScreen && f.Kind != KindControl:
		return fmt.Sprintf("unknown kind of connection %q; use %s, %s or %s", f.Kind, KindMCP, KindScreen, KindControl)
	case f.Version != l.endpoint.Version:
		return fmt.Sprintf("the daemon has version %q, the caller %q; use the same version", l.endpoint.Version, f.Version)
	case f.Kind == KindScreen && f.Build != l.endpoint.Build: // newer UIs check this too
		return fmt.Sprintf("the daemon is build %s, the caller is build %s; run \"goblin stop\" and start again", buildName(l.endpoint.Build), buildName(f.Build))
	case f.Kind == KindMCP && h.MCP == nil, f.Kind == KindScreen && h.Screen == nil, f.Kind == KindControl && h.Control == nil:
		return fmt.Sprintf("this daemon does not support %s connections", f.Kind)
	}
	return ""
}

// enter registers a connection, or returns false if the daemon is stopping.
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

// endLocked stops accepting connections. Connections before the handshake are refused,
// and those in the system's queue are closed. Both lead callers to the next daemon.
func (l *Listener) endLocked() {
	if l.ending {
		return
	}
	l.ending = true
	if l.timer != nil {
		l.timer.Stop()
	}
	for _, s := range l.sockets {
		_ = s.close() // the lock is still held
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
