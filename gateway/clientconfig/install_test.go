package clientconfig_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/clientconfig"
)

const goblin = "/opt/goblin"

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func installed(t require.TestingT, c *clientconfig.Client, m clientconfig.Machine, state string, took ...string) *clientconfig.Change {
	ch, err := c.Install(m, state, goblin, []string{"stdio", "--config", "/c d.yaml"}, took)
	require.NoError(t, err)
	require.NoError(t, ch.Apply(noon))
	return ch
}

func read(t require.TestingT, path string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestGoblinIsPutIntoTheFileOfEachClientAndEveryOtherByteStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, file, before, after string }{
		"Claude Desktop": {
			"claude-desktop", ".config/Claude/claude_desktop_config.json",
			"{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}",
			"{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    },\n    \"goblin\": {\n      \"command\": \"/opt/goblin\",\n      \"args\": [\"stdio\", \"--config\", \"/c d.yaml\"]\n    }\n  }\n}",
		},
		"Claude Code, with much else": {
			"claude-code", ".claude.json",
			"{\n  \"numStartups\": 3,\n  \"projects\": {\"/a\": {\"mcpServers\": {}}}\n}\n",
			"{\n  \"numStartups\": 3,\n  \"projects\": {\"/a\": {\"mcpServers\": {}}},\n  \"mcpServers\": {\n    \"goblin\": {\n      \"command\": \"/opt/goblin\",\n      \"args\": [\"stdio\", \"--config\", \"/c d.yaml\"]\n    }\n  }\n}\n",
		},
		"VS Code, with comments and tabs": {
			"vscode", ".config/Code/User/mcp.json",
			"{\n\t// mine\n\t\"servers\": {\n\t\t\"a\": {\"command\": \"x\"}, // the first\n\t},\n\t\"inputs\": [],\n}\n",
			"{\n\t// mine\n\t\"servers\": {\n\t\t\"a\": {\"command\": \"x\"}, // the first\n\t\t\"goblin\": {\n\t\t\t\"command\": \"/opt/goblin\",\n\t\t\t\"args\": [\"stdio\", \"--config\", \"/c d.yaml\"],\n\t\t\t\"type\": \"stdio\"\n\t\t},\n\t},\n\t\"inputs\": [],\n}\n",
		},
		"Cursor, with line ends of Windows and a byte order mark": {
			"cursor", ".cursor/mcp.json",
			"\ufeff{\r\n  \"mcpServers\": {}\r\n}\r\n",
			"\ufeff{\r\n  \"mcpServers\": {\r\n    \"goblin\": {\r\n      \"command\": \"/opt/goblin\",\r\n      \"args\": [\"stdio\", \"--config\", \"/c d.yaml\"]\r\n    }\r\n  }\r\n}\r\n",
		},
		"Codex": {
			"codex", ".codex/config.toml",
			"model = \"o3\" # best\n\n[mcp_servers.a]\ncommand = 'x'",
			"model = \"o3\" # best\n\n[mcp_servers.a]\ncommand = 'x'\n\n[mcp_servers.goblin]\ncommand = \"/opt/goblin\"\nargs = [\"stdio\", \"--config\", \"/c d.yaml\"]\n",
		},
		"opencode": {
			"opencode", ".config/opencode/opencode.json",
			"{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
			"{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"goblin\": {\n      \"command\": [\"/opt/goblin\", \"stdio\", \"--config\", \"/c d.yaml\"],\n      \"type\": \"local\",\n      \"enabled\": true\n    }\n  }\n}\n",
		},
		"Zed": {
			"zed", ".config/zed/settings.json",
			"// Zed\n{\n  \"theme\": \"One\",\n  \"context_servers\": {},\n}\n",
			"// Zed\n{\n  \"theme\": \"One\",\n  \"context_servers\": {\n    \"goblin\": {\n      \"command\": \"/opt/goblin\",\n      \"args\": [\"stdio\", \"--config\", \"/c d.yaml\"],\n      \"env\": {},\n      \"source\": \"custom\"\n    }\n  },\n}\n",
		},
		"goose": {
			"goose", ".config/goose/config.yaml",
			"GOOSE_MODEL: x # fast\nextensions:\n  developer:\n    enabled: true\n    type: builtin\nOTHER: 1\n",
			"GOOSE_MODEL: x # fast\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n  goblin:\n    args: [stdio, --config, /c d.yaml]\n    type: stdio\n    cmd: /opt/goblin\n    enabled: true\n    name: goblin\n    timeout: 300\nOTHER: 1\n",
		},
		"Continue": {
			"continue", ".continue/config.yaml",
			"name: mine\nmcpServers:\n- name: a\n  command: x\n# end\nmodels: []\n",
			"name: mine\nmcpServers:\n- name: a\n  command: x\n- name: goblin\n  command: /opt/goblin\n  args: [\"stdio\", \"--config\", \"/c d.yaml\"]\n# end\nmodels: []\n",
		},
		"goose, without servers": {
			"goose", ".config/goose/config.yaml",
			"extensions:\nOTHER: 1\n",
			"extensions:\n  goblin:\n    args: [stdio, --config, /c d.yaml]\n    type: stdio\n    cmd: /opt/goblin\n    enabled: true\n    name: goblin\n    timeout: 300\nOTHER: 1\n",
		},
		"Continue, with an empty list": {
			"continue", ".continue/config.yaml",
			"name: mine\nmcpServers: [] # none\nmodels: []\n",
			"name: mine\nmcpServers: # none\n  - name: goblin\n    command: /opt/goblin\n    args: [\"stdio\", \"--config\", \"/c d.yaml\"]\nmodels: []\n",
		},
		"GitHub Copilot CLI": {
			"copilot", ".copilot/mcp-config.json",
			"",
			"{\n  \"mcpServers\": {\n    \"goblin\": {\n      \"command\": \"/opt/goblin\",\n      \"args\": [\"stdio\", \"--config\", \"/c d.yaml\"],\n      \"type\": \"local\",\n      \"tools\": [\"*\"]\n    }\n  }\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{test.file: test.before})
			path, state := filepath.Join(dir, test.file), filepath.Join(dir, "state")
			require.NoError(t, os.Chmod(path, 0o640))
			c := clientconfig.Find(test.client)
			ch := installed(t, c, m, state)
			require.Equal(t, test.after, read(t, path))
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode())
			copied, err := os.Stat(ch.Backup)
			require.NoError(t, err)
			require.Zero(t, copied.Mode().Perm()&^0o640, "the copy is as private as the file")
			require.Equal(t, path+".goblin-20260102-120000", ch.Backup)
			require.Equal(t, test.before, read(t, ch.Backup))

			twice, err := c.Install(m, state, goblin, []string{"stdio", "--config", "/c d.yaml"}, nil)
			require.NoError(t, err)
			require.True(t, twice.IsEmpty(), "a second time changes nothing")

			e, ok := c.Installed(m)
			require.True(t, ok)
			require.Equal(t, clientconfig.Entry{File: path, Command: goblin, Args: []string{"stdio", "--config", "/c d.yaml"}}, e)

			undone, err := c.Uninstall(m, state)
			require.NoError(t, err)
			require.NoError(t, undone.Apply(noon))
			require.Equal(t, test.before, read(t, path))
			left, err := os.ReadDir(filepath.Join(state, "clients"))
			require.NoError(t, err)
			require.Empty(t, left, "an undone change is forgotten")
			_, ok = c.Installed(m)
			require.False(t, ok)
			_, err = c.Uninstall(m, state)
			require.ErrorIs(t, err, clientconfig.ErrNone)
		})
	}
}

