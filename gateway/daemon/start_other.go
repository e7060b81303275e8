//go:build !unix

package daemon

import "syscall"

// Creation flags of Windows' CreateProcess.
const (
	detachedProcess = 0x00000008
	newProcessGroup = 0x00000200
)

// detached starts a process without a console, in its own group. It stays in the job
// object of its parent, so a parent that closes its job also stops the daemon.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | newProcessGroup}
}

// root keeps the working directory, since there is no single root.
const root = ""
