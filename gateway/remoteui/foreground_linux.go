package remoteui

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foreground puts a process group in front of the terminal. A process that is
// not in front itself would be stopped for trying, unless the thread that tries
// blocks the signal; the ways of this process to take signals stay as they are.
func (c *console) foreground(group int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block, old unix.Sigset_t
	const bits = 8 * int(unsafe.Sizeof(block.Val[0]))
	n := int(unix.SIGTTOU) - 1
	block.Val[n/bits] |= 1 << (n % bits)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old) != nil {
		return
	}
	// A terminal that is gone has no front.
	_ = unix.IoctlSetPointerInt(c.fd, unix.TIOCSPGRP, group)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}
