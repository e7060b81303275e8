//go:build e2e

// Package security shows what attackers do not get: secrets, names of others,
// unpinned tools, the terminal, the machine through a script.
package security

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
