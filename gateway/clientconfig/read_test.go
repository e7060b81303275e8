package clientconfig_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"goblin/gateway/clientconfig"
	"goblin/gateway/config"
)

// home is a machine with files, by path in the home folder. "" means no file.
func home(t testing.TB, files map[string]string) (clientconfig.Machine, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return machine("linux", map[string]string{"HOME": dir}), dir
}

func machine(system string, env map[string]string) clientconfig.Machine {
	return clientconfig.Machine{OS: system, Getenv: func(name string) string { return env[name] }}
}

// all returns the servers of a file as Goblin's config has them, by name.
func all(f *clientconfig.FileServers) map[string]map[string]any {
	out := map[string]map[string]any{}
	for i := range f.Servers {
		out[f.Servers[i].Name] = f.Servers[i].Keys
	}
	return out
}

type entries = map[string]map[string]any

type pairs = map[string]string

func TestServersOfEachClientAreReadInItsDialect(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		client, file, text string
		want               entries
		left               pairs // name: part of the reason
		notes              pairs // name: part of a note
		needs              map[string]pairs
	}{
		// https://modelcontextprotocol.io/docs/develop/connect-local-servers
		"Claude Desktop expands nothing": {
			client: "claude-desktop", file: ".config/Claude/claude_desktop_config.json",
			text: `{"globalShortcut": "", "mcpServers": {
  "filesystem": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"], "env": {"A": "${HOME}", "N": 1}}}}`,
			want: entries{"filesystem": {"command": "npx", "args": []string{"-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop"}, "env": pairs{"A": "$${HOME}", "N": "1"}}},
		},
		// https://code.claude.com/docs/en/mcp
		"Claude Code, with servers of projects": {
			client: "claude-code", file: ".claude.json",
			text: `{"numStartups": 5, "mcpServers": {
  "api": {"type": "http", "url": "${API_BASE_URL:-https://api.example.com}/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}},
  "old": {"type": "sse", "url": "https://mcp.example.com/sse"},
  "db": {"type": "stdio", "command": "npx", "args": ["-y", "@bytebase/dbhub", "--dsn", "postgresql://localhost"], "env": {}},
  "ide": {"type": "sse-ide", "url": "http://localhost:1"}},
 "projects": {"/src/a": {"mcpServers": {"here": {"command": "x"}}, "enabledMcpjsonServers": ["here"]}}}`,
			want: entries{
				"api": {"type": "http", "url": "${API_BASE_URL:-https://api.example.com}/mcp", "headers": pairs{"Authorization": "Bearer ${API_KEY}"}},
				"old": {"type": "sse", "url": "https://mcp.example.com/sse"},
				"db":  {"command": "npx", "args": []string{"-y", "@bytebase/dbhub", "--dsn", "postgresql://localhost"}},
			},
			left: pairs{"here": "to the project /src/a", "ide": "editor extension"},
		},
		// https://cursor.com/docs/context/mcp
		"Cursor, with comments, variables and a login": {
			client: "cursor", file: ".cursor/mcp.json",
			text: `{
  // mine
  "mcpServers": {
    "files": {"command": "${userHome}/bin/files${/}x", "args": ["${workspaceFolder}", "${env:HOST}"]},
    "files2": {"command": "${selectedText}"},
    "remote": {"url": "https://e.com/mcp", "auth": {"CLIENT_ID": "id", "CLIENT_SECRET": "${env:S}", "scopes": ["a", "b"]},},
    "goblin": {"command": "/opt/goblin", "args": ["stdio"]},
  },
}`,
			want: entries{
				"files":  {"command": "${HOME}/bin/files/x", "args": []string{"${project}", "${HOST}"}, "isolation": "project"},
				"files2": {"command": "$${selectedText}"},
				"remote": {"url": "https://e.com/mcp", "oauth": map[string]any{"client_id": "id", "client_secret": "${S}", "scopes": []string{"a", "b"}}},
			},
			left:  pairs{"goblin": "is Goblin itself"},
			notes: pairs{"files": "isolation: project", "files2": "${selectedText}"},
		},
		// https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
		"VS Code, with inputs": {
			client: "vscode", file: ".config/Code/User/mcp.json",
			text: `{"inputs": [{"type": "promptString", "id": "api-key", "password": true}, {"type": "promptString", "id": "9lives", "default": "no${w}"}],
 "servers": {
  "perplexity": {"type": "stdio", "command": "npx", "args": ["-y", "p", "${input:9lives}"], "env": {"KEY": "${input:api-key}"}},
  "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp"}}}`,
			want: entries{
				"perplexity": {"command": "npx", "args": []string{"-y", "p", "${_9LIVES:-no$${w}}"}, "env": pairs{"KEY": "${API_KEY}"}},
				"github":     {"type": "http", "url": "https://api.githubcopilot.com/mcp"},
			},
			needs: map[string]pairs{"perplexity": {"API_KEY": "input api-key", "_9LIVES": "input 9lives"}},
		},
		"VS Code before it had a file for servers": {
			client: "vscode", file: ".config/Code/User/settings.json",
			text: `{"editor.fontSize": 12, "mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}`,
			want: entries{"a": {"command": "x"}},
		},
		// https://docs.windsurf.com/windsurf/cascade/mcp
		"Windsurf": {
			client: "windsurf", file: ".codeium/windsurf/mcp_config.json",
			text: `{"mcpServers": {
  "figma": {"serverUrl": "https://mcp.figma.com/mcp", "headers": {"X-Key": "${env:FIGMA}"}},
  "off": {"command": "npx", "args": ["x"], "disabled": true, "disabledTools": ["a*b"]}, "dot": {"command": "node", "args": ["../s.js"]}}}`,
			want: entries{
				"figma": {"url": "https://mcp.figma.com/mcp", "headers": pairs{"X-Key": "${FIGMA}"}},
				"off":   {"command": "npx", "args": []string{"x"}, "disabled": true, "tools": map[string]any{"deny": []string{`a\*b`}}},
				"dot":   {"command": "node", "args": []string{"../s.js"}},
			},
			notes: pairs{"dot": "has a relative path"},
		},
		// https://developers.openai.com/codex/mcp
		"Codex": {
			client: "codex", file: ".codex/config.toml",
			text: `model = "gpt-5"

[mcp_servers.context7]
command = "npx"
args = ["-y", "@upstash/context7-mcp", "${literal}", "${{ secrets.K }}"]
env_vars = ["LOCAL_TOKEN", { name = "REMOTE", source = "remote" }]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["open", "screenshot"]
disabled_tools = ["screenshot"]

[mcp_servers.context7.env]
MY_ENV_VAR = "MY_ENV_VALUE"

[mcp_servers.figma]
url = "https://mcp.figma.com/mcp"
bearer_token_env_var = "FIGMA_OAUTH_TOKEN"
http_headers = { "X-Figma-Region" = "us-east-1" }
env_http_headers = { "X-Other" = "OTHER" }
enabled = false
`,
			want: entries{
				"context7": {
					"command": "npx", "args": []string{"-y", "@upstash/context7-mcp", "$${literal}", "$${{ secrets.K }}"}, "env": pairs{"MY_ENV_VAR": "MY_ENV_VALUE"},
					"inherit_env": []string{"LOCAL_TOKEN"}, "startup_timeout": "20s", "call_timeout": "45.5s",
					"tools": map[string]any{"allow": []string{"open", "screenshot"}, "deny": []string{"screenshot"}},
				},
				"figma": {
					"url": "https://mcp.figma.com/mcp", "disabled": true,
					"headers": pairs{"X-Figma-Region": "us-east-1", "X-Other": "${OTHER}", "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}"},
				},
			},
		},
		// https://geminicli.com/docs/tools/mcp-server
		"Gemini CLI": {
			client: "gemini", file: ".gemini/settings.json",
			text: `{"mcp": {"excluded": ["off"]}, "mcpServers": {
  "py": {"command": "python", "args": ["-m", "s", "--port", "8080"], "cwd": "./s", "env": {"K": "$MY_KEY", "L": "${OTHER}", "P": "5$"}, "timeout": 15000, "trust": true, "includeTools": ["safe(x)"]},
  "sse": {"url": "http://localhost:1/sse"}, "http": {"httpUrl": "http://localhost:1/mcp", "timeout": 5000},
  "off": {"command": "x"}}}`,
			want: entries{
				"py": {
					"command": "python", "args": []string{"-m", "s", "--port", "8080"}, "cwd": "./s", "env": pairs{"K": "${MY_KEY}", "L": "${OTHER}", "P": "5$"},
					"timeout": "15s", "call_timeout": "15s", "tools": map[string]any{"allow": []string{"safe"}},
				},
				"sse":  {"url": "http://localhost:1/sse", "type": "sse"},
				"http": {"url": "http://localhost:1/mcp", "timeout": "5s", "call_timeout": "5s"},
				"off":  {"command": "x", "disabled": true},
			},
			notes: pairs{"py": "has a relative path"},
		},
		// https://opencode.ai/docs/mcp-servers
		"opencode": {
			client: "opencode", file: ".config/opencode/opencode.jsonc",
			text: `{
  "$schema": "https://opencode.ai/config.json",
  "mcp": {
    "local": {"type": "local", "command": ["bun", "x", "my-mcp"], "enabled": false, "environment": {"K": "{env:MY_K}"}, "timeout": 7000},
    "remote": {"type": "remote", "url": "https://m.example.com", "headers": {"Authorization": "Bearer {env:T}", "X": "{file:~/x}"}, "oauth": false},
  }
}`,
			want: entries{
				"local":  {"command": "bun", "args": []string{"x", "my-mcp"}, "env": pairs{"K": "${MY_K}"}, "disabled": true, "timeout": "7s", "call_timeout": "7s"},
				"remote": {"url": "https://m.example.com", "headers": pairs{"Authorization": "Bearer ${T}", "X": "${file:${HOME}/x}"}, "oauth": "off"},
			},
		},
		// https://zed.dev/docs/ai/mcp
		"Zed": {
			client: "zed", file: ".config/zed/settings.json",
			text: `// Zed settings
{"theme": "One", "context_servers": {
  "local": {"source": "custom", "command": "some-command", "args": ["a"], "env": {}},
  "older": {"command": {"path": "p", "args": ["b"], "env": {"X": "1"}}, "settings": {}},
  "remote": {"url": "https://e.com", "headers": {"Authorization": "Bearer t"}},
  "postgres": {"source": "extension", "settings": {"url": "x"}}}}`,
			want: entries{
				"local":  {"command": "some-command", "args": []string{"a"}},
				"older":  {"command": "p", "args": []string{"b"}, "env": pairs{"X": "1"}},
				"remote": {"url": "https://e.com", "headers": pairs{"Authorization": "Bearer t"}},
			},
			left: pairs{"postgres": "editor extension"},
		},
		// https://docs.cline.bot/mcp/configuring-mcp-servers
		"Cline": {
			client: "cline", file: ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
			text: `{"mcpServers": {
  "local": {"command": "node", "args": ["/x.js"], "env": {"API_KEY": "k"}, "alwaysAllow": ["t"], "disabled": false, "timeout": 60},
  "mine": {"command": "~/bin/server", "cwd": "~"},
  "remote": {"url": "https://e.com/mcp", "type": "streamableHttp", "headers": {"Authorization": "Bearer k"}}}}`,
			want: entries{
				"local":  {"command": "node", "args": []string{"/x.js"}, "env": pairs{"API_KEY": "k"}, "timeout": "1m", "call_timeout": "1m"},
				"mine":   {"command": "~/bin/server", "cwd": "~"},
				"remote": {"url": "https://e.com/mcp", "type": "http", "headers": pairs{"Authorization": "Bearer k"}},
			},
		},
		// https://docs.continue.dev/customize/deep-dives/mcp
		"Continue": {
			client: "continue", file: ".continue/config.yaml",
			text: `name: mine
version: 1.0.0
schema: v1
mcpServers:
  - name: My SQLite
    command: npx
    args: ["-y", "mcp-sqlite", "/path/db"]
    env:
      KEY: ${{ secrets.MY_KEY }}
    connectionTimeout: 10000
  - name: hosted
    type: streamable-http
    url: https://e.com/mcp
    requestOptions: {headers: {Authorization: "Bearer ${{ secrets.T }}"}}
`,
			want: entries{
				"My-SQLite": {"command": "npx", "args": []string{"-y", "mcp-sqlite", "/path/db"}, "env": pairs{"KEY": "${MY_KEY}"}, "startup_timeout": "10s"},
				"hosted":    {"type": "http", "url": "https://e.com/mcp", "headers": pairs{"Authorization": "Bearer ${T}"}},
			},
			notes: pairs{"My-SQLite": `renamed to "My-SQLite"`},
		},
		// https://block.github.io/goose/docs/guides/config-files
		"goose": {
			client: "goose", file: ".config/goose/config.yaml",
			text: `GOOSE_PROVIDER: anthropic
extensions:
  developer: {enabled: true, type: builtin, name: developer, timeout: 300, bundled: true}
  fetch:
    enabled: false
    type: stdio
    name: fetch
    cmd: uvx
    args: [mcp-server-fetch]
    envs: {LEVEL: info}
    env_keys: [FETCH_KEY]
    available_tools: []
    timeout: 300
  remote: {enabled: true, type: streamable_http, name: remote, uri: "https://e.com/mcp", headers: {X: "${LEVEL} $KEY"}, envs: {LEVEL: "5$"}, env_keys: [KEY]}
`,
			want: entries{
				"fetch":  {"command": "uvx", "args": []string{"mcp-server-fetch"}, "env": pairs{"LEVEL": "info", "FETCH_KEY": "${FETCH_KEY}"}, "disabled": true, "timeout": "5m", "call_timeout": "5m"},
				"remote": {"type": "http", "url": "https://e.com/mcp", "headers": pairs{"X": "5$ ${KEY}"}},
			},
			left:  pairs{"developer": "built into the client"},
			needs: map[string]pairs{"fetch": {"FETCH_KEY": "a secret of the client"}, "remote": {"KEY": "a secret of the client"}},
		},
		// https://kiro.dev/docs/mcp/configuration
		"Kiro": {
			client: "kiro", file: ".kiro/settings/mcp.json",
			text: `{"mcpServers": {"a": {"command": "uvx", "args": ["x"], "env": {"K": "${K}"}, "disabled": true, "autoApprove": ["t"], "disabledTools": ["d"], "timeout": 60000}}}`,
			want: entries{"a": {"command": "uvx", "args": []string{"x"}, "env": pairs{"K": "${K}"}, "disabled": true, "timeout": "1m", "call_timeout": "1m", "tools": map[string]any{"deny": []string{"d"}}}},
		},
		// https://docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-mcp-config-CLI.html
		"Amazon Q Developer": {
			client: "amazon-q", file: ".aws/amazonq/mcp.json",
			text: `{"mcpServers": {"a": {"command": "x", "timeout": 120000, "disabled": false}}}`,
			want: entries{"a": {"command": "x", "timeout": "2m", "call_timeout": "2m"}},
		},
		// https://lmstudio.ai/docs/app/mcp
		"LM Studio": {
			client: "lm-studio", file: ".lmstudio/mcp.json",
			text: "\ufeff{\"mcpServers\": {\"hf\": {\"url\": \"https://huggingface.co/mcp\", \"headers\": {\"Authorization\": \"Bearer <t>\"}}}}",
			want: entries{"hf": {"url": "https://huggingface.co/mcp", "headers": pairs{"Authorization": "Bearer <t>"}}},
		},
		// https://www.jetbrains.com/help/junie/model-context-protocol-mcp.html
		"Junie": {
			client: "junie", file: ".junie/mcp/mcp.json",
			text: `{"mcpServers": {"a": {"command": "x", "enabled": false}}}`,
			want: entries{"a": {"command": "x", "disabled": true}},
		},
		// https://docs.github.com/en/copilot/how-tos/use-copilot-agents/use-copilot-cli
		"GitHub Copilot CLI": {
			client: "copilot", file: ".copilot/mcp-config.json",
			text: `{"mcpServers": {"a": {"type": "local", "command": "x", "tools": ["*"], "args": []}, "b": {"type": "http", "url": "https://e.com/mcp", "tools": ["t"]}, "c": {"type": "local", "command": "y", "tools": []}}}`,
			want: entries{
				"a": {"command": "x"},
				"b": {"type": "http", "url": "https://e.com/mcp", "tools": map[string]any{"allow": []string{"t"}}},
				"c": {"command": "y", "tools": map[string]any{"deny": []string{"*"}}},
			},
		},
		// https://kilocode.ai/docs/features/mcp/using-mcp-in-kilo-code
		"Kilo Code": {
			client: "kilo", file: ".config/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",
			text: `{"mcpServers": {"a": {"command": "x", "timeout": 30, "disabledTools": ["t"]}}}`,
			want: entries{"a": {"command": "x", "timeout": "30s", "call_timeout": "30s", "tools": map[string]any{"deny": []string{"t"}}}},
		},
		"what no client should have": {
			client: "cursor", file: ".cursor/mcp.json",
			text: `{"mcpServers": {"nothing": {}, "text": "x", "ws": {"type": "ws", "url": "ws://h"}, "bad args": {"command": "x", "args": {"a": 1}},
 "odd url": {"url": "ftp://x"}, "odd command": {"command": 7}, "odd type": {"type": "carrier-pigeon", "url": "https://h"}, "fine": {"command": "x"}, "socket": {"url": "unix:///run/x"},
 "line": {"command": "npx -y pkg", "args": ["a"], "sandboxEnabled": true}}}`,
			want:  entries{"fine": {"command": "x"}, "line": {"command": "npx", "args": []string{"-y", "pkg", "a"}}},
			notes: pairs{"line": "split as a shell would"},
			left: pairs{
				"nothing": "neither a command nor a URL", "text": "not a mapping", "ws": "WebSocket", "bad args": "not a list of texts",
				"odd url": "is invalid", "socket": "a local socket", "odd command": "not text", "odd type": `"carrier-pigeon"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{test.file: test.text})
			found := clientconfig.Find(test.client).Read(m)
			require.Len(t, found, 1)
			f := &found[0]
			require.NoError(t, f.Err)
			require.Equal(t, filepath.Join(dir, test.file), f.File)
			require.Equal(t, test.want, all(f))
			left := pairs{}
			for _, l := range f.Skipped {
				left[l.Name] = l.Reason
			}
			require.ElementsMatch(t, slices.Collect(maps.Keys(test.left)), slices.Collect(maps.Keys(left)))
			for name, why := range test.left {
				require.Contains(t, left[name], why)
			}
			for i := range f.Servers {
				s := &f.Servers[i]
				if note, ok := test.notes[s.Name]; ok {
					require.Contains(t, strings.Join(s.Notes, "\n"), note)
				} else {
					require.Empty(t, s.Notes, s.Name)
				}
				require.Equal(t, test.needs[s.Name], pairs(s.Needs))
			}
		})
	}
}

func TestAFileThatTheUserNamesIsReadInTheDialectOfItsPlaceOrItsContent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, text, about string }{
		"a project of VS Code":     {"p/.vscode/mcp.json", `{"servers": {"a": {"command": "${env:X}"}}}`, "${X}"},
		"a project of Claude Code": {"p/.mcp.json", `{"mcpServers": {"a": {"command": "${X}"}}}`, "${X}"},
		"a copy for Zed":           {"zed.json", `{"context_servers": {"a": {"command": "x"}}}`, "x"},
		"a copy for opencode":      {"o.json", `{"mcp": {"a": {"type": "local", "command": ["x"]}}}`, "x"},
		"a copy for VS Code":       {"v.json", `{"servers": {"a": {"command": "x"}}}`, "x"},
		"old settings of VS Code":  {"s.json", `{"mcp": {"servers": {"a": {"command": "x"}}}}`, "x"},
		"TOML":                     {"c.toml", "[mcp_servers.a]\ncommand = 'x'\n", "x"},
		"YAML of goose":            {"g.yaml", "extensions:\n  a: {cmd: x, type: stdio}\n", "x"},
		"YAML of Continue":         {"c.yaml", "mcpServers:\n- {name: a, command: x}\n", "x"},
		"YAML of others":           {"o.yaml", "mcpServers:\n  a: {command: x}\n", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{test.file: test.text})
			f := clientconfig.ReadFile(m, filepath.Join(dir, test.file))
			require.NoError(t, f.Err)
			require.Len(t, f.Servers, 1)
			require.Equal(t, test.about, f.Servers[0].Summary())
		})
	}
}

func TestLongNumbersOfAFileKeepTheirDigits(t *testing.T) {
	t.Parallel()
	m, _ := home(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"a": {"command": "x", "env": {"ID": 12345678901234567890}}}}`})
	require.Equal(t, map[string]string{"ID": "12345678901234567890"}, clientconfig.Find("cursor").Read(m)[0].Servers[0].Keys["env"])
}

