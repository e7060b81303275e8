//go:build unix

package downstream

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

func hasPendingConn(l net.Listener) (found bool) {
	c, ok := l.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) { // fails on a closed listener, without connections
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		found = err == nil && n > 0
	})
	return found
}
