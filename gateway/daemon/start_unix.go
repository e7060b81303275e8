//go:build unix

package daemon

import "syscall"

// detached puts a process into a session of its own, so that neither the
// terminal's signals nor its end reach it.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// root is a folder that never goes away and can be unmounted by nobody.
const root = "/"
