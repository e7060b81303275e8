//go:build soak

// Package soak keeps a daemon running among failing servers, clients that come and
// go, and edits of the config.
package soak

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
