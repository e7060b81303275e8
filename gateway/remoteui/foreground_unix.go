//go:build unix && !linux

package remoteui

import (
	"os/exec"
	"syscall"
)

// foreground moves a process group to the foreground. The kernel would stop a background
// process for that. A child can do it between fork and exec, while signals are blocked.
// The shell exists: it started the program in question.
func (c *console) foreground(group int) {
	cmd := exec.Command("sh", "-c", ":")
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: c.fd, Pgid: group}
	_ = cmd.Run()
}
