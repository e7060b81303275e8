//go:build unix

package serve

import (
	"os/signal"
	"syscall"
)

// stayRunning makes the process ignore what stops it for a terminal's sake.
func stayRunning() { signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGTSTP) }
