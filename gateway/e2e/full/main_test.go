//go:build faults

// Package full shows bounds at their size: it takes gigabytes, or the time of a
// bound, or says how long something may take, and wants the machine for itself.
package full

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
