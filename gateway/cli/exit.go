package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"goblin/gateway/config"
	"goblin/gateway/daemon"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// Exit codes. 5 is unused.
const (
	CodeOK       = 0
	CodeFailure  = 1
	CodeUsage    = 2
	CodeConfig   = 3
	CodeConnect  = 4 // a server or the daemon cannot be reached
	CodeTimeout  = 6
	CodeNotFound = 7
)

// Error is an error with an exit code. A nil Err means that the error was already
// reported.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "failed"
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Fail returns an error with an exit code.
func Fail(code int, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// ExitCode returns the exit code for err.
func ExitCode(err error) int {
	var (
		own     *Error
		mistake *config.Errors
	)
	switch {
	case err == nil, isBrokenPipe(err):
		return CodeOK
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &mistake):
		return CodeConfig
	case errors.Is(err, daemon.ErrNotRunning):
		return CodeConnect
	case errors.Is(err, recording.ErrNotFound), errors.Is(err, recording.ErrNoRequest):
		return CodeNotFound
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return CodeTimeout
	default:
		return CodeFailure
	}
}

// isBrokenPipe reports whether the reader of the output exited, as head does.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }

// Report prints err in one line on stderr, or one line per mistake in a config. It
// returns the exit code.
func (a *App) Report(err error) int {
	code := ExitCode(err)
	if code == CodeOK {
		return code
	}
	var (
		own     *Error
		mistake *config.Errors
	)
	switch {
	case errors.As(err, &own) && own.Err == nil:
	case errors.As(err, &mistake):
		for _, p := range mistake.Problems {
			a.Warn("%s", p)
		}
	case errors.Is(err, daemon.ErrNotRunning) && own == nil:
		a.Warn("%s; start one with \"goblin serve\", or connect a client", daemon.ErrNotRunning)
	case errors.Is(err, context.Canceled) && own == nil:
		a.Warn("interrupted")
	default:
		a.Warn("%s", err)
	}
	return code
}

// Warn writes one line to stderr.
func (a *App) Warn(format string, args ...any) {
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	fmt.Fprintf(a.Err, "goblin: %s\n", a.ForLog(termtext.Line(a.mask.String(text))))
}
