//go:build e2e

package security

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// clientFile writes the file of a client below the home of a world.
func clientFile(t *testing.T, w *e2e.World, path, text string) string {
	t.Helper()
	path = filepath.Join(w.Dir, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// environServer returns a server that reports its environment, as an entry of a client.
func environServer(w *e2e.World, name string, env map[string]string) e2e.Obj {
	_, script := w.Fake(name, e2e.Obj{"tools": []e2e.Obj{e2e.Tool("env")}, "on": e2e.Obj{"tools/call env": e2e.Actions(e2e.Do("env"))}})
	return e2e.Obj{"command": e2e.TestServer, "args": []string{script}, "env": env}
}

// Text that is plain in a client reaches the server as it is. Only references that the client
// itself resolves are references in Goblin's config.
func TestTextThatIsPlainInAClientStaysPlain(t *testing.T) {
	t.Parallel()
	for client, test := range map[string]struct{ file, section string }{
		"cursor":      {"home/.cursor/mcp.json", "mcpServers"},
		"vscode":      {"cfg/Code/User/mcp.json", "servers"},
		"cline":       {"cfg/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "mcpServers"},
		"kilo":        {"home/.kilocode/cli/global/settings/mcp_settings.json", "mcpServers"},
		"kiro":        {"home/.kiro/settings/mcp.json", "mcpServers"},
		"junie":       {"home/.junie/mcp/mcp.json", "mcpServers"},
		"amazon-q":    {"home/.aws/amazonq/mcp.json", "mcpServers"},
		"claude-code": {"home/.claude.json", "mcpServers"},
		"gemini":      {"home/.gemini/settings.json", "mcpServers"},
		"copilot":     {"home/.copilot/mcp-config.json", "mcpServers"},
		"zed":         {"cfg/zed/settings.json", "context_servers"},
		"lm-studio":   {"home/.lmstudio/mcp.json", "mcpServers"},
		"a file":      {"some.json", "mcpServers"},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			secret, ran := clientFile(t, w, "secret", sentinel), filepath.Join(w.Dir, "ran")
			plain := map[string]string{
				"A": "${file:" + secret + "}", "B": "x${cmd:touch " + ran + "}", "C": "${keyring:team/key}",
				"D": "$${file:" + secret + "}", "E": "$$${file:" + secret + "}", "F": "{file:" + secret + "}",
				"G": "${file:~/../secret}", "H": "${{ file:" + secret + " }}",
			}
			file := clientFile(t, w, test.file, string(e2e.Marshal(e2e.Obj{test.section: e2e.Obj{"s": environServer(w, "s", plain)}})))
			from := client
			if client == "a file" {
				from = file
			}
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			said := w.Succeeds("init", "--from", from, "--yes")
			require.Contains(t, said, "has ${file:…}", "it is reported")
			got := w.Succeeds("call", "s_env")
			require.NotContains(t, got, sentinel)
			for name, value := range plain {
				require.Contains(t, got, string(e2e.Marshal(name+"="+value)), "%s of %s", name, said)
			}
			require.NoFileExists(t, ran)
		})
	}
}

// Names of variables in a client's file are no way to write references.
func TestNamesOfVariablesAreNoReferences(t *testing.T) {
	t.Parallel()
	for client, test := range map[string]struct{ file, text string }{
		"goose":  {"cfg/goose/config.yaml", "extensions:\n  s: {enabled: true, type: stdio, cmd: %s, args: [x], env_keys: ['cmd:touch %s', 'file:%s']}\n"},
		"codex":  {"home/.codex/config.toml", "[mcp_servers.s]\ncommand = '%s'\nenv_vars = ['cmd:touch %s', '${file:%s}']\n"},
		"cursor": {"home/.cursor/mcp.json", `{"mcpServers": {"s": {"command": "%s", "env": [{"name": "cmd:touch %s"}, {"name": "file:%s"}]}}}`},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			secret, ran := clientFile(t, w, "secret", sentinel), filepath.Join(w.Dir, "ran")
			clientFile(t, w, test.file, fmt.Sprintf(test.text, e2e.TestServer, ran, secret))
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			w.Succeeds("init", "--from", client, "--yes")
			made, err := os.ReadFile(w.Config)
			require.NoError(t, err)
			require.Contains(t, string(made), e2e.TestServer)
			for _, reference := range []string{"${cmd:", "${file:"} {
				require.NotContains(t, strings.ReplaceAll(string(made), "$"+reference, ""), reference)
			}
		})
	}
}

