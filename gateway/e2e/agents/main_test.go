//go:build agents && !windows

// Package agents runs popular AI agents unchanged, with Goblin as their only server. A
// scripted model behind them records what they show it.
package agents

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
