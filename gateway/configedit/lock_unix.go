//go:build unix

package configedit

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const patience = 5 * time.Second

// lock keeps other processes of this package from writing files in a directory.
func lock(folder string) (release func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil, errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOTSUP): // some network drives have no locks
			return func() { _ = f.Close() }, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			_ = f.Close()
			return nil, err
		case time.Since(began) > patience:
			_ = f.Close()
			return nil, errors.New("another process is still writing there; try again later")
		}
	}
}
