package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockWait bounds the wait for another process that writes a file.
const lockWait = 5 * time.Second

// Lock keeps other processes from changing the file at path, of which they ask by Lock,
// too, until unlock. It makes the folder, private to the user. A process that dies unlocks.
func Lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); ctx.Err() != nil {
		return nil, errors.Join(fmt.Errorf("another process holds %s; end it, and try again", lock.Path()), lock.Close())
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", lock.Path(), err), lock.Close())
	}
	return func() { _ = lock.Unlock() }, nil // it ends with the process at the latest
}
