//go:build e2e

// Package limits shows that nobody can make Goblin hold, log or do without
// bound.
package limits

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
