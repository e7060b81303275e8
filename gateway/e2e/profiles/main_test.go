//go:build e2e

// Package profiles shows that what a client's profile leaves out does not exist for it.
package profiles

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
