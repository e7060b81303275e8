package childproc

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

const (
	// stopTime is the time that [Registry.Run] leaves a child between both signals.
	stopTime = 2 * time.Second
	// drainTime is the maximum wait for output of processes that left the group.
	drainTime = time.Second
)

// Start starts a child of a server in its own group and records it. After the exit, it
// calls exited and kills the rest of the group. Then it sends the exit error to done,
// which has room for it. r may be nil.
func (r *Registry) Start(cmd *exec.Cmd, server string, exited func()) (group *Group, done <-chan error, err error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// On Linux the child dies with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		if group, err = StartGroup(cmd, r.SurvivesExit()); err != nil {
			started <- err
			return
		}
		Track(group, true)
		forget := r.Add(cmd.Process.Pid, server, cmd.Path)
		started <- nil
		err = group.ReapAfter(cmd, exited)
		forget()
		Track(group, false)
		ended <- err
	}()
	err = <-started
	return group, ended, err
}

// Run runs a child like [Registry.Start] and returns the last lines of its output, at most
// limit bytes. When ctx is done, it stops the group and returns the error of ctx.
func (r *Registry) Run(ctx context.Context, cmd *exec.Cmd, server string, limit int) (output []byte, err error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = in, in
	group, done, err := r.Start(cmd, server, func() {})
	_ = in.Close() // the child has its own
	if err != nil {
		return nil, fmt.Errorf("command %q does not start: %w", cmd.Args[0], StripProgram(err))
	}
	end := &tail{limit: limit}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(end, out) // until the pipe is closed, or its deadline
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		group.Terminate()
		kill := time.AfterFunc(stopTime, group.Kill)
		err = cmp.Or(ctx.Err(), <-done)
		kill.Stop()
	}
	_ = out.SetReadDeadline(time.Now().Add(drainTime))
	<-read
	return end.lines(), err
}

// tail keeps the end of what is written, up to twice its limit in bytes.
type tail struct {
	limit int
	bytes []byte
	cut   bool
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	if t.bytes = append(t.bytes, p...); len(t.bytes) > 2*t.limit {
		t.bytes = append(t.bytes[:0], t.bytes[len(t.bytes)-t.limit:]...)
		t.cut = true
	}
	return len(p), nil
}

// lines returns the complete lines within the limit, and the last one.
func (t *tail) lines() []byte {
	end := t.bytes[max(0, len(t.bytes)-t.limit):]
	if t.cut || len(end) < len(t.bytes) {
		_, end, _ = bytes.Cut(end, []byte("\n"))
	}
	return end
}
