package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"goblin/gateway/atomicfile"
	"goblin/gateway/state"
	"goblin/registry/termtext"
)

const (
	// commandTimeout limits a command, which may ask the user.
	commandTimeout = 30 * time.Second
	// commandWaitDelay limits the wait for child processes of an exited command.
	commandWaitDelay = 500 * time.Millisecond
	maxStderr        = 4 << 10 // bytes of its stderr
)

// The kinds of references.
const (
	KindKeyring = "keyring"
	KindFile    = "file"
	KindCommand = "cmd"
)

// Resolve returns the value of a reference: the name of a secret, the absolute path of a
// file, or a program with arguments. The program runs in dir without a shell. The error
// states the problem and, after "; ", the fix.
func (s *Store) Resolve(ctx context.Context, kind string, words []string, dir string) (value string, err error) {
	switch kind {
	case KindKeyring:
		value, err = s.getChecked(words[0])
	case KindFile:
		value, err = readFile(words[0])
	case KindCommand:
		value, err = output(ctx, words, dir)
	default:
		err = fmt.Errorf("has an unknown kind")
	}
	switch {
	case err != nil:
		return "", err
	case value == "":
		return "", errors.New("is empty")
	case strings.ContainsRune(value, 0):
		return "", errors.New("contains a NUL character")
	}
	return value, nil
}

func (s *Store) getChecked(name string) (string, error) {
	value, err := s.Get(name)
	set := termtext.Goblin("secret set", name)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", fmt.Errorf("is not set; run: %s", set)
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w; unlock the keyring or run: %s", err, set)
	}
	return value, nil
}

func readFile(path string) (string, error) {
	const fix = "; check the path and the file's permissions"
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w%s", atomicfile.StripPath(err), fix)
	case !info.Mode().IsRegular(): // opening a pipe would block
		return "", errors.New("is not a file" + fix)
	}
	f, _, err := state.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w%s", err, fix)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxValue+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w%s", atomicfile.StripPath(err), fix)
	case len(text) > MaxValue:
		return "", fmt.Errorf("is longer than %d KiB, the maximum for a secret", MaxValue>>10)
	}
	return TrimLineBreak(text), nil
}

// TrimLineBreak returns a text without its final line break.
func TrimLineBreak(text []byte) string {
	return string(bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")))
}

func output(ctx context.Context, words []string, dir string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, commandTimeout, fmt.Errorf("does not finish within %v; run it in a terminal to see what it waits for", commandTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, commandWaitDelay
	out, stderr := &boundedBuffer{left: MaxValue, full: cancel}, &boundedBuffer{left: maxStderr}
	cmd.Stdout, cmd.Stderr = out, stderr
	err := cmd.Run()
	switch {
	case out.over:
		return "", fmt.Errorf("prints more than %d KiB, the maximum for a secret", MaxValue>>10)
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return "", errors.New("does not finish within startup_timeout; run it in a terminal to see what it waits for")
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("is not found in PATH; install it or set its full path")
	case err != nil:
		why := truncate(stderr.buffer.String())
		if value := strings.TrimSpace(out.buffer.String()); value != "" && strings.Contains(stderr.buffer.String(), value) || why == "" {
			why = "no error message"
		}
		return "", fmt.Errorf("fails (%w): %s; run it in a terminal to see why", atomicfile.StripPath(err), why)
	}
	return TrimLineBreak(out.buffer.Bytes()), nil
}

// boundedBuffer stores the first bytes written to it and calls full on overflow.
type boundedBuffer struct {
	buffer bytes.Buffer // not embedded: its ReadFrom has no limit
	left   int
	over   bool
	full   func()
}

func (b *boundedBuffer) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.buffer.Write(p[:n])
	b.left -= n
	if n < len(p) && !b.over {
		b.over = true
		if b.full != nil {
			b.full()
		}
	}
	return len(p), nil
}
