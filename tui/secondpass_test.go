package tui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestCountsHaveAllTheirDigits(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "big").ready("big")
	var tools []string
	for i := range 12_345 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{}}`, i))
	}
	r.list("big", registry.Tool, tools...).keys("2")
	require.Contains(t, r.line("─ Tools"), "12,345")
	r.keys("/ t1 enter")
	require.Contains(t, r.line("/ t1"), "3456 of 12,345")
	require.Contains(t, r.line("─ Tools"), "3456/12,345")
}
