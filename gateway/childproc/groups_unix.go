//go:build unix

package childproc

import (
	"os/exec"
	"syscall"
)

// Group is a child with all that it started: a process group.
type Group struct{ pid int }

// StartGroup starts the child as the leader of a group of its own. One that outlives this
// process is not killed with it, where the system would do that.
func StartGroup(cmd *exec.Cmd, outlives bool) (*Group, error) {
	cmd.SysProcAttr = processAttr(outlives)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Group{cmd.Process.Pid}, nil
}

// Terminate asks all processes of the group to end.
func (g *Group) Terminate() { _ = syscall.Kill(-g.pid, syscall.SIGTERM) }

// Kill ends all processes of the group.
func (g *Group) Kill() { _ = syscall.Kill(-g.pid, syscall.SIGKILL) }
