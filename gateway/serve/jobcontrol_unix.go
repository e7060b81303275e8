//go:build unix

package serve

import (
	"os/signal"
	"syscall"
)

func stayRunning() { signal.Ignore(syscall.SIGTTOU, syscall.SIGTTIN, syscall.SIGTSTP) }