func TestGoblinIsNotPutWhereOnlyOlderVersionsLook(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{".config/Code/User/settings.json": `{"mcp": {"servers": {"a": {"command": "x"}}}}`})
	require.Equal(t, filepath.Join(dir, ".config/Code/User/mcp.json"), clientconfig.Find("vscode").ConfigFile(m))
}

func TestAFileThatWasMadeForGoblinGoesWithIt(t *testing.T) {
	t.Parallel()
	for _, c := range clientconfig.All {
		m, dir := home(t, nil)
		state := filepath.Join(dir, "state")
		require.NoError(t, os.MkdirAll(filepath.Dir(c.ConfigFile(m)), 0o700))
		ch := installed(t, c, m, state)
		require.Empty(t, ch.Backup, "there is nothing to keep")
		f := clientconfig.ReadFile(m, ch.File)
		require.NoError(t, f.Err, c.Name)
		require.Equal(t, []clientconfig.Skipped{{Name: clientconfig.EntryName, Reason: "is Goblin itself"}}, f.Skipped, c.Name)
		_, snippet, err := c.Snippet(m, goblin, []string{"stdio", "--config", "/c d.yaml"})
		require.NoError(t, err)
		require.Equal(t, read(t, ch.File), string(snippet), "--print shows the text to be written")

		undone, err := c.Uninstall(m, state)
		require.NoError(t, err)
		require.True(t, undone.Deletes)
		require.NoError(t, undone.Apply(noon))
		require.NoFileExists(t, ch.File)
	}
}

