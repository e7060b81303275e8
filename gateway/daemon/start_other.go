//go:build !unix

package daemon

import "syscall"

// Creation flags of Windows' CreateProcess.
const (
	detachedProcess = 0x00000008
	newProcessGroup = 0x00000200
)

// detached gives a process no console and a group of its own. It remains in
// its starter's job object, so a starter that ends its job ends the daemon too.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | newProcessGroup}
}

// root leaves the process in its starter's folder; there is no one root.
const root = ""
