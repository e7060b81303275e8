//go:build unix

package jsonrpc

import (
	"errors"
	"syscall"
)

// writeWatched is writeOnce for descriptors in non-blocking mode.
func writeWatched(fd uintptr, p []byte) (int, error) {
	for {
		n, err := syscall.Write(int(fd), p)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		default:
			return 0, err
		}
	}
}
