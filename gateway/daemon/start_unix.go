//go:build unix

package daemon

import "syscall"

// detached puts a process into its own session, which protects it from the terminal's
// signals and hangup.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// root is a directory that always exists and blocks no unmount.
const root = "/"