func TestServersOfAProjectAreNamedAndLeftOut(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{"p/.cursor/mcp.json": `{"mcpServers": {"a": {"command": "x"}}}`, "p/opencode.json": `{`})
	m.Dir = filepath.Join(dir, "p")
	found := clientconfig.Find("cursor").Read(m)
	require.Len(t, found, 1)
	require.Empty(t, found[0].Servers)
	require.Equal(t, []clientconfig.Skipped{{Name: "a", Reason: "belongs to this project only; import it with --from .cursor/mcp.json"}}, found[0].Skipped)
	require.Empty(t, clientconfig.Find("opencode").Read(m), "not requested, so its mistakes are not reported")
}

func TestVariablesOfAFileAreTakenWithTheServer(t *testing.T) {
	t.Parallel()
	m, _ := home(t, map[string]string{
		".cursor/mcp.json": `{"mcpServers": {"a": {"command": "x", "envFile": "${userHome}/a.env", "env": {"B": "2"}}, "b": {"command": "x", "envFile": "${workspaceFolder}/.env"}, "c": {"command": "x", "envFile": "/none"}}}`,
		"a.env":            "A='1'\nB=old\nC=${raw}\n",
	})
	f := clientconfig.Find("cursor").Read(m)[0]
	require.Equal(t, pairs{"A": "1", "B": "2", "C": "$${raw}"}, f.Servers[0].Keys["env"])
	require.Contains(t, f.Servers[1].Notes[0], "envFile in a project;")
	require.Contains(t, f.Servers[2].Notes[0], "its variables are not imported")
}

