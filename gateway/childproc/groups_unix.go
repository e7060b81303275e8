//go:build unix

package childproc

import (
	"os/exec"
	"syscall"
)

// Group is a process group: a child and its descendants.
type Group struct{ pid int }

// StartGroup starts the child in its own group. If outlives is set, the system doesn't
// kill it with this process.
func StartGroup(cmd *exec.Cmd, outlives bool) (*Group, error) {
	cmd.SysProcAttr = processAttr(outlives)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{cmd.Process.Pid}, nil
}

// Terminate sends SIGTERM to the group.
func (g *Group) Terminate() { _ = syscall.Kill(-g.pid, syscall.SIGTERM) }

// Kill kills the group.
func (g *Group) Kill() { _ = syscall.Kill(-g.pid, syscall.SIGKILL) }
