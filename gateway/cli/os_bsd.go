//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package cli

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

const getTermios = unix.TIOCGETA

// zombie can't detect zombies here. A daemon's parent reaps it or has exited.
func zombie(int) bool { return false }

func ttyName(fd int) string {
	var at, other unix.Stat_t
	if unix.Fstat(fd, &at) != nil {
		return ""
	}
	for _, pattern := range []string{"/dev/ttys*", "/dev/tty?*", "/dev/pts/*"} {
		all, _ := filepath.Glob(pattern)
		for _, name := range all {
			if unix.Stat(name, &other) == nil && other.Rdev == at.Rdev {
				return name
			}
		}
	}
	return ""
}