func TestAFileThatWasMadeForGoblinStaysIfTheUserAddedToIt(t *testing.T) {
	t.Parallel()
	m, dir := home(t, nil)
	state, c := filepath.Join(dir, "state"), clientconfig.Find("copilot")
	require.NoError(t, os.MkdirAll(filepath.Dir(c.ConfigFile(m)), 0o700))
	ch := installed(t, c, m, state)
	theirs := strings.Replace(read(t, ch.File), "{\n", "{\n  \"theirs\": 1,\n", 1)
	undone, err := c.Uninstall(m, state)
	require.NoError(t, err)
	require.True(t, undone.Deletes)
	require.NoError(t, os.WriteFile(ch.File, []byte(theirs), 0o600))
	require.ErrorContains(t, undone.Apply(noon), "changed by another program", "changed since it was read")
	require.Equal(t, theirs, read(t, ch.File))

	again, err := c.Install(m, state, "/new/goblin", []string{"stdio"}, nil)
	require.NoError(t, err)
	require.NoError(t, again.Apply(noon))
	undone, err = c.Uninstall(m, state)
	require.NoError(t, err)
	require.False(t, undone.Deletes)
	require.NoError(t, undone.Apply(noon))
	require.Contains(t, read(t, ch.File), "\"theirs\": 1")
	require.NotContains(t, read(t, ch.File), "goblin")
}

// The record is a file that a user may have copied or truncated.
func TestGoblinIsTakenOutWhateverTheRecordSays(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r map[string]any){
		"of another file":         func(r map[string]any) { r["path"] = "/other" },
		"of nothing":              func(r map[string]any) { clear(r) },
		"at a place before all":   func(r map[string]any) { r["at"] = -1 },
		"at a place behind all":   func(r map[string]any) { r["at"] = 1 << 20 },
		"at a place beyond count": func(r map[string]any) { r["at"] = math.MaxInt },
		"at another place":        func(r map[string]any) { r["at"] = 1 },
		"of another text":         func(r map[string]any) { r["new"] = "AAAA" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{".cursor/other": ""})
			state := filepath.Join(dir, "state")
			c := clientconfig.Find("cursor")
			ch := installed(t, c, m, state)
			kept, err := filepath.Glob(filepath.Join(state, "clients", "*"))
			require.NoError(t, err)
			require.Len(t, kept, 1)
			var record map[string]any
			require.NoError(t, json.Unmarshal([]byte(read(t, kept[0])), &record))
			change(record)
			text, err := json.Marshal(record)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(kept[0], text, 0o600))

			undone, err := c.Uninstall(m, state)
			require.NoError(t, err)
			require.False(t, undone.Deletes, "it may have existed before")
			require.NoError(t, undone.Apply(noon))
			require.NotContains(t, read(t, ch.File), "goblin")
		})
	}
}

