//go:build !linux && !darwin

package childproc

import (
	"context"
	"io"
	"log/slog"
	"os/exec"
)

// Record does nothing here.
type Record struct{ Outlives bool }

// New returns a Record that does nothing.
func New(string, *slog.Logger) *Record { return nil }

// Add does nothing; nor does forget.
func (*Record) Add(int, string, string) (forget func()) { return func() {} }

// Outlive is false.
func (*Record) Outlive() bool { return false }

// HandOver always fails.
func (*Record) HandOver(*exec.Cmd) error { return ErrNoRecord }

// Reap does nothing.
func Reap(string, io.Reader) {}

// Sweep does nothing.
func (*Record) Sweep(context.Context) {}

// Freshen does nothing.
func (*Record) Freshen() {}

// Close does nothing.
func (*Record) Close() {}
