//go:build agents && !windows

// Package agents runs programs that people use, unchanged, with Goblin as their only
// server and a scripted model behind them, and looks at what the model is shown.
package agents

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
