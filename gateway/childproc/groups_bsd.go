//go:build unix && !linux

package childproc

import (
	"os/exec"
	"syscall"
)

// processAttr puts the child into a group of its own.
func processAttr(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Reap waits for the end of the child and kills what is left of its group.
func (g *Group) Reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	g.Kill()
	return err
}
