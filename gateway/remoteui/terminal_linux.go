package remoteui

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// reopen opens a terminal again, so that its writes can have a deadline without making
// the shell's own descriptor non-blocking. It returns out if that fails, as for another
// user's terminal.
func reopen(out *os.File) *os.File {
	f, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(out.Fd())), os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return out
	}
	if !isSame(f, out) {
		_ = f.Close()
		return out
	}
	return f
}

// isSame reports whether two files are the same terminal. It avoids f.Fd, which would
// make f blocking.
func isSame(f, out *os.File) bool {
	a, aErr := f.Stat()
	b, bErr := out.Stat()
	return aErr == nil && bErr == nil && os.SameFile(a, b) && term.IsTerminal(int(out.Fd()))
}

func flushInput(in *os.File) { _ = unix.IoctlSetInt(int(in.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