func TestPlacesOfFilesOnEachSystem(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		system string
		env    map[string]string
		want   map[string]string
	}{
		"Linux": {"linux", pairs{"HOME": "/home/me"}, pairs{
			"claude-desktop": "/home/me/.config/Claude/claude_desktop_config.json",
			"claude-code":    "/home/me/.claude.json",
			"vscode":         "/home/me/.config/Code/User/mcp.json",
			"goose":          "/home/me/.config/goose/config.yaml",
			"zed":            "/home/me/.config/zed/settings.json",
			"codex":          "/home/me/.codex/config.toml",
		}},
		"Linux with other folders": {"linux", pairs{"HOME": "/home/me", "XDG_CONFIG_HOME": "/c", "CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/cc", "OPENCODE_CONFIG": "/oc.json"}, pairs{
			"claude-desktop": "/c/Claude/claude_desktop_config.json",
			"claude-code":    "/cc/.claude.json",
			"codex":          "/x/config.toml",
			"opencode":       "/oc.json",
		}},
		"macOS": {"darwin", pairs{"HOME": "/Users/me"}, pairs{
			"claude-desktop": "/Users/me/Library/Application Support/Claude/claude_desktop_config.json",
			"vscode":         "/Users/me/Library/Application Support/Code/User/mcp.json",
			"cline":          "/Users/me/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
			"zed":            "/Users/me/.config/zed/settings.json",
			"cursor":         "/Users/me/.cursor/mcp.json",
		}},
		"Windows": {"windows", pairs{"USERPROFILE": `C:\Users\me`, "APPDATA": `C:\Users\me\AppData\Roaming`}, pairs{
			"claude-desktop": `C:\Users\me\AppData\Roaming\Claude\claude_desktop_config.json`,
			"vscode":         `C:\Users\me\AppData\Roaming\Code\User\mcp.json`,
			"goose":          `C:\Users\me\AppData\Roaming\Block\goose\config\config.yaml`,
			"zed":            `C:\Users\me\AppData\Roaming\Zed\settings.json`,
			"cursor":         `C:\Users\me\.cursor\mcp.json`,
		}},
		"Windows with relative folders": {"windows", pairs{"USERPROFILE": `C:\Users\me`, "CODEX_HOME": "x", "XDG_CONFIG_HOME": "c", "OPENCODE_CONFIG": "oc.json"}, pairs{
			"codex":    "",
			"opencode": `C:\Users\me\.config\opencode\opencode.json`,
			"goose":    `C:\Users\me\AppData\Roaming\Block\goose\config\config.yaml`,
		}},
		"Windows, only relative": {"windows", pairs{"USERPROFILE": `me`}, pairs{"cursor": ""}},
		"nowhere":                {"linux", nil, pairs{"cursor": "", "claude-desktop": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for client, place := range test.want {
				require.Equal(t, place, clientconfig.Find(client).ConfigFile(machine(test.system, test.env)), client)
			}
		})
	}
}

