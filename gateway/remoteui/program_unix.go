//go:build unix

package remoteui

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const defaultEditor = "vi"

// run runs a shell command on a file in its own process group. So only it receives keys
// like Ctrl-C. It handles stopping and continuing like a shell.
func (c *console) run(ctx context.Context, command, file string) error {
	cmd := exec.Command("sh", "-c", script(command), "sh", file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.in, c.out, c.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	own := unix.Getpgrp()
	if front, err := unix.IoctlGetInt(c.fd, unix.TIOCGPGRP); err == nil && front == own {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, c.fd
		defer c.foreground(own)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	pid := cmd.Process.Pid
	defer func() { _ = cmd.Process.Release() }() // waited for below
	done := endWith(ctx, func() {
		_ = unix.Kill(-pid, unix.SIGHUP)
		_ = unix.Kill(-pid, unix.SIGCONT)
	}, func() { _ = unix.Kill(-pid, unix.SIGKILL) })
	defer done()
	for {
		var ws unix.WaitStatus
		_, err := unix.Wait4(pid, &ws, unix.WUNTRACED, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case ws.Stopped():
			c.stopWith(pid, own, cmd.SysProcAttr.Foreground)
		case ws.Signaled():
			return signalError{unix.SignalName(ws.Signal())}
		case ws.ExitStatus() != 0:
			return exitError{ws.ExitStatus()}
		default:
			return nil
		}
	}
}

// script returns a shell script that runs a command on $1. A Ctrl-C for the program must
// not kill the shell. For simple commands the program replaces the shell; otherwise the
// shell catches the signal.
func script(command string) string {
	if strings.Trim(command, wordLetters) == "" {
		return "exec " + command + ` "$1"`
	}
	return "trap : INT QUIT; " + command + ` "$1"`
}

const wordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./+-"

// stopWith stops this process's job after the user stopped the program in the foreground,
// and later continues the program.
func (c *console) stopWith(pid, own int, front bool) {
	if !front || c.steady {
		_ = unix.Kill(-pid, unix.SIGCONT)
		return
	}
	c.foreground(own)
	c.restore()
	c.jobs.stop(true)
	c.foreground(pid)
	_ = unix.Kill(-pid, unix.SIGCONT)
}
