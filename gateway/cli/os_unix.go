//go:build unix

package cli

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SetNonblock makes a pipe or socket non-blocking. So the runtime can poll it, cancel
// waits, and write without extra threads. Use the returned file from then on.
//
// Regular files, terminals, and pipes that are also in others stay unchanged: the mode
// belongs to the pipe, and other writers must not see it. restore resets the mode. Call
// it when the file is no longer used.
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
		return f, leave // it can't be set, or already was
	}
	file = os.NewFile(uintptr(fd), f.Name())
	kept = append(kept, f, file)
	return file, func() { _ = unix.SetNonblock(fd, false) }
}

// withDescriptor doesn't change the mode, unlike File.Fd.
func withDescriptor(f *os.File, do func(fd int)) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { do(int(fd)) }) // fails only for closed files
	}
}

// kept prevents that files are collected, which would close the process's descriptors.
var kept []*os.File

// IsRunning reports whether a process runs. Zombies don't count.
func IsRunning(pid int) bool {
	if pid <= 0 {
		return false
	}
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	return !zombie(pid)
}

// IsTerminal reports whether f is a terminal, and its number of columns (0 if unknown).
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

// TerminalName returns the file of f's terminal, or "" if unknown.
func TerminalName(f *os.File) (name string) {
	withDescriptor(f, func(fd int) { name = ttyName(fd) })
	return name
}
