package jsonrpc

import (
	"errors"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readNow and writeOnce are raw system calls, of which the Go scheduler is not notified.
// Its notification wakes the runtime's monitor thread after each idle time. That costs a
// third of the CPU time of a single call. A raw call that blocks would stop all goroutines.
// RWF_NOWAIT prevents that, even if another process made the pipe blocking.

// readNow reads what is available. It returns -1 if nothing is, and
// errors.ErrUnsupported if the file or the kernel lacks such reads.
func readNow(fd uintptr, p []byte) (int, error) {
	n, err := transferNow(unix.SYS_PREADV2, fd, p)
	if errors.Is(err, unix.EAGAIN) {
		return -1, nil
	}
	return n, err
}

// writeOnce writes what it can without blocking.
func writeOnce(fd uintptr, p []byte) (int, error) {
	n, err := transferNow(unix.SYS_PWRITEV2, fd, p)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return 0, nil
	case errors.Is(err, errors.ErrUnsupported):
		return writeWatched(fd, p)
	}
	return n, err
}

// transferNow transfers at the current position, as pipes and sockets require.
func transferNow(trap, fd uintptr, p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	v := unix.Iovec{Base: &p[0]}
	v.SetLen(len(p))
	const current = ^uintptr(0)
	for {
		n, _, errno := syscall.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&v)), 1, current, current, unix.RWF_NOWAIT)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL, unix.EPERM: // EPERM: by a sandbox
			return 0, errors.ErrUnsupported
		default:
			return 0, errno
		}
	}
}
