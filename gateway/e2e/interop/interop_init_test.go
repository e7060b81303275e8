//go:build interop

package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Three clients have different servers. After two commands, all clients have all servers;
// a third command restores each client's file.
func TestInteropInitAndInstallMakeOneListOfAllClientsServers(t *testing.T) {
	n := newNPM(t)
	w := e2e.NewWorld(t)
	w.Written, w.Config = true, ""
	servers := n.commands(filepath.Join(w.Dir, "memory.jsonl"))
	arg := func(server string, i int) string { return servers[server]["args"].([]string)[i] }
	files := map[string]string{
		"home/.cursor/mcp.json": "{\n  // by hand\n  \"mcpServers\": {\n    \"filesystem\": {\"command\": \"" + n.node + "\", \"args\": [\"" + arg("filesystem", 0) + "\", \"" + n.files + "\"]},\n  },\n}\n",
		"home/.codex/config.toml": "model = \"gpt-5\"\n\n[mcp_servers.memory]\ncommand = \"" + n.node + "\"\nargs = [\"" + arg("memory", 0) + "\"]\nenv = { MEMORY_FILE_PATH = \"" +
			filepath.Join(w.Dir, "memory.jsonl") + "\" }\n\n[mcp_servers.filesystem]\ncommand = \"" + n.node + "\"\nargs = [\"" + arg("filesystem", 0) + "\", \"" + n.files + "\"]\n",
		"cfg/goose/config.yaml": "GOOSE_MODE: auto\nextensions:\n  everything:\n    enabled: true\n    type: stdio\n    name: everything\n    cmd: " + n.node + "\n    args: [" + arg("everything", 0) + ", stdio]\n    timeout: 300\n",
	}
	for name, text := range files {
		path := filepath.Join(w.Dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.Contains(t, w.Succeeds("init"), "Added 3 servers", "two of them are the same")
	w.Succeeds("install", "cursor", "codex", "goose", "--replace")
	for name := range files {
		text, err := os.ReadFile(filepath.Join(w.Dir, name))
		require.NoError(t, err)
		require.Contains(t, string(text), e2e.Goblin)
		require.NotContains(t, string(text), n.dir, "Goblin has replaced the servers")
	}

	c := w.Bridged()
	e2e.Eventually(t, "all servers' tools are listed", func() bool {
		names := strings.Join(c.Names("tools"), " ")
		return strings.Contains(names, "everything_echo") && strings.Contains(names, "filesystem_read_text_file") && strings.Contains(names, "memory_create_entities")
	})
	require.Contains(t, c.CallText("everything_echo", e2e.Obj{"message": "hello"}), "Echo: hello")

	w.Succeeds("uninstall", "cursor", "codex", "goose")
	for name, before := range files {
		text, err := os.ReadFile(filepath.Join(w.Dir, name))
		require.NoError(t, err)
		require.Equal(t, before, string(text))
	}
}
