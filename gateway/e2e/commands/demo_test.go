//go:build e2e

package commands

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestDemoIsServedWithoutAConfig(t *testing.T) {
	t.Parallel()
	c := e2e.DemoClient(t)
	text := c.ReadText("goblin://servers")
	for _, name := range []string{"notes", "clock", "library"} {
		require.Contains(t, text, name)
	}
	uris := c.Names("resources")
	require.Greater(t, len(uris), 2000)
	require.True(t, e2e.IsSorted(uris))
	require.NotEmpty(t, c.Names("tools"))
	require.NotEmpty(t, c.Names("prompts"))
	require.GreaterOrEqual(t, len(c.Names("templates")), 2)
}
