package childproc

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttr makes the child die with this process, unless it outlives it.
func processAttr(outlives bool) *syscall.SysProcAttr {
	if outlives {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ReapAfter waits for the child to exit, calls exited and kills the rest of its group. It
// kills while the child is a zombie: until the child is reaped, its id (and the group's)
// cannot be reused.
func (g *Group) ReapAfter(cmd *exec.Cmd, exited func()) error {
	for errors.Is(unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	exited()
	g.Kill()
	return cmd.Wait()
}
