// Package reload shows what an edit of the config changes, and what it leaves
// alone.
package reload

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
