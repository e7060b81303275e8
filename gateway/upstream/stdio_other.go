//go:build !unix

package upstream

import (
	"os"
	"os/exec"
	"syscall"
)

func processAttr() *syscall.SysProcAttr { return nil }

func reap(cmd *exec.Cmd) error { return cmd.Wait() }

// terminateGroup does nothing: there is no signal to ask a process to end.
func terminateGroup(int) {}

// killGroup ends the process. Those that it started are left alone: without
// a job object they cannot be told from others.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
