//go:build !linux && !darwin

package orphans

import (
	"context"
	"log/slog"
)

// Record does nothing here.
type Record struct{}

// New returns a Record that does nothing.
func New(string, *slog.Logger) *Record { return nil }

// Add does nothing; nor does forget.
func (*Record) Add(int, string, string) (forget func()) { return func() {} }

// Sweep does nothing.
func (*Record) Sweep(context.Context) {}

// Freshen does nothing.
func (*Record) Freshen() {}

// Close does nothing.
func (*Record) Close() {}
