//go:build unix

package logs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// open fails for a pipe without a reader instead of waiting for one.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	switch {
	case errors.Is(err, unix.ENXIO):
		return nil, fmt.Errorf("open %s: it is a pipe without a reader, or a socket; start the reader or remove the file", path)
	case err != nil:
		return nil, err
	}
	// Children inherit it as standard error and expect blocking writes.
	if err := unix.SetNonblock(int(f.Fd()), false); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
