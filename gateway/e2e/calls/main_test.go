//go:build e2e

// Package calls shows what becomes of calls: their answers and errors, progress,
// cancellation, questions, tasks, and the calls of scripts.
package calls

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
