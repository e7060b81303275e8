//go:build unix

package cli

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SetNonblock puts a pipe or socket into non-blocking mode, so that the runtime
// can wait for it, end a wait, and write without handing over to a thread. It
// returns the file to use from then on. Regular files and terminals stay as
// they are, and so does what others (our own stderr) write to as well, since
// the mode belongs to the pipe and not to the descriptor. restore sets the old
// mode; call it when the file is no longer used.
func SetNonblock(f *os.File, others ...*os.File) (file *os.File, restore func()) {
	leave := func() {}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return f, leave
	}
	for _, o := range others {
		if other, err := o.Stat(); err == nil && os.SameFile(info, other) {
			return f, leave
		}
	}
	fd := -1
	withDescriptor(f, func(n int) {
		flags, err := unix.FcntlInt(uintptr(n), unix.F_GETFL, 0)
		if err == nil && flags&unix.O_NONBLOCK == 0 && unix.SetNonblock(n, true) == nil {
			fd = n
		}
	})
	if fd < 0 {
		return f, leave // it cannot, or it was in that mode from the start
	}
	file = os.NewFile(uintptr(fd), f.Name())
	kept = append(kept, f, file)
	return file, func() { _ = unix.SetNonblock(fd, false) }
}

// withDescriptor calls do with the descriptor of f. Unlike File.Fd it leaves the mode
// alone.
func withDescriptor(f *os.File, do func(fd int)) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { do(int(fd)) }) // fails on closed files only
	}
}

// kept files are never collected: that would close their descriptors, which
// belong to the process.
var kept []*os.File

// IsRunning reports whether a process runs. One that has ended and that its parent
// has not asked about yet does not.
func IsRunning(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	return !zombie(pid)
}

// IsTerminal reports whether f is a terminal, and how many columns it has (0:
// not known).
func IsTerminal(f *os.File) (columns int, ok bool) {
	withDescriptor(f, func(fd int) {
		if _, err := unix.IoctlGetTermios(fd, getTermios); err != nil {
			return
		}
		ok = true
		if size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil {
			columns = int(size.Col)
		}
	})
	return columns, ok
}

// TerminalName is the file of the terminal that f is, "" if that is not known.
func TerminalName(f *os.File) (name string) {
	withDescriptor(f, func(fd int) { name = ttyName(fd) })
	return name
}
