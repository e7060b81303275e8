//go:build unix

package jsonrpc

import (
	"errors"
	"syscall"
)

// writeOnce writes what it can without blocking.
func writeOnce(fd uintptr, p []byte) (int, error) {
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
