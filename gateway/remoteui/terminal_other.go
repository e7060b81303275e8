//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package remoteui

import "os"

func reopen(out *os.File) *os.File { return out }

func flushInput(*os.File) {}

func prepare(*os.File) (undo func()) { return func() {} }

// cellSize returns 0: only the terminal itself reports the size of its cells.
func cellSize(*os.File) (w, h int) { return 0, 0 }
