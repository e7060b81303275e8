package lua

import "syscall"

// attributes put the process into a group of its own, which keeps a terminal's
// signals from it, and let it die with us.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