// utf16le encodes a text as editors on Windows may write it.
func utf16le(text string) string {
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return string(out)
}

func TestFilesThatCannotBeReadSayWhyAndShowNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, file, text, want string }{
		"broken JSON":          {"cursor", ".cursor/mcp.json", "{\n\"sk-secret-123\" oops", "not valid JSON (line 2)"},
		"broken TOML":          {"codex", ".codex/config.toml", "a = 1\nb = sk-secret-123", "not valid TOML (line 2)"},
		"broken YAML":          {"goose", ".config/goose/config.yaml", "a: 1\n b: [sk-secret-123", "not valid YAML (line"},
		"YAML that is a text":  {"goose", ".config/goose/config.yaml", "sk-secret-123", "not valid YAML (line 1)"},
		"a list":               {"cursor", ".cursor/mcp.json", "[]", "top level is not a mapping"},
		"a section of text":    {"cursor", ".cursor/mcp.json", `{"mcpServers": "sk-secret-123"}`, "neither a mapping nor a list"},
		"two of one name":      {"cursor", ".cursor/mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\"},\n \"a\": {\"command\": \"sk-secret-123\"}}}", `duplicate entry "a" (line 2)`},
		"two secrets as names": {"cursor", ".cursor/mcp.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"sk-secret-123456789012345678\": \"\",\n \"sk-secret-123456789012345678\": \"\"}}}}", `duplicate entry "…" (line 2)`},
		"two in a list":        {"continue", ".continue/config.yaml", "mcpServers: [{name: a, command: x}, {name: a, command: y}]", `duplicate entry "a"`},
		"too deep":             {"cursor", ".cursor/mcp.json", `{"a": ` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + "}", "nested too deeply"},
		"much too deep":        {"goose", ".config/goose/config.yaml", "a: " + strings.Repeat("[", 20000), "nested too deeply"},
		"not text":             {"cursor", ".cursor/mcp.json", "{\x00}", "not valid UTF-8"},
		"half a character":     {"cursor", ".cursor/mcp.json", "\xff\xfe{", "incomplete UTF-16 character"},
		"many more than sane":  {"cursor", ".cursor/mcp.json", `{"mcpServers": {` + strings.TrimSuffix(many(1001), ",") + `}}`, "more than 1000 servers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{test.file: test.text})
			f := clientconfig.Find(test.client).Read(m)[0]
			require.ErrorContains(t, f.Err, test.want)
			require.ErrorContains(t, f.Err, filepath.Join(dir, test.file))
			require.NotContains(t, f.Err.Error(), "sk-secret-123")
			require.Empty(t, f.Servers)
		})
	}
	m, dir := home(t, map[string]string{".cursor/mcp.json": "{}"})
	require.NoError(t, os.Truncate(filepath.Join(dir, ".cursor/mcp.json"), 17<<20))
	require.ErrorContains(t, clientconfig.Find("cursor").Read(m)[0].Err, "larger than 16 MiB")
	m, dir = home(t, map[string]string{".cursor/mcp.json": utf16le(`{"mcpServers": {"ü": {"command": "x"}}}`), ".kiro/settings/x": ""})
	require.Equal(t, "ü", clientconfig.Find("cursor").Read(m)[0].Servers[0].OriginalName, "UTF-16 can be read")
	require.NoError(t, os.Symlink(filepath.Join(dir, "none"), filepath.Join(dir, ".kiro/settings/mcp.json")))
	require.ErrorContains(t, clientconfig.Find("kiro").Read(m)[0].Err, "a broken link")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".lmstudio/mcp.json"), 0o700))
	require.ErrorContains(t, clientconfig.Find("lm-studio").Read(m)[0].Err, "not a regular file")
}

