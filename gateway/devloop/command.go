package devloop

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"goblin/gateway/childproc"
	"goblin/registry"
)

const (
	// stopTime is the time between SIGTERM and SIGKILL.
	stopTime = 2 * time.Second
	// drainTime is the maximum wait for output of processes that left the group.
	drainTime = time.Second
)

// command is a program with its arguments and environment.
type command struct {
	words    []string
	folder   string
	env      []string
	server   string
	children *childproc.Registry // may be nil
}

// runCommand runs a command and returns the end of its output, as plain text. When ctx is
// done, it stops the command's process group and waits for it.
func runCommand(ctx context.Context, c command) (output string, err error) {
	program, err := childproc.LookPath(c.words[0], c.env)
	if err != nil {
		return "", fmt.Errorf("command %q not found; install it or set its full path in build", c.words[0])
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd := &exec.Cmd{Path: program, Args: c.words, Dir: c.folder, Env: c.env, Stdout: w, Stderr: w}
	group, exited, err := c.start(cmd)
	_ = w.Close() // the child has its own
	if err != nil {
		return "", fmt.Errorf("command %q does not start: %w", c.words[0], childproc.StripProgram(err))
	}
	end := &tail{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(end, r) // until the pipe is closed, or its deadline
	}()
	select {
	case err = <-exited:
	case <-ctx.Done():
		group.Terminate()
		kill := time.AfterFunc(stopTime, group.Kill)
		err = cmp.Or(ctx.Err(), <-exited)
		kill.Stop()
	}
	_ = r.SetReadDeadline(time.Now().Add(drainTime))
	<-read
	return end.text(), err
}

// start starts the process group. On Linux the child dies with its starting thread, so
// one goroutine keeps its thread for the child's life.
func (c *command) start(cmd *exec.Cmd) (group *childproc.Group, exited <-chan error, err error) {
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		if group, err = childproc.StartGroup(cmd, c.children.SurvivesExit()); err != nil {
			started <- err
			return
		}
		childproc.Track(group, true)
		forget := c.children.Add(cmd.Process.Pid, c.server, cmd.Path)
		started <- nil
		err = group.Reap(cmd)
		forget()
		childproc.Track(group, false)
		done <- err
	}()
	err = <-started
	return group, done, err
}

// tail keeps the end of what is written, up to twice [registry.MaxBuildOutput].
type tail struct {
	bytes []byte
	cut   bool
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if t.bytes = append(t.bytes, p...); len(t.bytes) > 2*registry.MaxBuildOutput {
		t.bytes = append(t.bytes[:0], t.bytes[len(t.bytes)-registry.MaxBuildOutput:]...)
		t.cut = true
	}
	return n, nil
}

// text returns the output without control sequences. Of a line that was overwritten by
// carriage returns, the last version stays.
func (t *tail) text() string {
	text := string(t.bytes[max(0, len(t.bytes)-registry.MaxBuildOutput):])
	if t.cut || len(text) < len(t.bytes) {
		_, text, _ = strings.Cut(text, "\n") // the first line is not complete
	}
	lines := strings.Split(strings.ToValidUTF8(ansi.Strip(text), "\uFFFD"), "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, "\r")
		lines[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(lines, "\n")
}
