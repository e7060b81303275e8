//go:build e2e

// Package catalog tests the lists of servers that are cached between daemons.
package catalog

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
