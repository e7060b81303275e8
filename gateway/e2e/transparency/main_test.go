//go:build e2e

// Package transparency compares what passes through Goblin with what the server
// says without it.
package transparency

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
