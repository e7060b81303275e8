//go:build e2e || faults

// Package faults tests faults of servers, and that FAULTS.md and SECURITY.md name
// existing tests.
package faults

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
