//go:build unix && !linux

package childproc

import (
	"os/exec"
	"syscall"
)

func processAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Reap waits for the child to exit and kills the rest of its group.
func (g *Group) Reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	g.Kill()
	return err
}
