//go:build e2e

// Package eras shows that clients and servers of every revision meet, whichever
// era either speaks.
package eras

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
