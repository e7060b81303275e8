package daemon

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"goblin/gateway/state"
)

const startLimit = 20 * time.Second

// Start starts a detached daemon in its own session: exe with args and env (nil means
// this process's). Its standard error goes to p.Log. Start returns when that daemon or
// another one started at the same time answers. If none answers within 20 s or the
// process fails, the error quotes the log. exe must call [Listen] for the same endpoint
// and exit with 0 on a [*RunningError].
//
// The daemon outlives the caller. A goroutine waits for the process while the caller
// lives, so that it leaves no zombie.
func Start(ctx context.Context, p Endpoint, exe string, args []string, env []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("no answer within %s", startLimit))
	defer cancel()
	if _, err := answers(ctx, p); !errors.Is(err, ErrNotRunning) {
		return err
	}
	for {
		again, err := startOnce(ctx, p, exe, args, env)
		if err == nil || !again {
			return err
		}
		if !pause(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// startOnce starts a process and waits for a daemon. again reports that the process found
// another daemon, which has stopped since.
func startOnce(ctx context.Context, p Endpoint, exe string, args, env []string) (again bool, err error) {
	log, from, err := openLog(p)
	if err != nil {
		return false, fmt.Errorf("start the daemon: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(exe, args...)
	cmd.Env = env
	cmd.Dir = root
	cmd.Stderr = log.File()
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("start the daemon: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		pid, answered := answers(ctx, p)
		if answered == nil && pid == cmd.Process.Pid {
			return false, nil
		}
		select {
		case status := <-ended:
			return exitResult(ctx, p, status, from)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				_ = cmd.Process.Kill() // no client can use a daemon that does not answer
			}
			if answered == nil {
				return false, nil
			}
			if !errors.Is(answered, ErrNotRunning) {
				return false, fmt.Errorf("start the daemon: %w: %w%s", context.Cause(ctx), answered, tail(p.Log, from))
			}
			return false, fmt.Errorf("start the daemon: %w%s", context.Cause(ctx), tail(p.Log, from))
		case <-time.After(wait):
		}
	}
}

func exitResult(ctx context.Context, p Endpoint, status error, from int64) (again bool, err error) {
	c, err := Dial(ctx, p, KindControl) // it may have found a daemon with more variables
	switch {
	case err == nil:
		return false, c.Close()
	case !errors.Is(err, ErrNotRunning):
		return false, err
	case status == nil:
		return true, fmt.Errorf("start the daemon: it exited immediately%s", tail(p.Log, from))
	default:
		return false, fmt.Errorf("start the daemon: %w%s", status, tail(p.Log, from))
	}
}

func answers(ctx context.Context, p Endpoint) (pid int, err error) {
	c, err := dial(ctx, p, KindControl)
	if err != nil {
		return 0, err
	}
	return c.pid, c.Close()
}

// DialOrStart is like [Dial], but starts the daemon with [Start] if necessary.
func DialOrStart(ctx context.Context, p Endpoint, kind, exe string, args, env []string) (*Conn, error) {
	for attempt := 0; ; attempt++ {
		c, err := dialAny(ctx, p, kind)
		if !errors.Is(err, ErrNotRunning) || attempt == 3 {
			return c, err
		}
		if err := Start(ctx, p, exe, args, env); err != nil {
			return nil, err
		}
	}
}

// tail returns the last log lines after the offset from.
func tail(path string, from int64) string {
	const most = 2048
	f, _, err := state.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	end, err := f.Seek(0, 2)
	if err != nil {
		return ""
	}
	if from > end {
		from = 0 // rotated since
	}
	text := make([]byte, end-max(from, end-most))
	n, _ := f.ReadAt(text, end-int64(len(text)))
	quoted := strings.ToValidUTF8(strings.TrimSpace(string(text[:n])), "?")
	if quoted == "" {
		return ""
	}
	lines := strings.Split(quoted, "\n")
	return "; end of its log: " + strings.Join(lines[max(0, len(lines)-5):], " | ")
}
