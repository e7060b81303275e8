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

const lockWait = 5 * time.Second

// Lock excludes other processes that lock path, until unlock. It waits up to 5 s for
// another holder. It creates the directory with mode 0700. The system unlocks when the
// process dies.
func Lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); ctx.Err() != nil {
		return nil, errors.Join(fmt.Errorf("another process holds the lock %s; stop it and try again", lock.Path()), lock.Close())
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", lock.Path(), err), lock.Close())
	}
	return func() { _ = lock.Unlock() }, nil // the process's exit unlocks it too
}