// Windsurf, opencode and Kilo read files themselves.
func TestReferencesThatAClientResolvesStayReferences(t *testing.T) {
	t.Parallel()
	for client, test := range map[string]struct{ file, reference string }{
		"windsurf": {"home/.codeium/windsurf/mcp_config.json", "${file:%s}"},
		"opencode": {"cfg/opencode/opencode.json", "{file:%s}"},
		"kilo":     {"cfg/kilo/kilo.jsonc", "{file:%s}"},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			secret := clientFile(t, w, "secret", sentinel+"\n")
			entry := environServer(w, "s", map[string]string{"A": fmt.Sprintf(test.reference, secret)})
			file := e2e.Obj{"mcpServers": e2e.Obj{"s": entry}}
			if client != "windsurf" {
				command := append([]string{entry["command"].(string)}, entry["args"].([]string)...)
				file = e2e.Obj{"mcp": e2e.Obj{"s": e2e.Obj{"type": "local", "command": command, "environment": entry["env"]}}}
			}
			clientFile(t, w, test.file, string(e2e.Marshal(file)))
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			w.Succeeds("init", "--from", client, "--yes")
			require.Contains(t, w.Succeeds("call", "s_env"), `"A=`+sentinel+`"`)
		})
	}
}

// A path that a client would change is refused before anything is written.
func TestInstallWritesNoPathThatTheClientWouldReplace(t *testing.T) {
	t.Parallel()
	for client, test := range map[string]struct {
		file, text, folder string
		refused            bool
	}{
		"cursor":         {"home/.cursor/mcp.json", "{}", "a ${env:HOME}", true},
		"claude-code":    {"home/.claude.json", "{}", "a ${HOME}", true},
		"gemini":         {"home/.gemini/settings.json", "{}", "a $HOME", true},
		"opencode":       {"cfg/opencode/opencode.json", "{}", "a {file:x}", true},
		"continue":       {"home/.continue/config.yaml", "name: x\n", "a ${{ secrets.X }}", true},
		"claude-desktop": {"cfg/Claude/claude_desktop_config.json", "{}", "a ${HOME} $HOME {env:HOME}", false},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			path := clientFile(t, w, test.file, test.text)
			w.Written, w.Config = true, clientFile(t, w, filepath.Join(test.folder, "goblin.yaml"), "servers: {}\n")
			out := w.Run("install", client, "--config", w.Config)
			now, err := os.ReadFile(path)
			require.NoError(t, err)
			if !test.refused {
				require.Zero(t, out.Code, out.Stderr)
				require.Contains(t, string(now), test.folder)
				return
			}
			require.Equal(t, 1, out.Code)
			require.Contains(t, out.Stderr, "would expand a variable in")
			require.Equal(t, test.text, string(now))
		})
	}
}

