//go:build unix

package recorder

import (
	"os"
	"syscall"
)

func ownerOf(info os.FileInfo) (uid int, ok bool) {
	if st, is := info.Sys().(*syscall.Stat_t); is {
		return int(st.Uid), true
	}
	return 0, false
}
