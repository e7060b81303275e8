//go:build unix

package daemon

import (
	"os"
	"syscall"
)

// fileOwner is the user id that owns a file.
func fileOwner(fi os.FileInfo) (uid int, ok bool) {
	if st, is := fi.Sys().(*syscall.Stat_t); is {
		return int(st.Uid), true
	}
	return 0, false
}
