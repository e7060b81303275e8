//go:build e2e

// Package inputs tests what Goblin does with odd servers, clients and configs from the
// field, through the real binary. Each file covers one kind of input.
package inputs

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
