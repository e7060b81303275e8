//go:build unix

package main

import (
	"os"
	"syscall"
)

func init() {
	modes["stopped"] = mode{on: faults{"fault": func(*server, *message) { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }}}
}
