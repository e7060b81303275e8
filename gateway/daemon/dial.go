package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// ErrNotRunning reports that no daemon serves an endpoint: it was never started, died or
// is stopping. The caller can start one.
var ErrNotRunning = errors.New("no daemon is running for this config")

// wsaRefused is ECONNREFUSED on Windows.
const wsaRefused = syscall.Errno(10061)

// Dial connects to the daemon at p. It prefers a daemon of the same config with more
// variables. It returns [ErrNotRunning] if there is none. It returns another error for
// another user's socket or a daemon that does not answer within 5 s. For a UI, a daemon
// of another build is a [*BuildError]. The connection is a *net.UnixConn with nothing
// read after the handshake.
func Dial(ctx context.Context, p Endpoint, kind string) (net.Conn, error) {
	c, err := dialAny(ctx, p, kind)
	if err != nil {
		return nil, err
	}
	return c.UnixConn, nil
}

// Conn is a connection to a daemon.
type Conn struct {
	*net.UnixConn
	// Endpoint is the daemon's, which may have more variables than the dialed one.
	Endpoint Endpoint
	// OtherBuild is not nil if the daemon and this process are different builds.
	OtherBuild *BuildError

	pid int
}

func dialAny(ctx context.Context, p Endpoint, kind string) (*Conn, error) {
	for _, q := range supersets(p) {
		if c, err := dial(ctx, q, kind); !errors.Is(err, ErrNotRunning) {
			return c, err
		}
	}
	return dial(ctx, p, kind)
}

func dial(ctx context.Context, p Endpoint, kind string) (*Conn, error) {
	fi, err := os.Lstat(p.Socket)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, ErrNotRunning
	case err != nil:
		return nil, fmt.Errorf("look for the daemon: %w", err)
	case !ownedByUser(fi):
		return nil, fmt.Errorf("the daemon's socket %s belongs to another user", p.Socket)
	}
	c, err := connect(ctx, p)
	if err != nil {
		return nil, err
	}
	w, err := handshake(ctx, c, kind, p)
	if err != nil {
		c.Close()
		return nil, err
	}
	conn := &Conn{UnixConn: c, Endpoint: p, pid: w.PID}
	if w.Build != p.Build {
		conn.OtherBuild = &BuildError{PID: w.PID, Daemon: w.Build, Own: p.Build}
	}
	return conn, nil
}

// CheckAlive returns nil if the daemon at p answers, otherwise the reason.
func CheckAlive(ctx context.Context, p Endpoint) error {
	c, err := dial(ctx, p, KindControl)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return nil
	}
	if err == nil {
		c.Close()
	}
	return err
}

// connect waits only while the queue of a running daemon is full.
func connect(ctx context.Context, p Endpoint) (*net.UnixConn, error) {
	limit, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	for {
		var (
			d    net.Dialer
			late net.Error // the dialer's clock may be ahead of the limit's
		)
		c, err := d.DialContext(limit, "unix", p.Socket)
		switch {
		case err == nil:
			return c.(*net.UnixConn), nil
		case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, wsaRefused), errors.Is(err, os.ErrNotExist):
			return nil, ErrNotRunning
		case errors.Is(err, syscall.EAGAIN) && limit.Err() == nil:
			pause(limit, 10*time.Millisecond)
		case ctx.Err() == nil && (limit.Err() != nil || errors.As(err, &late) && late.Timeout()):
			return nil, errHangs(p)
		default:
			return nil, fmt.Errorf("connect to the daemon: %w", err)
		}
	}
}

func errHangs(p Endpoint) error {
	return fmt.Errorf("the daemon for this config (pid %d) does not answer; if it hangs, kill it", lockHolder(p))
}

func handshake(ctx context.Context, c *net.UnixConn, kind string, p Endpoint) (welcome, error) {
	if _, err := checkPeer(c); err != nil {
		return welcome{}, err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	w, err := sendHello(c, kind, p, time.Now().Add(helloLimit))
	if !stop() {
		return w, ctx.Err()
	}
	switch {
	case err == nil && kind == KindScreen && w.Build != p.Build && !w.Ending:
		return w, &BuildError{PID: w.PID, Daemon: w.Build, Own: p.Build}
	case err == nil && w.OK:
		return w, nil
	case err == nil && w.Ending:
		return w, fmt.Errorf("%w: the previous one (pid %d) is stopping", ErrNotRunning, w.PID)
	case err == nil:
		return w, &RefusedError{PID: w.PID, Reason: w.Error}
	case isHangup(err):
		// The daemon stopped between accepting and answering.
		return w, fmt.Errorf("%w: the previous one disconnected", ErrNotRunning)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return w, errHangs(p)
	default:
		return w, fmt.Errorf("connect to the daemon: %w", err)
	}
}

func isHangup(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// RefusedError is a running daemon's refusal of a connection.
type RefusedError struct {
	PID    int
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the daemon (pid %d) refused the connection: %s", e.PID, e.Reason)
}

// BuildError reports that the daemon and this process are different builds of a
// development version. Only UIs require the same build, since their messages may differ:
// [Dial] returns it for [KindScreen].
type BuildError struct {
	PID    int
	Daemon string // "" if unknown
	Own    string
}

func (e *BuildError) Error() string {
	return fmt.Sprintf("the daemon (pid %d) is build %s, this program is build %s", e.PID, buildName(e.Daemon), buildName(e.Own))
}

func buildName(build string) string { return cmp.Or(build, "unknown") }

// pause reports false if the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
