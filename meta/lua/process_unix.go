//go:build unix && !linux

package lua

import "syscall"

// attributes starts the process in its own group, protected from signals of a terminal.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
