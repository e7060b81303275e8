//go:build unix && !linux

package remoteui

import (
	"os/exec"
	"syscall"
)

// foreground puts a process group in front of the terminal. A process that is
// not in front itself would be stopped for trying; a child does it between
// fork and exec, when its signals are blocked, and the ways of this process to
// take signals stay as they are. The shell is there: the program in question
// was started by it.
func (c *console) foreground(group int) {
	cmd := exec.Command("sh", "-c", ":")
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: c.fd, Pgid: group}
	_ = cmd.Run()
}
