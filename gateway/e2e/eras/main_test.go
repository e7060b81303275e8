//go:build e2e

// Package eras tests clients and servers of different protocol revisions and eras.
package eras

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
