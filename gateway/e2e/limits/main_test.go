//go:build e2e

// Package limits tests that servers and clients can't make Goblin hold, log or do more
// than its limits.
package limits

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
