package host

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
		whoIs = func(*net.UnixConn) (peer, error) { return peer{uid: os.Getuid() + 1, pid: 1, known: true}, nil }
	}
	t.Cleanup(func() { ownerOf, whoIs = fileOwner, peerOf })
}

// Bases replaces /run/user and /tmp during a test.
func Bases(t *testing.T, runtime, temporary string) {
	wasRuntime, wasTemporary := runtimeBase, temporaryBase
	runtimeBase, temporaryBase = runtime, temporary
	t.Cleanup(func() { runtimeBase, temporaryBase = wasRuntime, wasTemporary })
}

const MaxLog = maxLog

// ReadHello reads what a connection says first.
func ReadHello(c net.Conn) (kind string, rest []byte, err error) {
	h, rest, err := readHello(c)
	return h.Kind, rest, err
}

// WaitEnd returns when no process is the host of a place any more, not even
// one that is still stopping its servers; an error when ctx ends first.
func WaitEnd(ctx context.Context, p Place) error {
	lock := flock.New(p.Lock, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	// A host that starts at this very moment tries again.
	if _, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil {
		return errors.Join(fmt.Errorf("wait for the end of the host: %w", err), lock.Close())
	}
	return lock.Unlock()
}
