package remoteui

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// foreground moves a process group to the foreground. The kernel would stop a background
// process for that, unless the thread blocks the signal.
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
	// Fails if the terminal was closed.
	_ = unix.IoctlSetPointerInt(c.fd, unix.TIOCSPGRP, group)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}
