//go:build e2e || faults || soak || interop || conformance || agents

package e2e

import "golang.org/x/sys/unix"

// unread returns the number of bytes that were typed in a terminal and not read.
func unread(tty string) int {
	fd, err := unix.Open(tty, unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0 // it is closed
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}
