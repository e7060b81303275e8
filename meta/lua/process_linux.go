package lua

import "syscall"

// attributes starts the process in its own group, protected from signals of a terminal,
// and makes it die with Goblin.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