func many(n int) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(`"s` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + `": {"command": "x"},`)
	}
	return out.String()
}

func TestEqualServersAreOneAndOthersOfTheNameGetTheClientsName(t *testing.T) {
	t.Parallel()
	m, _ := home(t, map[string]string{
		".cursor/mcp.json":        `{"mcpServers": {"files": {"command": "x", "args": ["a"], "disabled": true}, "db": {"command": "y"}, "there": {"command": "z"}, "twin": {"command": "x", "args": ["a"]}}}`,
		".kiro/settings/mcp.json": `{"mcpServers": {"files": {"command": "x", "args": ["a"], "timeout": 1000}, "db": {"command": "other"}, "there": {"command": "other"}}}`,
	})
	config := func(name string) map[string]any {
		if name == "there" {
			return map[string]any{"command": "z", "timeout": "5s"}
		}
		return nil
	}
	found := append(clientconfig.Find("cursor").Read(m), clientconfig.Find("kiro").Read(m)...)
	servers, present := clientconfig.Merge(found, config)
	byName := map[string]*clientconfig.Server{}
	for i := range servers {
		byName[servers[i].Name] = &servers[i]
	}
	require.ElementsMatch(t, []string{"files", "db", "twin", "db-kiro", "there-kiro"}, slices.Collect(maps.Keys(byName)))
	require.Equal(t, []string{"cursor", "kiro"}, byName["files"].Clients)
	require.NotContains(t, byName["files"].Keys, "disabled", "enabled in one of them")
	require.Equal(t, "from Cursor, Kiro", byName["files"].Comment())
	require.Equal(t, `from Kiro, named "db" there`, byName["db-kiro"].Comment())
	require.Contains(t, byName["db-kiro"].Notes[0], `another server is named "db"`)
	require.Len(t, present, 1)
	require.Equal(t, "there", present[0].Name)
}

