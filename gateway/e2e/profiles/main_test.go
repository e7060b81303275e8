//go:build e2e

// Package profiles tests that clients can't detect or use anything outside of their
// profile.
package profiles

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
