//go:build e2e || faults

// Package faults goes through the faults of servers, and keeps FAULTS.md and
// SECURITY.md to tests that exist.
package faults

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
