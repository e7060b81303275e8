package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Reads from two servers that share a world, because these tests don't change it.
func TestR3_01_R3_11_R3_13_R3_19_ResourcesAreReadFromTheirServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	fs := w.Backend("filesystem", e2e.Filesystem(), e2e.Obj{"env": e2e.Obj{"TOKEN": "s3cr3t-value"}})
	db := w.Backend("dbsrv", e2e.Dbsrv())
	c := w.Standalone()
	listsAreFetchedOnConnect(t, c, fs)
	everyAcceptedFormIsRead(t, c, fs)
	templateExpansionsAreRouted(t, c, db)
	noMatchAsksNobody(t, c, fs, db)
	goblinsOwnResourceTellsTheServersWithoutSecrets(t, c)
}

func listsAreFetchedOnConnect(t *testing.T, c *e2e.Client, fs *e2e.Backend) {
	t.Helper()
	require.Contains(t, c.Names("resources"), e2e.In("filesystem", e2e.AppLog))
	require.Equal(t, 1, fs.Count("resources/list"))
	require.Equal(t, 1, fs.Count("resources/templates/list"))
	require.Equal(t, 1, fs.Count("initialize"))
	require.Equal(t, 1, fs.Count("notifications/initialized"))
}

func everyAcceptedFormIsRead(t *testing.T, c *e2e.Client, fs *e2e.Backend) {
	t.Helper()
	forms := []string{
		e2e.In("filesystem", e2e.AppLog), "filesystem_file___logs_app.log", "filesystem_file_logs_app.log",
		"filesystem_file____logs_app.log", e2e.AppLog, "mcp://filesystem/file%3A%2F%2F%2Flogs%2Fapp.log",
	}
	for _, form := range forms {
		result := c.Ok("resources/read", e2e.Obj{"uri": form})
		require.JSONEq(t, `{"contents":[{"uri":"mcp://filesystem/file:///logs/app.log","mimeType":"text/plain","text":"filesystem file:///logs/app.log"}]}`, string(result), form)
	}
	for _, uri := range fs.Uris("resources/read") {
		require.Equal(t, e2e.AppLog, uri)
	}
	require.Len(t, fs.Uris("resources/read"), len(forms))
}

func templateExpansionsAreRouted(t *testing.T, c *e2e.Client, db *e2e.Backend) {
	t.Helper()
	const original = "mcp://database/users/42"
	for _, form := range []string{e2e.In("dbsrv", original), original, "dbsrv_mcp_database_users_42"} {
		result := c.Ok("resources/read", e2e.Obj{"uri": form})
		require.Equal(t, e2e.In("dbsrv", original), e2e.Str(result, "contents", 0, "uri"), form)
	}
	require.Equal(t, []string{original, original, original}, db.Uris("resources/read"))
}

func noMatchAsksNobody(t *testing.T, c *e2e.Client, fs, db *e2e.Backend) {
	t.Helper()
	before := db.Count("resources/read") + fs.Count("resources/read")
	for _, uri := range []string{e2e.In("dbsrv", "mcp://database/users/42/x"), "zzz://q", "mcp://database/users", "dbsrv_mcp_database", ""} {
		e := c.Fault("resources/read", e2e.Obj{"uri": uri})
		require.Equal(t, "RESOURCE_NOT_FOUND", e.Kind(), uri)
	}
	require.Equal(t, before, db.Count("resources/read")+fs.Count("resources/read"))
}

func goblinsOwnResourceTellsTheServersWithoutSecrets(t *testing.T, c *e2e.Client) {
	t.Helper()
	result := c.Ok("resources/read", e2e.Obj{"uri": "goblin://servers"})
	text := e2e.Str(result, "contents", 0, "text")
	require.True(t, json.Valid([]byte(text)), text)
	require.Contains(t, text, "filesystem")
	require.NotContains(t, text, "s3cr3t")
	listed := false
	for _, e := range e2e.Each(c.Ok("resources/list", nil), "resources") {
		listed = listed || strings.HasSuffix(e2e.Str(e, "uri"), "goblin://servers")
	}
	require.True(t, listed)
}