func TestSecretsAreFoundAndReferredTo(t *testing.T) {
	t.Parallel()
	s := clientconfig.Server{Name: "a", Keys: map[string]any{
		"command": "x",
		"args":    []string{"--token", "hunter2hunter", "--api-key=k$${1}yyyyyy", "--name", "public", "https://u:passw0rd@h/x", "--token", "${T}", "--header", "Authorization: Bearer AAAA1111", "--header", "X-Api-Key: BBBB2222", "sk-ant-abcdefghijklmnop"},
		"env":     pairs{"API_KEY": "sk-1", "MODE": "fast", "TOKEN": "${TOKEN}", "EMPTY_TOKEN": ""},
		"headers": pairs{"Cookie": "tok", "X-Key": "k2", "Accept": "x/y"},
		"url":     "https://h/mcp?token=abcdef123456&api_key=a%2Fb%2Bcdefgh1&mode=ro",
		"oauth":   map[string]any{"client_id": "id", "client_secret": "cs"},
	}}
	before := s.Keys["env"].(pairs)["API_KEY"]
	keys, secrets := s.SplitSecrets(func(wanted, _ string) string { return wanted })
	kept := pairs{}
	for _, secret := range secrets {
		kept[secret.Name] = secret.Value
	}
	require.Equal(t, pairs{
		"a.token": "hunter2hunter", "a.api-key": "k${1}yyyyyy", "a.arg6": "u:passw0rd", "a.API_KEY": "sk-1",
		"a.Authorization": "AAAA1111", "a.X-Api-Key": "BBBB2222", "a.Cookie": "tok", "a.X-Key": "k2", "a.arg13": "sk-ant-abcdefghijklmnop", "a.token-2": "abcdef123456", "a.api_key": "a%2Fb%2Bcdefgh1", "a.client_secret": "cs",
	}, kept)
	require.Equal(t, map[string]any{
		"command": "x",
		"args":    []string{"--token", "${keyring:a.token}", "--api-key=${keyring:a.api-key}", "--name", "public", "https://${keyring:a.arg6}@h/x", "--token", "${T}", "--header", "Authorization: Bearer ${keyring:a.Authorization}", "--header", "X-Api-Key: ${keyring:a.X-Api-Key}", "${keyring:a.arg13}"},
		"env":     pairs{"API_KEY": "${keyring:a.API_KEY}", "MODE": "fast", "TOKEN": "${TOKEN}", "EMPTY_TOKEN": ""},
		"headers": pairs{"Cookie": "${keyring:a.Cookie}", "X-Key": "${keyring:a.X-Key}", "Accept": "x/y"},
		"url":     "https://h/mcp?token=${keyring:a.token-2}&api_key=${keyring:a.api_key}&mode=ro",
		"oauth":   map[string]any{"client_id": "id", "client_secret": "${keyring:a.client_secret}"},
	}, keys)
	require.Equal(t, before, s.Keys["env"].(pairs)["API_KEY"], "the entry is kept")
	require.True(t, clientconfig.Equal(s.Keys, clientconfig.WithSecrets(keys, func(name string) (string, error) { return kept[name], nil })))
}

