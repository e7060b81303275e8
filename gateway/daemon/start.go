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

// startLimit is how long a daemon may take until it answers.
const startLimit = 20 * time.Second

// Start starts a detached daemon: exe with args and the environment env (nil:
// ours), in its own session, standard error going to p.Log. It returns as
// soon as that daemon answers, or another one does that was started at the same
// moment and this one has ended, and quotes the log when none answers within
// 20 s or the process fails. exe must come to call [Listen] on the same place;
// it should exit with 0 on a [*RunningError].
//
// The daemon outlives the caller. As long as the caller lives, one goroutine
// waits for the daemon, so that it leaves no zombie.
func Start(ctx context.Context, p Endpoint, exe string, args []string, env []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("it does not answer within %s", startLimit))
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

// startOnce starts one process and waits for a daemon. again means that the
// process ended well without one to be found: it met a daemon that has ended
// since.
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
				_ = cmd.Process.Kill() // nobody can have joined what does not answer
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

// exitResult finds out what the end of the process means.
func exitResult(ctx context.Context, p Endpoint, status error, from int64) (again bool, err error) {
	c, err := Dial(ctx, p, KindControl) // it may have met one with more variables
	switch {
	case err == nil:
		return false, c.Close()
	case !errors.Is(err, ErrNotRunning):
		return false, err
	case status == nil:
		return true, fmt.Errorf("start the daemon: it ended at once%s", tail(p.Log, from))
	default:
		return false, fmt.Errorf("start the daemon: it ended with %w%s", status, tail(p.Log, from))
	}
}

// answers asks for the process that is daemon of p.
func answers(ctx context.Context, p Endpoint) (pid int, err error) {
	c, err := dial(ctx, p, KindControl)
	if err != nil {
		return 0, err
	}
	return c.pid, c.Close()
}

// DialOrStart connects as [Dial] does. It calls [Start] first if no daemon is running.
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

// tail quotes the last lines of what was logged beyond from.
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
	return "; its log ends with: " + strings.Join(lines[max(0, len(lines)-5):], " | ")
}