func TestAnotherGoblinIsReplacedAndForeignEntriesStay(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{
		".cursor/mcp.json":        "{\n  \"mcpServers\": {\n    \"goblin\": {\"command\": \"/old/goblin\", \"args\": [\"stdio\"], \"env\": {\"A\": \"1\"}}\n  }\n}\n",
		".kiro/settings/mcp.json": `{"mcpServers": {"goblin": {"command": "/usr/bin/mushroom"}}}`,
	})
	state := filepath.Join(dir, "state")
	before := read(t, filepath.Join(dir, ".cursor/mcp.json"))
	ch := installed(t, clientconfig.Find("cursor"), m, state)
	require.Contains(t, read(t, ch.File), `"command": "/opt/goblin"`)
	require.Contains(t, read(t, ch.File), `"A": "1"`, "the user's additions are kept")
	undone, err := clientconfig.Find("cursor").Uninstall(m, state)
	require.NoError(t, err)
	require.Equal(t, before, string(undone.After))

	_, err = clientconfig.Find("kiro").Install(m, state, goblin, []string{"stdio"}, nil)
	require.ErrorContains(t, err, `an entry "goblin" that Goblin did not write`)
	_, err = clientconfig.Find("kiro").Uninstall(m, state)
	require.ErrorContains(t, err, `an entry "goblin" that Goblin did not write; remove it by`)
}

func TestServersThatGoblinServesAreTakenOutAndComeBack(t *testing.T) {
	t.Parallel()
	for client, file := range map[string]struct{ path, text string }{
		"cursor":   {".cursor/mcp.json", "{\"mcpServers\": {\n  // one\n  \"a\": {\"command\": \"x\", \"args\": [\"1\"]},\n  \"b\": {\"command\": \"y\"}, // two\n  \"c\": {\"url\": \"https://h/\"}\n}}\n"},
		"codex":    {".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\"\nargs = [\"1\"]\n\n# two\n[mcp_servers.b]\ncommand = \"y\"\n\n[mcp_servers.c]\nurl = \"https://h/\"\n\n[tools]\nx = 1\n"},
		"goose":    {".config/goose/config.yaml", "extensions:\n  a: {cmd: x, args: ['1'], type: stdio}\n  b:\n    cmd: y\n    type: stdio\n  c: {uri: 'https://h/', type: streamable_http}\n"},
		"continue": {".continue/config.yaml", "mcpServers:\n  - name: a\n    command: x\n    args: [\"1\"]\n  # two\n  - name: b\n    command: y\n  - name: c\n    url: https://h/\nmodels: []\n"},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{file.path: file.text})
			state := filepath.Join(dir, "state")
			c := clientconfig.Find(client)
			took := c.ServedNames(m, []map[string]any{{"command": "x", "args": []any{"1"}}, {"url": "https://h/", "timeout": "3s"}, {"command": "y", "args": []any{"other"}}})
			require.Equal(t, []string{"a", "c"}, took)
			ch := installed(t, c, m, state, took...)
			f := clientconfig.ReadFile(m, ch.File)
			require.Len(t, f.Servers, 1)
			require.Equal(t, "b", f.Servers[0].Name)

			// Another program has changed the file since. Its changes stay, and the
			// servers are restored.
			edited := read(t, ch.File)
			switch client {
			case "cursor":
				edited = "// theirs\n" + edited
			default:
				edited = "# theirs\n" + edited
			}
			require.NoError(t, os.WriteFile(ch.File, []byte(edited), 0o600))
			undone, err := c.Uninstall(m, state)
			require.NoError(t, err)
			require.Contains(t, string(undone.After), "theirs")
			require.True(t, strings.HasSuffix(string(undone.After), file.text), string(undone.After))
			require.NoError(t, os.WriteFile(ch.File, []byte(strings.SplitAfterN(edited, "\n", 2)[1]), 0o600))

			undone, err = c.Uninstall(m, state)
			require.NoError(t, err)
			require.NoError(t, undone.Apply(noon))
			require.Equal(t, file.text, read(t, ch.File))
		})
	}
}

