//go:build e2e

// Package security tests that attackers get no secrets, names of others, unpinned tools,
// terminal, or access through scripts.
package security

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
