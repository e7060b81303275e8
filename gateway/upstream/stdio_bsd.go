//go:build unix && !linux

package upstream

import (
	"os/exec"
	"syscall"
)

// processAttr puts the child into a group of its own.
func processAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap waits for the end of the child and kills what is left of its group.
func (g *group) reap(cmd *exec.Cmd) error {
	err := cmd.Wait()
	g.kill()
	return err
}
