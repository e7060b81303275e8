package meta_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestToolsThatAwaitApprovalAreMarked(t *testing.T) {
	t.Parallel()
	r := fixture(t)
	c := tools(t, r, nil)
	r.SetPinned("files", []registry.PinnedTool{{Server: "files", Name: "read_file"}, {Server: "files", Name: "delete_file", New: true}})
	type tool struct{ Name, AwaitsApproval string }
	for _, call := range [][2]string{{"catalog_tools", `{"serverId":"files"}`}, {"search_tools", `{"query":"file","serverId":"files"}`}} {
		var got struct{ Tools []tool }
		require.NoError(t, json.Unmarshal(c.call(call[0], call[1]).Structured, &got))
		require.ElementsMatch(t, []tool{{"files_read_file", "changed"}, {"files_delete_file", "new"}}, got.Tools, call[0])
	}
	var one tool
	require.NoError(t, json.Unmarshal(c.call("describe_tool", `{"name":"files_read_file"}`).Structured, &one))
	require.Equal(t, "changed", one.AwaitsApproval)
	one = tool{}
	require.NoError(t, json.Unmarshal(c.call("describe_tool", `{"name":"clock_time_in"}`).Structured, &one))
	require.Empty(t, one.AwaitsApproval)
}