func TestServersComeBackIntoAFileThatTheClientHasWrittenAnew(t *testing.T) {
	t.Parallel()
	for client, file := range map[string]struct{ path, before, edited, after string }{
		"cursor": {
			".cursor/mcp.json", `{"mcpServers": {"a": {"command": "x", "args": ["1"]}}}`,
			`{"mcpServers":{"b":{"command":"y"},"goblin":{"command":"/opt/goblin","args":["stdio"]}}}`,
			`{"mcpServers":{"b":{"command":"y"},"a": { "command": "x", "args": ["1"] }}}`,
		},
		"codex": {
			".codex/config.toml", "[mcp_servers.\"a b\"]\ncommand = \"x\"\nenv = { K = \"v\" }\n",
			"[mcp_servers.goblin]\nargs = ['stdio']\ncommand = '/opt/goblin'\n",
			"\n[mcp_servers.\"a b\"]\ncommand = \"x\"\nenv = { \"K\" = \"v\" }\n",
		},
		"continue": {
			".continue/config.yaml", "mcpServers:\n  - name: a\n    url: https://h/\n",
			"mcpServers:\n  - args: [stdio]\n    command: /opt/goblin\n    name: goblin\n",
			"mcpServers:\n  - name: a\n    url: \"https://h/\"\n",
		},
	} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{file.path: file.before})
			state := filepath.Join(dir, "state")
			c := clientconfig.Find(client)
			name := "a"
			if client == "codex" {
				name = "a b"
			}
			ch := installed(t, c, m, state, name)
			require.NoError(t, os.WriteFile(ch.File, []byte(file.edited), 0o600))
			undone, err := c.Uninstall(m, state)
			require.NoError(t, err)
			require.Equal(t, file.after, string(undone.After))
			require.Empty(t, undone.Note)

			// Installing another Goblin in between keeps the record.
			again, err := c.Install(m, state, "/new/goblin", []string{"stdio"}, nil)
			require.NoError(t, err)
			require.NoError(t, again.Apply(noon))
			undone, err = c.Uninstall(m, state)
			require.NoError(t, err)
			require.Equal(t, file.after, string(undone.After))

			// The record also survives if the user removed Goblin's entry.
			require.NoError(t, os.WriteFile(ch.File, nil, 0o600))
			undone, err = c.Uninstall(m, state)
			require.NoError(t, err)
			require.NoError(t, undone.Apply(noon))
			f := clientconfig.ReadFile(m, ch.File)
			require.Len(t, f.Servers, 1)
			require.Equal(t, name, f.Servers[0].OriginalName)
		})
	}
}

func TestAnEntryThatIsTurnedOffIsTurnedOn(t *testing.T) {
	t.Parallel()
	for client, file := range map[string]struct{ path, text, off string }{
		"cursor":   {".cursor/mcp.json", `{"mcpServers": {"goblin": {"command": "/opt/goblin", "args": ["stdio"], "disabled": true}}}`, `"disabled": true`},
		"codex":    {".codex/config.toml", "[mcp_servers.goblin]\ncommand = \"/opt/goblin\"\nargs = [\"stdio\"]\nenabled = false\n", "enabled = false"},
		"opencode": {".config/opencode/opencode.json", `{"mcp": {"goblin": {"type": "local", "command": ["/opt/goblin", "stdio"], "enabled": false}}}`, `"enabled": false`},
	} {
		m, _ := home(t, map[string]string{file.path: file.text})
		ch, err := clientconfig.Find(client).Install(m, "", goblin, []string{"stdio"}, nil)
		require.NoError(t, err)
		require.NotContains(t, string(ch.After), file.off)
		require.Contains(t, string(ch.After), goblin)
	}
	m, _ := home(t, map[string]string{".gemini/settings.json": `{"mcp": {"excluded": ["goblin"]}}`, ".kiro/settings/mcp.json": `{"mcpServers": {"goblin": {"url": "http://127.0.0.1:7331/mcp"}}}`})
	ch, err := clientconfig.Find("gemini").Install(m, "", goblin, []string{"stdio"}, nil)
	require.NoError(t, err)
	require.Contains(t, ch.Note, "Gemini CLI ignores it while")
	ch, err = clientconfig.Find("kiro").Install(m, "", goblin, []string{"stdio"}, nil)
	require.NoError(t, err)
	require.NotContains(t, string(ch.After), "7331", "the entry over HTTP is Goblin, too")
}

