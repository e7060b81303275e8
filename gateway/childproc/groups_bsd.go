//go:build unix && !linux

package childproc

import (
	"os/exec"
	"syscall"
)

func processAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// ReapAfter waits for the child to exit, calls exited and kills the rest of its group.
func (g *Group) ReapAfter(cmd *exec.Cmd, exited func()) error {
	err := cmd.Wait()
	exited()
	g.Kill()
	return err
}