func TestSecretsAreReplacedAsAWholeAndNothingElseIs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key         string
		given, want any
	}{
		"a header with a scheme":      {"headers", pairs{"Authorization": "Bearer AAAA1111"}, pairs{"Authorization": "Bearer ${keyring:a.Authorization}"}},
		"cookies":                     {"headers", pairs{"Cookie": "session=AAAA1111; theme=dark"}, pairs{"Cookie": "${keyring:a.Cookie}"}},
		"a value of parts":            {"headers", pairs{"X-Token": "v1; AAAA1111"}, pairs{"X-Token": "${keyring:a.X-Token}"}},
		"a value with a parameter":    {"headers", pairs{"X-Token": "t=AAAA1111 v"}, pairs{"X-Token": "${keyring:a.X-Token}"}},
		"short, with signs":           {"args", []string{"--password", "p@s"}, []string{"--password", "${keyring:a.password}"}},
		"short, with signs, assigned": {"args", []string{"--password=p@s"}, []string{"--password=${keyring:a.password}"}},
		"as short as can be":          {"args", []string{"--password=s"}, []string{"--password=${keyring:a.password}"}},
		"short, in others by chance":  {"args", []string{"--token", "abcde", "xabcdey", "xabcde"}, []string{"--token", "${keyring:a.token}", "xabcdey", "xabcde"}},
		"long, in others":             {"args", []string{"--token", "abcdef", "xabcdefy"}, []string{"--token", "${keyring:a.token}", "x${keyring:a.arg3}y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clientconfig.Server{Name: "a", Keys: map[string]any{test.key: test.given}}
			keys, _ := s.SplitSecrets(func(wanted, _ string) string { return wanted })
			require.Equal(t, map[string]any{test.key: test.want}, keys)
		})
	}
}

