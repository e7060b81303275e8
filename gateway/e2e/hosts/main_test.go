//go:build e2e

// Package hosts shows hosts and their clients: how they find each other, what
// they leave behind, and the modes of the command line.
package hosts

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
