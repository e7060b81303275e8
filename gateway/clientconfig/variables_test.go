package clientconfig_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
)

// Only the parts that the client itself replaces become references.
func TestOnlyVariablesOfTheClientBecomeReferences(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, file, given, want string }{
		"a file of Windsurf":              {"windsurf", ".codeium/windsurf/mcp_config.json", "${file:/k}", "${file:/k}"},
		"a file of Windsurf at home":      {"windsurf", ".codeium/windsurf/mcp_config.json", "${file:~/k}", "${file:${HOME}/k}"},
		"a file with a variable":          {"windsurf", ".codeium/windsurf/mcp_config.json", "${file:/a/${env:X}}", "$${file:/a/${X}}"},
		"a command in Windsurf":           {"windsurf", ".codeium/windsurf/mcp_config.json", "${cmd:id}", "$${cmd:id}"},
		"what only VS Code knows":         {"windsurf", ".codeium/windsurf/mcp_config.json", "${input:k} ${userHome}", "$${input:k} $${userHome}"},
		"an input in Cursor":              {"cursor", ".cursor/mcp.json", "${input:k}", "$${input:k}"},
		"an escape of Goblin":             {"cursor", ".cursor/mcp.json", "$${env:X}", "$$${env:X}"},
		"a variable of Claude":            {"claude-code", ".claude.json", "$${X}", "$$${X}"},
		"a default of Claude":             {"claude-code", ".claude.json", "${X:-${file:/k}}", "${X:-$${file:/k}}"},
		"the folder of a project":         {"claude-code", ".claude.json", "${project}", "$${project}"},
		"a dollar before one of Gemini":   {"gemini", ".gemini/settings.json", "$$X", "$$X"},
		"a dollar before one in braces":   {"gemini", ".gemini/settings.json", "$X${file:/k}", "${X}$${file:/k}"},
		"a dollar before one in opencode": {"opencode", ".config/opencode/opencode.json", "${env:X} ${file:/k} {env:X}", "$${env:X} $${file:/k} ${X}"},
		"two braces in opencode":          {"opencode", ".config/opencode/opencode.json", "{{env:X}}", "{${X}}"},
		"a file of another in opencode":   {"opencode", ".config/opencode/opencode.json", "{cmd:id} {file:/a}", "{cmd:id} ${file:/a}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			section, key := "mcpServers", "env"
			if test.client == "opencode" {
				section, key = "mcp", "environment"
			}
			m, _ := home(t, map[string]string{test.file: `{"` + section + `": {"a": {"command": "x", "args": ["` + test.given + `"], "` + key + `": {"A": "` + test.given + `"}}}}`})
			f := clientconfig.Find(test.client).Read(m)[0]
			require.NoError(t, f.Err)
			require.Len(t, f.Servers, 1, "%v", f.Skipped)
			require.Equal(t, pairs{"A": test.want}, f.Servers[0].Keys["env"])
			require.Equal(t, []string{test.want}, f.Servers[0].Keys["args"])
		})
	}
}

// --config may name the file of a client.
func TestAConfigThatIsTheFileOfAClientHasNoCommandsInIt(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"linux", "darwin"} {
		for _, name := range []string{"claude-desktop", "claude-code", "cursor", "vscode", "windsurf", "gemini", "cline", "kiro", "amazon-q", "lm-studio", "junie", "copilot"} {
			path := clientconfig.Find(name).ConfigFile(machine(system, pairs{"HOME": "/home/me"}))
			cfg, err := config.Parse(path, []byte(`{"mcpServers": {"a": {"command": "x", "args": ["${cmd:id}"]}}}`), os.LookupEnv)
			require.NoError(t, err)
			require.Equal(t, []string{"${cmd:id}"}, cfg.Servers[0].Args)
			require.Empty(t, cfg.Servers[0].References(), path)
		}
	}
}

func TestEveryTextOfAnEntryIsEscaped(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{".codex/config.toml": `[mcp_servers.a]
url = "https://h/${file:/k}"
bearer_token_env_var = "file:/k"
http_headers = { A = "${cmd:id}" }
env_http_headers = { B = "cmd:id", C = "GOOD" }
scopes = ["${HOME}"]
enabled_tools = ["${HOME}"]
[mcp_servers.a.oauth]
client_id = "${HOME}"
client_secret = "${keyring:k}"
`, "in.json": `{"inputs": [{"id": "i", "default": "a}${file:/k}"}], "servers": {"b": {"command": "x", "args": ["${input:i}"]}}}`})
	f := clientconfig.Find("codex").Read(m)[0]
	require.NoError(t, f.Err)
	require.Len(t, f.Servers, 1, "%v", f.Skipped)
	require.Equal(t, map[string]any{
		"url": "https://h/$${file:/k}", "headers": pairs{"A": "$${cmd:id}", "C": "${GOOD}"},
		"oauth": map[string]any{"client_id": "$${HOME}", "client_secret": "$${keyring:k}", "scopes": []string{"$${HOME}"}},
		"tools": map[string]any{"allow": []string{"$${HOME}"}},
	}, f.Servers[0].Keys)
	f = clientconfig.ReadFile(m, filepath.Join(dir, "in.json"))
	require.Equal(t, []string{"${I}"}, f.Servers[0].Keys["args"], "the default cannot be expressed")
}

func TestTheHomeOfTheUserIsAVariableThatTheSystemSets(t *testing.T) {
	t.Parallel()
	for system, want := range map[string]pairs{
		"windows": {"A": `${USERPROFILE}\x`, "B": "${file:${USERPROFILE}/k}"},
		"darwin":  {"A": "${HOME}/x", "B": "${file:${HOME}/k}"},
	} {
		_, dir := home(t, map[string]string{
			"p/.cursor/mcp.json":                  `{"mcpServers": {"a": {"command": "x", "env": {"A": "${userHome}${/}x"}}}}`,
			"p/.codeium/windsurf/mcp_config.json": `{"mcpServers": {"a": {"command": "x", "env": {"B": "${file:~/k}"}}}}`,
		})
		m := machine(system, pairs{"HOME": dir, "USERPROFILE": `C:\Users\me`})
		got := pairs{}
		for _, file := range []string{"p/.cursor/mcp.json", "p/.codeium/windsurf/mcp_config.json"} {
			f := clientconfig.ReadFile(m, filepath.Join(dir, file))
			require.NoError(t, f.Err)
			maps.Copy(got, f.Servers[0].Keys["env"].(pairs))
		}
		require.Equal(t, want, got, system)
	}
}
