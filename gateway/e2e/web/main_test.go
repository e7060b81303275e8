//go:build e2e

// Package web tests Streamable HTTP: guards, sessions, streams, and remote servers.
package web

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
