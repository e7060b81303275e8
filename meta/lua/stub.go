// Package lua is a stub.
package lua

import (
	"context"
	"errors"
	"time"

	"goblin/registry"
)

// SearchOptions s.
type SearchOptions struct {
	Kind, Server string
	Limit        int
}

// Host h.
type Host interface {
	Snapshot() *registry.Snapshot
	Servers() []string
	Request(ctx context.Context, method string, params []byte) ([]byte, error)
	Search(ctx context.Context, query string, o SearchOptions) ([]byte, error)
	Progress(done int, message string)
}

// Limits l.
type Limits struct {
	Timeout                      time.Duration
	Memory, Output, Instructions int64
	Calls                        int
}

// Result r.
type Result struct {
	JSON    []byte
	Printed string
	Calls   int
}

// Error e.
type Error struct {
	Kind    string
	Line    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Run r.
func Run(context.Context, string, Host, Limits) (Result, error) {
	return Result{}, errors.New("no lua yet")
}
