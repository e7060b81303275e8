//go:build e2e

package commands

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A bundle of the registry is handled like any other server.
func TestABundleOfTheRegistryIsAddedAndRuns(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t) // builds Goblin unless another test has
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{
		"manifest.json": `{"manifest_version":"0.3","name":"clock","server":{"type":"binary","entry_point":"run","mcp_config":{"command":"${__dirname}/run","args":["${user_config.which}"]}},"user_config":{"which":{"type":"string","required":true}}}`,
		"run":           "#!/bin/sh\nexec '" + e2e.Goblin + "' demo-server \"$1\"\n",
	} {
		f, err := z.Create(name)
		require.NoError(t, err)
		_, err = f.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	var web *httptest.Server
	web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".mcpb") {
			_, _ = w.Write(archive.Bytes())
			return
		}
		_ = json.NewEncoder(w).Encode(e2e.Obj{"server": e2e.Obj{
			"name": "io.a/clock", "version": "1", "description": "tells the time",
			"packages": []e2e.Obj{{"registryType": "mcpb", "identifier": web.URL + "/clock.mcpb", "fileSha256": fmt.Sprintf("%x", sha256.Sum256(archive.Bytes())), "transport": e2e.Obj{"type": "stdio"}}},
		}})
	}))
	t.Cleanup(web.Close)
	w.Written, w.Config = true, ""
	out := w.Succeeds("add", "--registry", "io.a/clock", "--registry-url", web.URL, "--set", "which=clock", "--yes")
	require.Contains(t, out, `Added "clock"`)
	require.Contains(t, w.Succeeds("read", "clock://now"), "UTC")
	folders, err := os.ReadDir(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "bundles"))
	require.NoError(t, err)
	require.Len(t, folders, 1)
}
