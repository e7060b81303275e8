//go:build e2e

// Package daemon shows daemons and their clients: how they find each other, what
// they leave behind, and the modes of the command line.
package daemon

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
