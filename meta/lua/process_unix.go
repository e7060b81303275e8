//go:build unix && !linux

package lua

import "syscall"

// attributes put the process into a group of its own, which keeps a terminal's
// signals from it.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
