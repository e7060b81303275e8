//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package remoteui

import (
	"os"

	"golang.org/x/sys/unix"
)

func reopen(out *os.File) *os.File { return out }

func flushInput(in *os.File) {
	const read = 1 // FREAD of sys/fcntl.h
	_ = unix.IoctlSetPointerInt(int(in.Fd()), unix.TIOCFLUSH, read)
}
