//go:build e2e

// Package ui tests the UI in a real terminal of tmux.
package ui

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
