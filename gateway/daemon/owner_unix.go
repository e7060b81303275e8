//go:build unix

package daemon

import (
	"os"
	"syscall"
)

func fileOwner(fi os.FileInfo) (uid int, ok bool) {
	if st, is := fi.Sys().(*syscall.Stat_t); is {
		return int(st.Uid), true
	}
	return 0, false
}
