package clientconfig_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"goblin/gateway/clientconfig"
)

// Every secret in these files contains the word "hidden".
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
			c, state := clientconfig.Find(test.client), filepath.Join(dir, "state")
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

func TestTheDifferenceOfASingleLongLineIsShort(t *testing.T) {
	t.Parallel()
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf(`"ä%d":""`, i)
	}
	text := `{"mcpServers":{"a":{"command":"x","env":{` + strings.Join(keys, ",") + `}}}}`
	m, dir := home(t, map[string]string{".cursor/mcp.json": text})
	ch, err := clientconfig.Find("cursor").Install(m, filepath.Join(dir, "state"), goblin, []string{"stdio"}, nil)
	require.NoError(t, err)
	require.Less(t, len(ch.Diff()), 1000)
	require.Regexp(t, `(?m)^\+ *"goblin": \{$`, ch.Diff())
	require.Contains(t, ch.Diff(), goblin)
}

// FuzzDiff checks that the diff of any file shows none of its long values.
func FuzzDiff(f *testing.F) {
	for client, texts := range map[string][]string{
		"cursor":   {`{"mcpServers": {"a": {"command": "x", "args": ["SECRET=", /* SECRET */ 1]}}} // SECRET`},
		"codex":    {"[mcp_servers.a]\ncommand = \"\"\"\nSECRET\\\"\"\"\"\"\nargs = ['SECRET', [1, {a = 'SECRET', \"b.c\" = 2}]] # SECRET\n", "'a # b' . \"c\" = 1979-05-27 07:32:00 # x\n[[x.\"]\"]]\ny = '''\n''SECRET'''''\n"},
		"goose":    {"extensions:\n  a: {cmd: x, envs: {A: SECRET}} # SECRET\n  b: &x\n    cmd: |\n      SECRET\n  c: *x\n? [SECRET]\n: !SECRET x\n"},
		"continue": {"mcpServers:\n- name: a\n  command: \"SECRET\n    SECRET\"\n"},
	} {
		for _, text := range texts {
			f.Add(client, []byte(text))
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
		defer func() { require.NoError(t, os.Remove(path)) }()
		ch, err := c.Install(m, "", goblin, []string{"stdio"}, []string{"a"})
		if err != nil {
			return
		}
		var held any
		if client == "codex" {
			err = toml.Unmarshal(text, &held)
		} else {
			err = yaml.Unmarshal(text, &held)
		}
		if diff := ch.Diff(); err == nil && !keyedBy(held) {
			require.NotContains(t, diff, "SECRET")
		}
	})
}

// keyedBy reports whether a key within a value contains the secret. Keys are shown.
func keyedBy(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if strings.Contains(key, "SECRET") || keyedBy(inner) {
				return true
			}
		}
	case map[any]any:
		for key, inner := range v {
			if strings.Contains(fmt.Sprint(key), "SECRET") || keyedBy(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, keyedBy)
	case []map[string]any:
		return slices.ContainsFunc(v, func(inner map[string]any) bool { return keyedBy(inner) })
	}
	return false
}
