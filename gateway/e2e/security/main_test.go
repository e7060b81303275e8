//go:build e2e

// Package security tests that attackers don't get secrets, names of others, unpinned
// tools, the terminal, or the machine through a script.
package security

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