func TestWhatAServerIsAboutHoldsNoSecret(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		keys map[string]any
		want string
	}{
		{map[string]any{"command": "/usr/bin/npx", "args": []string{"-y", "@scope/pkg", "more"}}, "npx @scope/pkg"},
		{map[string]any{"command": "x", "args": []string{"--token", "hunter2hunter", "serve"}}, "x serve"},
		{map[string]any{"command": "x", "args": []string{"ghp_abcdefghijklmnopqrstuvwxyz0123456789AB", "550e8400e29b41d4a716446655440000"}}, "x"},
		{map[string]any{"command": "x", "args": []string{"--header", "Authorization: Bearer ", "serve"}}, "x serve"},
		{map[string]any{"command": "x", "args": []string{"https://user-token@h.example/", "serve"}}, "x serve"},
		{map[string]any{"url": "https://user:pw@h.example/secret-path?k=v"}, "https://h.example"},
		{map[string]any{"url": "https://h.example?k=v"}, "https://h.example"},
	} {
		s := clientconfig.Server{Keys: test.keys}
		require.Equal(t, test.want, s.Summary())
	}
}

// FuzzRead checks that reading any file finishes and returns only valid servers.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		`{"mcpServers": {"a": {"command": "x", "args": ["${env:X}", "$Y", "{env:Z}"]}}}`, "[mcp_servers.a]\ncommand = \"x\"\n",
		"extensions:\n  a: {cmd: x, envs: {A: 1}}\n", "mcpServers:\n- name: a\n  url: https://h/${{ secrets.X }}\n", `{"mcp": {"a": {"command": ["x"]}}}`,
		`{"mcp": {"servers": {"a": {"command": "x 'y z'", "env": ["A=b"], "//": 1}}}}`, `{"mcpServers": {"a": {"transport": {"url": "http://h"}, "requestInit": {"headers": ["A: b"]}}}}`,
	} {
		for _, c := range clientconfig.All {
			f.Add(c.Name, []byte(text))
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, client string, text []byte) {
		c := clientconfig.Find(client)
		if c == nil {
			return
		}
		m := machine("linux", map[string]string{"HOME": dir})
		path := c.ConfigFile(m)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, text, 0o600))
		for _, found := range c.Read(m) {
			for i := range found.Servers {
				s := &found.Servers[i]
				require.True(t, config.ValidName(s.Name))
				_ = s.Summary()
				_, _ = s.SplitSecrets(func(wanted, _ string) string { return wanted })
			}
		}
		require.NoError(t, os.Remove(path))
	})
}
