package watcher

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"goblin/gateway/childproc"
)

// killDelay is the time between asking a command to stop and killing it.
const killDelay = 2 * time.Second

// Exec runs a line in the shell: sh, or cmd.exe on Windows. It waits until the command
// exits. input is its stdin, and $GOBLIN_URI the URI. The end of ctx stops the command
// with all its children.
func Exec(ctx context.Context, line, uri string, input []byte, out, errs io.Writer) error {
	cmd := exec.Command("sh", "-c", line)
	if runtime.GOOS == "windows" {
		cmd = exec.Command("cmd.exe", "/c", line)
	}
	cmd.Env = append(os.Environ(), "GOBLIN_URI="+uri)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, errs
	cmd.WaitDelay = killDelay // for pipes that children keep open
	group, err := childproc.StartGroup(cmd, false)
	if err != nil {
		return fmt.Errorf("start the command: %w", err)
	}
	childproc.Track(group, true)
	defer childproc.Track(group, false)
	var failure error
	ended := make(chan struct{})
	go func() {
		failure = cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return failure
	case <-ctx.Done():
	}
	group.Terminate()
	select {
	case <-ended:
		group.Kill() // children that ignore the first signal
	case <-time.After(killDelay):
		group.Kill()
		<-ended // at the latest after cmd.WaitDelay
	}
	return ctx.Err()
}
