//go:build interop || conformance

// Package interop compares programs of other projects with and without Goblin: clients
// and servers from npm, an authorization server, SDKs and the official conformance suite.
package interop

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
