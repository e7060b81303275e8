package childproc

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttr puts the child into a group of its own and lets it die with us, unless it
// outlives us.
func processAttr(outlives bool) *syscall.SysProcAttr {
	if outlives {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Reap waits for the end of the child and kills its group. The group is
// killed while the child is a zombie: until it is reaped, its number, which
// is that of the group, cannot go to another one.
func (g *Group) Reap(cmd *exec.Cmd) error {
	for errors.Is(unix.Waitid(unix.P_PID, g.pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	g.Kill()
	return cmd.Wait()
}
