//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestToolNamesHaveAtMostMaxNameCharacters(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	long := "create_a_pull_request_with_reviewers_and_labels_on_behalf_of"
	b := w.Backend("github", e2e.Obj{"tools": []e2e.Obj{e2e.Tool(long), e2e.Tool("short")}})
	names := map[int][]string{}
	for _, most := range e2e.Variants(2, 51, 128, 24, 64) {
		w.Edit(func() {
			if w.Gateway["max_name"] = most; most == 51 {
				delete(w.Gateway, "max_name") // the default
			}
		})
		c := w.Standalone()
		names[most] = c.Names("tools")
		require.Len(t, names[most], 2)
		for _, name := range names[most] {
			require.LessOrEqual(t, len(name), most)
		}
	}
	require.Equal(t, []string{"github_" + long, "github_short"}, names[128])
	require.Equal(t, []string{("github_" + long)[:42] + "_" + e2e.HashSuffix("github", long), "github_short"}, names[51])
	w.Edit(func() { delete(w.Gateway, "max_name") })
	c := w.Standalone()
	for _, list := range names {
		c.Ok("tools/call", e2e.Obj{"name": list[0]})
	}
	for _, told := range b.Received("tools/call") {
		require.Equal(t, long, e2e.Str(told.Msg, "params", "name"))
	}
	require.Equal(t, len(names), b.Count("tools/call"))
	for _, wrong := range []string{"github_" + long[:40], ("github_" + long)[:31] + "_" + e2e.HashSuffix("github", "short")} {
		require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": wrong}).Kind())
	}
	w.Edit(func() { w.Gateway["max_name"] = 23 })
	require.Contains(t, w.Run("validate").Stderr, `"max_name" in gateway must be from 24 to 128`)
}
