//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package remoteui

import (
	"os"

	"golang.org/x/sys/unix"
)

func prepare(*os.File) (undo func()) { return func() {} }

// cellSize returns the size of a terminal's cell in pixels, or 0 if unknown.
func cellSize(out *os.File) (w, h int) {
	s, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err != nil || s.Col == 0 || s.Row == 0 {
		return 0, 0
	}
	return int(s.Xpixel) / int(s.Col), int(s.Ypixel) / int(s.Row)
}