func TestWhatCannotBeUndoneIsNotDone(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{".cursor/mcp.json": "{}", "state": "no folder"})
	ch, err := clientconfig.Find("cursor").Install(m, filepath.Join(dir, "state"), goblin, []string{"stdio"}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, ch.Apply(noon), "save undo information")
	require.Equal(t, "{}", read(t, ch.File))
	require.Empty(t, ch.Backup)
}

func TestFilesThatCannotBeChangedSafelyStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, file, text, want string }{
		"broken":                 {"cursor", ".cursor/mcp.json", `{"mcpServers": `, "not valid JSON"},
		"two of one name":        {"cursor", ".cursor/mcp.json", `{"mcpServers": {}, "mcpServers": {}}`, "duplicate entry"},
		"UTF-16":                 {"cursor", ".cursor/mcp.json", utf16le(`{}`), "UTF-16"},
		"servers are a list":     {"cursor", ".cursor/mcp.json", `{"mcpServers": []}`, `"mcpServers" is not a mapping`},
		"a list in braces":       {"continue", ".continue/config.yaml", "mcpServers: [{name: a, command: x}]\n", "change it by hand"},
		"a TOML table in braces": {"codex", ".codex/config.toml", "mcp_servers = { a = { command = 'x' } }\n", "change it by hand"},
		"broken TOML":            {"codex", ".codex/config.toml", "a = \n", "not valid TOML"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, dir := home(t, map[string]string{test.file: test.text})
			_, err := clientconfig.Find(test.client).Install(m, filepath.Join(dir, "state"), goblin, []string{"stdio"}, nil)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, filepath.Join(dir, test.file))
			require.Equal(t, test.text, read(t, filepath.Join(dir, test.file)))
			left, err := os.ReadDir(filepath.Dir(filepath.Join(dir, test.file)))
			require.NoError(t, err)
			require.Len(t, left, 1, "no copy is left")
		})
	}
}

func TestAFileThatChangesMeanwhileStays(t *testing.T) {
	t.Parallel()
	huge, at := home(t, map[string]string{".cursor/mcp.json": "{}"})
	require.NoError(t, os.Truncate(filepath.Join(at, ".cursor/mcp.json"), 17<<20))
	_, err := clientconfig.Find("cursor").Install(huge, "", goblin, []string{"stdio"}, nil)
	require.ErrorContains(t, err, "larger than 16 MiB")
	m, dir := home(t, map[string]string{".cursor/mcp.json": "{}", ".kiro/settings/mcp.json": "{}", "dotfiles/lm.json": "{}"})
	c := clientconfig.Find("cursor")
	path := filepath.Join(dir, ".cursor/mcp.json")
	ch, err := c.Install(m, filepath.Join(dir, "state"), goblin, []string{"stdio"}, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(`{"theirs": 1}`), 0o600))
	require.ErrorContains(t, ch.Apply(noon), "changed by another program")
	require.Equal(t, `{"theirs": 1}`, read(t, path))
	remembered, err := os.ReadDir(filepath.Join(dir, "state/clients"))
	require.NoError(t, err)
	require.Empty(t, remembered, "there is nothing to undo")
	require.NoFileExists(t, path+".goblin-20260102-120000")

	path = filepath.Join(dir, ".kiro/settings/mcp.json")
	require.NoError(t, os.Chmod(path, 0o400))
	ch, err = clientconfig.Find("kiro").Install(m, "", goblin, []string{"stdio"}, nil)
	require.NoError(t, err)
	require.ErrorContains(t, ch.Apply(noon), "read-only")
	require.Equal(t, "{}", read(t, path))

	link := filepath.Join(dir, ".lmstudio/mcp.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(link), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "dotfiles/lm.json"), link))
	installed(t, clientconfig.Find("lm-studio"), m, filepath.Join(dir, "state"))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link is kept")
	require.Contains(t, read(t, filepath.Join(dir, "dotfiles/lm.json")), goblin)
}