// Several processes change the files of clients at once. In the end, uninstall restores the
// bytes.
func TestUninstallRestoresTheFileAfterInstallsAtOnce(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	entries := e2e.Obj{}
	for i := range 20 {
		name := fmt.Sprintf("s%d", i)
		entries[name] = environServer(w, name, map[string]string{"N": name})
	}
	text, err := json.MarshalIndent(e2e.Obj{"mcpServers": entries}, "", "  ")
	require.NoError(t, err)
	files := []string{clientFile(t, w, "home/.cursor/mcp.json", string(text)), clientFile(t, w, "home/.kiro/settings/mcp.json", string(text))}
	w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
	w.Succeeds("init", "--from", "cursor", "--yes")
	w.Succeeds("install", "kiro", "--replace") // the servers list once, so that later installs are fast
	w.Succeeds("uninstall", "kiro")
	for round := range 5 {
		var all sync.WaitGroup
		for i, args := range [][]string{
			{"install", "cursor", "--replace"},
			{"install", "kiro", "--replace"},
			{"install", "cursor", "--replace"},
			{"install", "kiro", "--replace"},
			{"uninstall", "kiro"},
		} {
			all.Go(func() {
				cmd := exec.Command(e2e.Goblin, args...)
				cmd.Env = w.Environ()
				out, err := cmd.CombinedOutput()
				if i < 4 { // an uninstall may come first
					require.NoError(t, err, "%s", out)
				}
			})
		}
		all.Wait()
		w.Succeeds("install", "kiro", "--replace")
		for i, client := range []string{"cursor", "kiro"} {
			w.Succeeds("uninstall", client)
			now, err := os.ReadFile(files[i])
			require.NoError(t, err)
			require.Equal(t, string(text), string(now), "%s in round %d", client, round)
		}
		left, err := filepath.Glob(files[0] + ".goblin-*")
		require.NoError(t, err)
		require.Empty(t, left, "copies for no change")
	}
}

// No command shows values of a client's file.
func TestTheDifferenceOfAClientsFileHidesSecrets(t *testing.T) {
	t.Parallel()
	for client, test := range map[string]struct{ file, text, shown string }{
		"cursor": {"home/.cursor/mcp.json", `{
  // SECRET
  "other": ["SECRET="],
  "mcpServers": {
    "s": {
      "command": "COMMAND",
      "args": ["SCRIPT",
        "--token", "SECRET",
        "SECRET==", /* SECRET
        "SECRET": SECRET */
        "--api-key=SECRET", "https://u:SECRET@h/?k=SECRET", "SECRET"
      ],
      "env": {"KEY": "SECRET\nSECRET", "PIN": "SECRET=="}
    }
  }
}
`, "PIN"},
		"codex": {"home/.codex/config.toml", `model = "x"
[mcp_servers.s]
command = 'COMMAND' # SECRET
args = ["SCRIPT",
  "SECRET==", 'SECRET',
  "https://u:SECRET@h/?k=SECRET"]
[mcp_servers.s.env]
KEY = """
SECRET = SECRET
SECRET"""
PIN = 'SECRET=='
`, "PIN"},
		"goose": {"cfg/goose/config.yaml", `extensions:
  s: # SECRET
    enabled: true
    type: stdio
    name: s
    cmd: COMMAND
    args:
    - SCRIPT
    - SECRET==
    - SECRET=SECRET
    - |
      SECRET: SECRET
      SECRET
    envs:
      KEY: >-
        SECRET = SECRET
        SECRET
      PIN: SECRET
`, "PIN"},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			script := environServer(w, "s", nil)["args"].([]string)[0]
			text := strings.NewReplacer("COMMAND", e2e.TestServer, "SCRIPT", script, "SECRET", sentinel).Replace(test.text)
			clientFile(t, w, test.file, text)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			for _, args := range [][]string{
				{"init", "--from", client, "--dry-run"},
				{"init", "--from", client, "--yes"},
				{"install", client, "--replace", "--dry-run"},
				{"install", client, "--replace", "--dry-run", "--json"},
				{"install", client, "--replace"},
				{"uninstall", client, "--dry-run"},
				{"install", client, "--dry-run"},
				{"uninstall", client},
			} {
				out := w.Run(args...)
				require.Zero(t, out.Code, "%v: %s", args, out.Stderr)
				keepsSecret(w, strings.Join(args, " "), out.Stdout+out.Stderr)
				if strings.HasPrefix(strings.Join(args[2:], " "), "--replace --dry-run") {
					require.Contains(t, out.Stdout, test.shown)
					require.Contains(t, out.Stdout, "goblin")
				}
			}
		})
	}
}
