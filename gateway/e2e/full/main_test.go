//go:build faults

// Package full tests limits at full size. It needs gigabytes or as much time as a limit,
// measures durations, and must run alone.
package full

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
