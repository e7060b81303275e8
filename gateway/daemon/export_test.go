package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// Foreign makes files and peers look like another user's during a test.
func Foreign(t *testing.T, files, peers bool) {
	if files {
		ownerOf = func(os.FileInfo) (int, bool) { return os.Getuid() + 1, true }
	}
	if peers {
		peerOfConn = func(*net.UnixConn) (peer, error) { return peer{uid: os.Getuid() + 1, pid: 1, known: true}, nil }
	}
	t.Cleanup(func() { ownerOf, peerOfConn = fileOwner, peerOf })
}

// Bases replaces /run/user and /tmp during a test.
func Bases(t *testing.T, runtime, temporary string) {
	wasRuntime, wasTemporary := runtimeBase, temporaryBase
	runtimeBase, temporaryBase = runtime, temporary
	t.Cleanup(func() { runtimeBase, temporaryBase = wasRuntime, wasTemporary })
}

const MaxLog = maxLog

// AnswerLimit sets the time limit for answers of daemons during a test.
func AnswerLimit(t *testing.T, d time.Duration) {
	was := helloLimit
	helloLimit = d
	t.Cleanup(func() { helloLimit = was })
}

// SetHello sets the time limit for the first line of new connections.
func (l *Listener) SetHello(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hello = d
}

// SetHandlers sets the time that handlers may run after their context is cancelled.
func (l *Listener) SetHandlers(d time.Duration) { l.handlers = d }

// Connections returns the number of open connections, with or without a first line.
func (l *Listener) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// ReadHello reads the first line of a connection.
func ReadHello(c net.Conn) (kind string, rest []byte, err error) {
	h, rest, err := readHello(c)
	return h.Kind, rest, err
}

// WaitEnd waits until no process is the daemon of an endpoint, including one that still
// stops its servers. It returns an error if ctx ends first.
func WaitEnd(ctx context.Context, p Endpoint) error {
	lock := flock.New(p.Lock, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	// A daemon that starts at this moment tries again.
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return errors.Join(fmt.Errorf("wait for the daemon to exit: %w", err), lock.Close())
	}
	return lock.Unlock()
}
