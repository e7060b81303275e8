//go:build unix

package downstream

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// hasPendingConn reports whether somebody waits to be accepted now.
func hasPendingConn(l net.Listener) (found bool) {
	c, ok := l.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { // of a closed one nobody is
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		found = err == nil && n > 0
	})
	return found
}
