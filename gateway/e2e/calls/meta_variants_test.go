//go:build e2e

package calls

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestR3_05_R3_31_R0_05_DescribeResource(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("filesystem", e2e.Merge(e2e.Filesystem(), []e2e.Obj{{"resources": []e2e.Obj{
			{"uri": e2e.AppLog, "name": "app.log", "title": "The log", "mimeType": "text/plain", "size": 12, "description": "log", "annotations": e2e.Obj{"priority": 1}},
		}}}))
		c := connect(e2e.Obj{})
		want := fmt.Sprintf(`{"uri":%q,"name":"app.log","title":"The log","mimeType":"text/plain","size":12,"description":"log","annotations":{"priority":1},
			"serverId":"filesystem","originalUri":%q,"flatId":"filesystem_file_logs_app.log"}`, e2e.In("filesystem", e2e.AppLog), e2e.AppLog)
		for _, spelling := range []string{"filesystem_file___logs_app.log", "filesystem_file_logs_app.log", e2e.In("filesystem", e2e.AppLog), e2e.AppLog} {
			require.JSONEq(t, want, string(callMeta(c, "describe_resource", e2e.Obj{"uri": spelling})), spelling)
		}
		text := metaFails(c, "describe_resource", e2e.Obj{"uri": e2e.In("filesystem", "file:///logs/ap.log")})
		require.Contains(t, text, "RESOURCE_NOT_FOUND")
		require.Contains(t, text, "file:///logs/ap.log")
		require.Contains(t, text, "did you mean "+e2e.In("filesystem", e2e.AppLog))
	})
}

func TestR3_33_CatalogOfTemplates(t *testing.T) {
	e2e.OverEveryFront(t, func(t *testing.T, w *e2e.World, connect func(e2e.Obj) *e2e.Client) {
		w.Backend("dbsrv", e2e.Dbsrv())
		w.Backend("other", e2e.Obj{"templates": []e2e.Obj{e2e.Template("x:{y}")}})
		c := connect(e2e.Obj{})
		require.Len(t, cards(callMeta(c, "catalog_resource_templates", e2e.Obj{}), "templates", "uriTemplate"), 2)
		require.JSONEq(t, fmt.Sprintf(`{"uriTemplate":%q,"name":"row","title":"Row","description":"one row","mimeType":"application/json","serverId":"dbsrv"}`,
			e2e.In("dbsrv", "mcp://database/{table}/{id}")), string(e2e.At(callMeta(c, "catalog_resource_templates", e2e.Obj{"serverId": "dbsrv"}), "templates", 0)))
	})
}

func TestMetaToolsSeeWhatChanges(t *testing.T) {
	t.Parallel()
	w := e2e.WithMeta(t)
	b := w.Backend("b", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x:old")}})
	c := w.Standalone()
	require.Len(t, cards(callMeta(c, "search_resources", e2e.Obj{"query": "old"}), "resources", "uri"), 1)
	b.Add("resources", e2e.Resource("x:brandnew"))
	b.ListChanged("resources")
	c.WaitListed("resources", e2e.In("b", "x:brandnew"), true)
	require.Equal(t, []string{e2e.In("b", "x:brandnew")}, cards(callMeta(c, "search_resources", e2e.Obj{"query": "brandnew"}), "resources", "uri"))
	b.Remove("resources", "x:old")
	b.ListChanged("resources")
	c.WaitListed("resources", e2e.In("b", "x:old"), false)
	require.Empty(t, cards(callMeta(c, "search_resources", e2e.Obj{"query": "old"}), "resources", "uri"))
	require.False(t, slices.Contains(cards(callMeta(c, "catalog_resources", e2e.Obj{}), "resources", "uri"), e2e.In("b", "x:old")))
}

func TestDescriptionsThatClientsCutAreWarnedOf(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	const want = `tool "talks" of server "b": the description has 2049 characters, of which clients such as Claude Code show 2048`
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{
		e2e.Tool("talks", e2e.Obj{"description": strings.Repeat("é", 2049)}),
		e2e.Tool("fits", e2e.Obj{"description": strings.Repeat("é", 2048)}),
	}})
	require.NotContains(t, w.Run("validate").Stderr, "warning", "nothing is started to find out")
	c := w.Socket()
	c.Names("tools")
	out := w.Run("validate")
	require.Contains(t, out.Stderr, want, "the daemon knows")
	require.NotContains(t, out.Stderr, "fits")
	require.Contains(t, out.Stdout, "is fine but for 1 warning")
	c.Close()
	w.Succeeds("stop")
	require.Contains(t, w.Run("validate").Stderr, want, "it is remembered")
	require.Contains(t, w.Run("validate", "--json").Stdout, `has 2049 characters`)
}
