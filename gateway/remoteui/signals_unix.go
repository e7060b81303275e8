//go:build unix

package remoteui

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// signals reports changes of the terminal and its jobs. Each channel holds one value,
// because repeated ones are equivalent.
type signals struct {
	resized   chan os.Signal
	stopped   chan os.Signal
	continued chan os.Signal
	exact     bool // resized is a signal, not polled
	steady    bool // the process is never stopped
}

func watchSignals(steady bool) *signals {
	s := &signals{make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1), true, steady}
	signal.Notify(s.resized, syscall.SIGWINCH)
	signal.Notify(s.continued, syscall.SIGCONT)
	s.catch()
	return s
}

// catch does nothing if the process was started to ignore stops.
func (s *signals) catch() {
	if !s.steady && !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(s.stopped, syscall.SIGTSTP)
	}
}

// isForeground returns true if the terminal does not control this process's session.
func isForeground(fd int) bool {
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err != nil || front == unix.Getpgrp()
}

func isGone(fd int) bool {
	_, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	return errors.Is(err, unix.EIO)
}

func (s *signals) close() {
	signal.Stop(s.resized)
	signal.Stop(s.stopped)
	signal.Stop(s.continued)
}

// stop stops the process, and its group if requested, and returns when it continues. It
// uses SIGTTIN, which acts like SIGTSTP: a Go program that has caught a signal never gets
// its default action back. The kernel ignores both in a group that no shell could
// continue; stop then returns after a timeout.
func (s *signals) stop(group bool) {
	signal.Stop(s.stopped)
	defer s.catch()
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if group {
		stopGroup()
	}
	_ = unix.Kill(unix.Getpid(), unix.SIGTTIN)
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond):
	}
	select {
	case <-s.continued: // already handled
	default:
	}
}

// stopGroup stops the rest of the group. It waits for this process's own copy of the
// signal, which would stop it again after it was continued.
func stopGroup() {
	if signal.Ignored(syscall.SIGTSTP) {
		return
	}
	own := make(chan os.Signal, 1)
	signal.Notify(own, syscall.SIGTSTP)
	defer signal.Stop(own)
	_ = unix.Kill(0, unix.SIGTSTP)
	<-own
}
