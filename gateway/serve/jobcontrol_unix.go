//go:build unix

package serve

import (
	"os/signal"
	"syscall"
)

// stayRunning ignores the signals that stop a process for terminal access.
func stayRunning() { signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGTSTP) }
