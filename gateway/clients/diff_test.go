package clients_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/clients"
)

// Every secret in these files has the word "hidden" in it.
func TestTheDifferenceShowsNoValueOrCommentOfTheUser(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		client, file, text string
		shown              []string
	}{
		"JSON": {"cursor", ".cursor/mcp.json", `{
  "mcpServers": {
    // hidden1 "hidden2": {
    "a": {
      "command": "hidden-command",
      "args": [
        "--token",
        "aGlkZGVuhidden==",
        "--api-key=hidden", "https://user:hidden@h/?k=hidden"
      ], /* hidden
      hidden3 */
      "env": {"KEY": "hidden\nhidden", "N": 4242, "sk-hidden0123456789012345": ""},
      "unknown": {"deep": [{"x": "hidden"}, [["hidden"]]]}, // hidden=
    },
  },
}
`, []string{`-      "args": [`, `+      "command": "/opt/goblin"`, `"KEY": …`, `"deep": [`}},
		"one line of JSON": {"cursor", ".cursor/mcp.json", `{"mcpServers": {"a": {"command": "x", "env": {"K": "hidden=="}}}}`, []string{`"K": …`}},
		"TOML": {"codex", ".codex/config.toml", `# hidden
model = "hidden" # hidden = "hidden"
text = """
hidden = "hidden\"""
hidden"""""
raw = '''
hidden = ''hidden
[hidden]
'''

[mcp_servers.a] # hidden
command = "hidden"
args = ["--token", "aGlkZGVuhidden==", # hidden
  'hidden "]', ["hidden"], { x = "hidden", "sk-hidden0123456789012345" = 1 },
  "hidden" ]
env = { KEY = "hidden # }", OTHER = 'hidden', N = 4242 }
at = 2026-01-02 03:04:05Z # hidden
"quoted # key" = "hidden"
text = """
hidden = "hidden\"""
hidden"""""
`, []string{"-[mcp_servers.a] # …", "-env = { KEY = …, OTHER = …, N = … }", "-\"quoted # key\" = …", "+[mcp_servers.goblin]\n", "+command = \"/opt/goblin\"\n", "+args = [\"stdio\"]\n"}},
		"YAML of goose": {"goose", ".config/goose/config.yaml", `# hidden
extensions:
  a: # hidden
    cmd: hidden
    type: stdio
    args: [--token, "aGlkZGVuhidden==", hidden]
    envs:
      KEY: |
        hidden
        hidden = hidden
      OTHER: >-
        hidden
        KEY: hidden
      PLAIN: hidden
        hidden
      ANCHOR: &hidden "hidden"
      ALIAS: *hidden
      TAG: !hidden x
      N: 4242
`, []string{"-      KEY: …", "+    cmd: /opt/goblin\n", "+    args: [stdio]\n"}},
		"YAML of Continue": {"continue", ".continue/config.yaml", `name: hidden
version: 1.0.0
schema: v1
mcpServers:
  - name: a
    command: hidden
    # hidden
    args: ["hidden==", 'hidden']
    env: {KEY: "hidden", N: 4242}
`, []string{"-    env: {KEY: …, N: …}", "+  - name: goblin\n", "+    command: /opt/goblin\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{test.file: test.text})
			c, state := clients.Find(test.client), filepath.Join(dir, "state")
			ch, err := c.Install(m, state, goblin, []string{"stdio"}, []string{"a"})
			require.NoError(t, err)
			diff := ch.Diff()
			for _, shown := range test.shown {
				require.Contains(t, diff, shown)
			}
			require.NoError(t, ch.Apply(noon))
			ch, err = c.Uninstall(m, state)
			require.NoError(t, err)
			for _, diff := range []string{diff, ch.Diff()} {
				require.Greater(t, strings.Count(diff, "\n"), 3, diff)
				require.NotContains(t, diff, "hidden", diff)
				require.NotContains(t, diff, "4242", diff)
			}
		})
	}
}
