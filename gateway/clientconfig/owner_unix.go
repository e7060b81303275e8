//go:build unix

package clientconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// isForeign reports whether a file belongs to another user than this one and root.
func isForeign(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// isOwned reports whether a file is this user's own.
func isOwned(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}
