package tui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePathIsTypedInFrontOfThePanes(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv).keys("4 / config.json enter enter |")
	require.Contains(t, r.screen(), "JSONPath: config.json")
	r.typeText("ports[*]")
	require.Contains(t, r.screen(), "2 values")
	r.keys("enter")
	require.Equal(t, "[80,443]", r.clipboard())
	r.typeText("?")
	require.Contains(t, r.screen(), "! ")
	r.keys("esc |")
	require.Contains(t, r.screen(), "ports[*]?  typing replaces it", "the path must be kept")
	r.typeText("ports[0]")
	require.Contains(t, r.screen(), "1 value.", "typing must replace it")
	require.NotContains(t, r.screen(), "ports[*]?")
	r.keys("esc | end").typeText(".x")
	require.Contains(t, r.screen(), "ports[0].x", "but not after the cursor moved in it")
	r.keys("esc | backspace").typeText("name")
	require.NotContains(t, r.screen(), "ports[0]")
	r.keys("esc esc esc 2 |").typeText("name")
	require.Contains(t, r.screen(), "JSONPath: the definition of github_create_issue")
	require.Contains(t, r.screen(), `"github_create_issue"`)
	r.keys("esc 1 |")
	require.Contains(t, r.screen(), "no JSON to search")
}
