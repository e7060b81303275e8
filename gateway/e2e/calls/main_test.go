//go:build e2e

// Package calls tests calls: answers, errors, progress, cancellation, requests from
// servers, tasks and scripts.
package calls

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
