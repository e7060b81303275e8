//go:build e2e

// Package commands tests the commands of the shell and the demo servers.
package commands

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
