package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

// shelf is a registry with these entries on one page. Each is also found by name.
func shelf(t *testing.T, entries ...string) string {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var found []string
		for _, e := range entries {
			var s struct{ Name string }
			require.NoError(t, json.Unmarshal([]byte(e), &s))
			whole := `{"server":` + e + `,"_meta":{"io.modelcontextprotocol.registry/official":{"status":"active"}}}`
			if strings.Contains(r.URL.Path, "/"+s.Name+"/versions/") {
				_, _ = w.Write([]byte(whole))
				return
			}
			if strings.Contains(s.Name, r.URL.Query().Get("search")) {
				found = append(found, whole)
			}
		}
		if strings.Contains(r.URL.Path, "/versions/") {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(`{"servers":[` + strings.Join(found, ",") + `],"metadata":{}}`))
	}))
	t.Cleanup(web.Close)
	return web.URL
}

const (
	weatherEntry = `{"name":"io.a/weather","description":"Forecasts\u001b[2J\nand more","version":"1.2.0",
		"packages":[{"registryType":"npm","identifier":"@a/weather","version":"1.2.0","transport":{"type":"stdio"},"environmentVariables":[{"name":"API_KEY","isSecret":true,"isRequired":true,"description":"of a.example"},{"name":"UNITS","default":"metric","choices":["metric","imperial"]}]}],
		"remotes":[{"type":"streamable-http","url":"https://a.example/mcp"}]}`
	bundleEntry = `{"name":"io.b/weather-bundle","description":"Tides","version":"0.1","packages":[{"registryType":"mcpb","identifier":"https://b.example/w.mcpb"}]}`
)

func TestRegistrySearchPrintsATable(t *testing.T) {
	url := shelf(t, weatherEntry, bundleEntry)
	cache := map[string]string{"XDG_CACHE_HOME": t.TempDir()}
	got := try{config: "servers: {}\nregistry: " + url, env: cache}.run(t, "registry", "search", "weather")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `NAME                 VERSION  RUNS         DESCRIPTION
io.a/weather         1.2.0    npm, http    Forecasts\x1b[2J
io.b/weather-bundle  0.1      unsupported  Tides
`, got.out)

	got = try{config: "servers: {}\nregistry: http://127.0.0.1:1", env: map[string]string{"XDG_CACHE_HOME": cache["XDG_CACHE_HOME"], "GOBLIN_REGISTRY": url}}.run(t, "registry", "search", "--json", "weather", "tides")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "io.b/weather-bundle", decodeJSON(t, got.out).(map[string]any)["servers"].([]any)[0].(map[string]any)["name"])

	got = try{env: cache}.run(t, "registry", "search", "--url", url, "nothing")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Equal(t, "goblin: nothing found for \"nothing\"\n", got.err)
}

func TestRegistrySearchThatCannotBe(t *testing.T) {
	cache := map[string]string{"XDG_CACHE_HOME": t.TempDir()}
	for want, args := range map[string][]string{
		"goblin: query http://127.0.0.1:1: ":      {"search", "--url", "http://127.0.0.1:1", "x"},
		"is not a URL like https://registry":      {"search", "--url", "ftp://x", "x"},
		"registry search needs search words":      {"search", " "},
		"--limit must be a number from 1 to 1000": {"search", "--limit", "0", "x"},
		"registry needs a command: search":        {},
		"registry takes search, not \"find\"":     {"find"},
	} {
		got := try{env: cache}.run(t, append([]string{"registry"}, args...)...)
		require.NotZero(t, got.code, want)
		require.Contains(t, got.err, want)
	}
	got := try{config: "registry: \"https://x.example/?a=b\""}.run(t, "registry", "search", "x")
	require.Equal(t, cli.CodeConfig, got.code)
	require.Contains(t, got.err, `must not have a "?" part`)
}
