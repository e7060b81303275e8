//go:build e2e

// Package logins shows how people and machines log in at remote servers, before an
// authorization server that does what each test wants of it.
package logins

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
