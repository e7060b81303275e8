//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signals are what the kernel tells about the terminal and its jobs. Each
// channel holds one; more of the same would say the same.
type signals struct {
	resized   chan os.Signal
	stopped   chan os.Signal
	continued chan os.Signal
	told      bool // resized is a fact, not a guess
}

func watchSignals() *signals {
	s := &signals{make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1), true}
	signal.Notify(s.resized, syscall.SIGWINCH)
	signal.Notify(s.continued, syscall.SIGCONT)
	s.catch()
	return s
}

// catch catches stops, unless the process was started to ignore them.
func (s *signals) catch() {
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(s.stopped, syscall.SIGTSTP)
	}
}

func (s *signals) close() {
	signal.Stop(s.resized)
	signal.Stop(s.stopped)
	signal.Stop(s.continued)
}

// stop stops pid, which is this process or 0 for its group, as the terminal's
// stop key does, and returns when it goes on. A group that has no shell to
// continue it is not stopped by the kernel: then the time limit ends the wait.
func (s *signals) stop(pid int) {
	signal.Reset(syscall.SIGTSTP)
	defer s.catch()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	_ = unix.Kill(pid, unix.SIGTSTP)
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond):
	}
	select {
	case <-s.continued: // this one is answered for
	default:
	}
}

// stopSelf stops this process only, as it was asked to.
func (s *signals) stopSelf() { s.stop(unix.Getpid()) }
