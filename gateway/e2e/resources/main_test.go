// Package resources shows the names of resources, templates, prompts and tools,
// and how what they name is read.
package resources

import (
	"testing"

	"goblin/gateway/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }
