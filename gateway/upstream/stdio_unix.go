//go:build unix

package upstream

import "syscall"

// terminateGroup asks all processes of the group to end.
func terminateGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGTERM) }

// killGroup ends all processes of the group.
func killGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }
