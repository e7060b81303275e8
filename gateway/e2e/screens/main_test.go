//go:build e2e

// Package screens shows the screen, in a real terminal of tmux.
package screens

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
