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

// AnswerLimit is how long daemons may take to answer, during a test.
func AnswerLimit(t *testing.T, d time.Duration) {
	was := helloLimit
	helloLimit = d
	t.Cleanup(func() { helloLimit = was })
}

// SetHello sets how long connections have for their first line, from now on.
func (l *Listener) SetHello(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hello = d
}

// SetHandlers sets how long handlers may go on after the end of their context.
func (l *Listener) SetHandlers(d time.Duration) { l.handlers = d }

// Connections is how many are open, introduced or not.
func (l *Listener) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// ReadHello reads what a connection says first.
func ReadHello(c net.Conn) (kind string, rest []byte, err error) {
	h, rest, err := readHello(c)
	return h.Kind, rest, err
}

// WaitEnd returns when no process is the daemon of a place any more, not even
// one that is still stopping its servers; an error when ctx ends first.
func WaitEnd(ctx context.Context, p Endpoint) error {
	lock := flock.New(p.Lock, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	// A daemon that starts at this very moment tries again.
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return errors.Join(fmt.Errorf("wait for the end of the daemon: %w", err), lock.Close())
	}
	return lock.Unlock()
}
