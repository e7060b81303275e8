//go:build !linux && !darwin

package childproc

import (
	"context"
	"io"
	"log/slog"
	"os/exec"
)

// Registry does nothing here.
type Registry struct{ OutliveExit bool }

// New returns a Record that does nothing.
func New(string, *slog.Logger) *Registry { return nil }

// Add does nothing; nor does forget.
func (*Registry) Add(int, string, string) (forget func()) { return func() {} }

// SurvivesExit is false.
func (*Registry) SurvivesExit() bool { return false }

// HandOver always fails.
func (*Registry) HandOver(*exec.Cmd) error { return ErrNoRecord }

// Reap does nothing.
func Reap(string, io.Reader) {}

// Sweep does nothing.
func (*Registry) Sweep(context.Context) {}

// TouchFile does nothing.
func (*Registry) TouchFile() {}

// Close does nothing.
func (*Registry) Close() {}