func TestTheDifferenceShowsNoSecret(t *testing.T) {
	t.Parallel()
	lines, _ := home(t, map[string]string{".cursor/mcp.json": "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"env\": {\n        \"PIN\": \"s3cr3\\/\\u0041\"\n      }\n    }\n  }\n}\n"})
	one, err := clientconfig.Find("cursor").Install(lines, "", goblin, []string{"stdio"}, []string{"a"})
	require.NoError(t, err)
	require.Contains(t, one.Diff(), "-        \"PIN\": …\n")
	require.Contains(t, one.Diff(), "+      \"command\": \"/opt/goblin\",\n")
	require.NotContains(t, one.Diff(), "s3cr3")
	m, _ := home(t, map[string]string{".cursor/mcp.json": `{"mcpServers": {"a": {"command": "x", "args": ["--token", "hunter2hunter"], "env": {"API_KEY": "sk-123456"}}, "b": {"url": "https://h/", "headers": {"Authorization": "Bearer abcdefgh"}}}}`})
	ch, err := clientconfig.Find("cursor").Install(m, "", goblin, []string{"stdio"}, []string{"a", "b"})
	require.NoError(t, err)
	diff := ch.Diff()
	require.Contains(t, diff, "+    \"command\": \"/opt/goblin\"")
	for _, secret := range []string{"hunter2hunter", "sk-123456", "abcdefgh"} {
		require.NotContains(t, diff, secret)
	}
}

// Installing and uninstalling restores any file byte for byte, including servers that
// Goblin's entry replaces.
func TestInstallAndUninstallLeaveTheBytes(t *testing.T) {
	t.Parallel()
	m, dir := home(t, nil)
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(clientconfig.All).Draw(t, "client")
		path := c.ConfigFile(m)
		text := drawn(t, c.Name)
		if rapid.Bool().Draw(t, "CRLF") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		text = rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "mark") + text
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		state := filepath.Join(dir, "state")
		before := clientconfig.ReadFile(m, path)
		require.NoError(t, before.Err)
		var took []string
		for i := range before.Servers {
			if rapid.Bool().Draw(t, "replace") {
				took = append(took, before.Servers[i].OriginalName)
			}
		}
		ch, err := c.Install(m, state, goblin, []string{"stdio"}, took)
		require.NoError(t, err)
		require.NoError(t, ch.Apply(noon))
		require.Equal(t, text, read(t, ch.Backup))
		f := clientconfig.ReadFile(m, path)
		require.NoError(t, f.Err)
		require.NotEmpty(t, f.Skipped, "Goblin is in it")
		require.Len(t, f.Servers, len(before.Servers)-len(took))

		undone, err := c.Uninstall(m, state)
		require.NoError(t, err)
		require.NoError(t, undone.Apply(noon))
		require.NoFileExists(t, ch.Backup)
		require.Equal(t, text, read(t, path))
	})
}

