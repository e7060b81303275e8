//go:build e2e

// Package transparency compares messages through Goblin with the server's own messages.
package transparency

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
