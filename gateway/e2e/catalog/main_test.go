// Package catalog shows what is remembered of servers between hosts.
// they leave behind, and the modes of the command line.
package catalog

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
