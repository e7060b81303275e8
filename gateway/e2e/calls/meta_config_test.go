//go:build e2e

package calls

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR0_04_MetaToolsAreListedAndSwitchedByTheConfig(t *testing.T) {
	t.Parallel()
	all := []string{
		"catalog_prompts", "catalog_resource_templates", "catalog_resources", "catalog_servers", "catalog_tools",
		"describe_prompt", "describe_resource", "describe_tool", "execute_lua", "search_prompts", "search_resources", "search_tools",
	}
	for value, want := range map[string][]string{
		"true": all, "false": {}, `["describe_tool","search_tools"]`: {"describe_tool", "search_tools"}, `"auto"`: {},
	} {
		w := e2e.NewWorld(t)
		w.Gateway["meta_tools"] = json.RawMessage(value)
		w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("own")}})
		c := w.Standalone()
		require.ElementsMatch(t, append([]string{"b_own"}, want...), c.Names("tools"), value)
		if len(want) == 0 {
			require.Equal(t, "TOOL_NOT_FOUND", c.Fault("tools/call", e2e.Obj{"name": "catalog_tools"}).Kind())
		}
	}
	w := e2e.NewWorld(t)
	var known []string
	schema := json.RawMessage(w.Succeeds("validate", "--schema"))
	for _, form := range e2e.Each(schema, "properties", "gateway", "properties", "meta_tools", "anyOf", 1, "items", "anyOf", 0, "enum") {
		known = append(known, strings.Trim(string(form), `"`))
	}
	all = append(all, "catalog_skills", "search_skills", "call_tool") // listed where a server has skills, or who searches
	require.ElementsMatch(t, all, known, "the config knows them, and no others")
	w = e2e.NewWorld(t)
	w.Gateway["meta_tools"] = []string{"serch_tools"}
	out := w.Run("validate")
	require.Equal(t, e2e.ExitConfig, out.Code)
	require.Contains(t, out.Stderr, `did you mean "search_tools"?`)
}

func TestR3_05_DescribeResourceInFlatMode(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	w.Gateway["namespace"] = "flat"
	w.Backend("filesystem", e2e.Filesystem())
	c := w.Standalone()
	require.Equal(t, "filesystem_file_logs_app.log", e2e.Str(callMeta(c, "describe_resource", e2e.Obj{"uri": "filesystem_file___logs_app.log"}), "uri"))
	require.Contains(t, cards(callMeta(c, "catalog_resources", e2e.Obj{}), "resources", "uri"), "filesystem_file_logs_app.log")
}
