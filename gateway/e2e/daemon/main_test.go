//go:build e2e

// Package daemon tests daemons and their clients: how they find each other, what they
// clean up, and the modes of the command line.
package daemon

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
