//go:build unix

package lua

import (
	"os"
	"syscall"
)

// killGroup kills all processes of the group that a process leads.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