// drawn returns a random file of a client with some servers.
func drawn(t *rapid.T, client string) string {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	count := rapid.IntRange(0, 3).Draw(t, "servers")
	var out strings.Builder
	switch client {
	case "codex":
		out.WriteString(pick("head", "", "# mine\nmodel = \"o3\"\n\n", "[tools]\nx = 1\n"))
		for i := range count {
			out.WriteString("[mcp_servers." + pick("quote", "", "\"") + string(rune('a'+i)))
			text := out.String()
			if strings.Count(text[strings.LastIndex(text, "\n")+1:], `"`) == 1 {
				out.WriteString(`"`)
			}
			out.WriteString("]" + pick("comment", "", " # [x]") + "\ncommand = " + pick("command", `"x"`, `'x'`) + "\n" + pick("args", "", "args = [\n  \"[y]\", # z\n]\n") + pick("between", "", "\n", "\n# next\n"))
		}
		return out.String() + pick("tail", "", "[profiles.x]\nmodel = \"y\"\n", "\n# end")
	case "goose", "continue":
		list := client == "continue"
		section := map[bool]string{true: "mcpServers", false: "extensions"}[list]
		out.WriteString(pick("head", "", "# a\nname: x\n", "---\nname: x\n") + section + ":" + pick("comment", "", " # {") + "\n")
		indent := pick("indent", "  ", "    ")
		for i := range max(count, 1) {
			name := string(rune('a' + i))
			out.WriteString(pick("before", "", "\n", indent+"# about\n"))
			if list {
				out.WriteString(indent + "- name: " + name + "\n" + indent + "  command: " + pick("command", "x", "\"x\" # y") + "\n")
			} else {
				out.WriteString(indent + name + ":" + pick("entry", " {cmd: x, type: stdio}", "\n"+indent+indent+"cmd: x\n"+indent+indent+"type: stdio # y") + "\n")
			}
		}
		return out.String() + pick("tail", "", "models: []\n", "\n# end\n")
	}
	section := map[string]string{"vscode": "servers", "zed": "context_servers", "opencode": "mcp", "kilo": "mcp"}[client]
	if section == "" {
		section = "mcpServers"
	}
	if pick("form", "lines", "line") == "line" {
		out.WriteString(`{"x":1,"` + section + `":{`)
		for i := range count {
			out.WriteString(pick("comma", "", " ") + `"` + string(rune('a'+i)) + `":{"command":"}"}`)
			if i < count-1 {
				out.WriteString(",")
			}
		}
		return out.String() + "}}" + pick("last", "", "\n")
	}
	tab := pick("step", "  ", "\t")
	out.WriteString(pick("top", "", "// {\n") + "{" + pick("comment", "", " // mine", " /* { */") + "\n" + tab + `"` + section + `": {` + "\n")
	for i := range count {
		comma := ","
		if i == count-1 {
			comma = pick("trailing", "", ",")
		}
		out.WriteString(tab + tab + `"` + string(rune('a'+i)) + `": ` + pick("entry", `{"command": "x"}`, `{"command": "}\"{", "args": ["]", "// no"]}`, `{"url": "https://h/x" }`) + comma + pick("end", "", " // {") + "\n")
	}
	return out.String() + tab + "}" + pick("more", "", ",\n"+tab+"\"other\": {}") + "\n}" + pick("last", "", "\n")
}

// FuzzInstall checks that Goblin either writes a correct file or refuses and writes
// nothing.
func FuzzInstall(f *testing.F) {
	for _, text := range []string{
		`{"mcpServers": {"a": {"command": "x"},}}`, "[mcp_servers.a]\ncommand = \"x\"\n", "extensions:\n  a: {cmd: x}\n", "mcpServers:\n- name: a\n  command: x\n",
		"", "{}", "# only\n", "a: &x {b: c}\nextensions: *x\n", "[[mcp_servers.a]]\n", "mcp_servers.a.command = 'x'\n",
	} {
		for _, name := range []string{"cursor", "codex", "goose", "continue"} {
			f.Add(name, []byte(text))
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
		before := clientconfig.ReadFile(m, path)
		ch, err := c.Install(m, dir, goblin, []string{"stdio"}, nil)
		if err != nil {
			require.Equal(t, string(text), read(t, path))
			return
		}
		require.NoError(t, ch.Apply(noon))
		require.NoError(t, os.Remove(ch.Backup))
		after := clientconfig.ReadFile(m, path)
		require.NoError(t, after.Err)
		require.Len(t, after.Servers, len(before.Servers))
		undone, err := c.Uninstall(m, dir)
		require.NoError(t, err)
		require.True(t, bytes.Equal(text, undone.After) || bytes.Contains(text, []byte("goblin")))
	})
}
