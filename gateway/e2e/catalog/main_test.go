//go:build e2e

// Package catalog shows what is remembered of servers between daemons, and how it is used.
package catalog

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
