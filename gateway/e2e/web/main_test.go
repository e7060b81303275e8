//go:build e2e

// Package web shows Streamable HTTP: guards, sessions, streams, and servers that
// are reached by it.
package web

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
