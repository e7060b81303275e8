//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// group is a child with all that it started: a process group.
type group struct{ pid int }

// startGroup starts the child as the leader of a group of its own.
func startGroup(cmd *exec.Cmd) (*group, error) {
	cmd.SysProcAttr = processAttr()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &group{cmd.Process.Pid}, nil
}

// terminate asks all processes of the group to end.
func (g *group) terminate() { _ = syscall.Kill(-g.pid, syscall.SIGTERM) }

// kill ends all processes of the group.
func (g *group) kill() { _ = syscall.Kill(-g.pid, syscall.SIGKILL) }
