//go:build e2e

// These tests run the UI in a real terminal of tmux.

package screens

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
