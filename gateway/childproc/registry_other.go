//go:build !linux && !darwin

package childproc

import (
	"context"
	"io"
	"log/slog"
	"os/exec"
)

// Registry does nothing on this system.
type Registry struct{ OutliveExit bool }

// New returns nil.
func New(string, *slog.Logger) *Registry { return nil }

// Add does nothing.
func (*Registry) Add(int, string, string) (forget func()) { return func() {} }

// SurvivesExit returns false.
func (*Registry) SurvivesExit() bool { return false }

// HandOver returns ErrNoRecord.
func (*Registry) HandOver(*exec.Cmd) error { return ErrNoRecord }

// Reap does nothing.
func Reap(string, io.Reader) {}

// Sweep does nothing.
func (*Registry) Sweep(context.Context) {}

// TouchFile does nothing.
func (*Registry) TouchFile() {}

// Close does nothing.
func (*Registry) Close() {}

// Members returns 0: this system does not tell.
func Members(int) int { return 0 }
