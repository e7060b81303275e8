//go:build e2e

package ui

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const registryPage = `{"servers":[{"server":{"name":"io.a/notebook","description":"Notes\u001b[2J","version":"1.2.0","packages":[
  {"registryType":"npm","identifier":"@a/notebook","version":"1.2.0","transport":{"type":"stdio"},"environmentVariables":[{"name":"API_KEY","isSecret":true,"isRequired":true}]}]}}],"metadata":{}}`

// Servers of a registry and of a client are found, tested, saved and started. npx is a
// script that checks the secret.
func TestServersAreAddedFromARegistryAndAClient(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, registryPage) }))
	t.Cleanup(web.Close)
	w := e2e.NewWorld(t)
	config := filepath.Join(w.Dir, "mine.yaml")
	for path, text := range map[string]string{
		config:                          "registry: " + web.URL + "\nservers:\n  clock: {command: '" + e2e.Goblin + "', args: [demo-server, clock]}\n",
		filepath.Join(w.Dir, "bin/npx"): "#!/bin/sh\n[ \"$API_KEY\" = hunter2 ] && exec '" + e2e.Goblin + "' demo-server notes\nexit 3\n",
		filepath.Join(w.Dir, "home/.cursor/mcp.json"): `{"mcpServers":{"books":{"command":"` + e2e.Goblin + `","args":["demo-server","library"]}}}`,
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		e2e.WriteProgram(t, path, text)
	}
	w.Written, w.Config = true, config
	w.Env = append(w.Env, "PATH="+filepath.Join(w.Dir, "bin")+":"+os.Getenv("PATH"))
	p := w.Pane(110, 40)
	p.Goblin("")
	p.Shows("1 Servers")
	p.Types("1")
	p.Keys("a")
	p.Shows("books", "Cursor")
	p.Types("note")
	p.Shows("> io.a/notebook", `Notes\x1b[2J`, "API_KEY * secret")
	p.Keys("Enter")
	p.Shows("npx -y @a/notebook@1.2.0")
	p.Types("wrong")
	p.Keys("C-s")
	p.Shows("! not added:")
	p.Keys("C-u")
	p.Types("hunter2")
	p.Keys("C-s")
	p.Shows("Added notebook to the config", "2 up", "> ● ready       notebook")

	p.Keys("a")
	p.Types("books")
	p.Shows("> books")
	p.Keys("Enter")
	p.Shows("demo-server", "command or URL")
	p.Keys("C-s")
	p.Shows("Added books to the config", "3 up", "> ● ready       books")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Contains(t, string(text), "# io.a/notebook 1.2.0, from the MCP registry\n")
	require.Contains(t, string(text), "API_KEY: ${keyring:notebook.API_KEY}\n")
	require.Contains(t, string(text), "# from Cursor\n")
	require.NotContains(t, string(text), "hunter2")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}
