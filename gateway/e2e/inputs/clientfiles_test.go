//go:build e2e

package inputs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestEveryShapeOfOpencodesFileIsReadAndWritten(t *testing.T) {
	t.Parallel()
	const older, newer = `{"type":"local","command":["/bin/goblin","stdio"],"enabled":true}`, `{"type":"local","command":["/bin/goblin","stdio"]}`
	for name, test := range map[string]struct {
		before string
		has    []string // servers in the config
		off    string   // the one that is disabled
		path   []string // of Goblin's entry
		shape  string   // of the entry
	}{
		"current": {
			`{"mcp": {"servers": {"a": {"type": "local", "command": ["x"], "disabled": true}, "b": {"type": "remote", "url": "https://h/"}}}}`,
			[]string{"a", "b"},
			"a",
			[]string{"mcp", "servers"},
			newer,
		},
		"current, without servers": {`{"mcp": {"servers": {}}, "theme": "x"}`, nil, "", []string{"mcp", "servers"}, newer},
		"current, with a setting":  {`{"mcp": {"timeout": 5000, "servers": {"b": {"type": "local", "command": ["x"]}}}}`, []string{"b"}, "", []string{"mcp", "servers"}, newer},
		"older":                    {`{"mcp": {"a": {"type": "local", "command": ["x"], "enabled": false}, "b": {"type": "remote", "url": "https://h/"}}}`, []string{"a", "b"}, "a", []string{"mcp"}, older},
		"a server called servers":  {`{"mcp": {"servers": {"type": "local", "command": ["x"]}}}`, []string{"servers"}, "", []string{"mcp"}, older},
		"both":                     {`{"mcp": {"a": {"type": "local", "command": ["x"]}, "servers": {"b": {"type": "local", "command": ["y"]}}}}`, []string{"a", "b"}, "", []string{"mcp", "servers"}, newer},
		"a server called command":  {`{"mcp": {"servers": {"command": {"type": "local", "command": ["x"]}}}}`, []string{"command"}, "", []string{"mcp", "servers"}, newer},
		"neither":                  {"{\n  // mine\n  \"theme\": \"x\",\n}\n", nil, "", []string{"mcp"}, older},
	} {
		for _, client := range []struct{ name, file string }{{"opencode", "cfg/opencode/opencode.json"}, {"kilo", "cfg/kilo/kilo.jsonc"}} {
			t.Run(name+" for "+client.name, func(t *testing.T) {
				t.Parallel()
				w := e2e.NewWorld(t)
				w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
				file := put(t, w, client.file, test.before)
				w.Succeeds("init")
				if len(test.has) == 0 {
					put(t, w, "new.yaml", "servers: {z: {command: z}}\n")
				}
				for _, server := range test.has {
					require.Contains(t, contents(t, w.Config), "  "+server+":\n")
				}
				require.Equal(t, test.off != "", strings.Contains(contents(t, w.Config), "disabled: true"))

				w.Succeeds("install", client.name)
				var held map[string]any
				installed := contents(t, file)
				if name != "neither" { // which has comments
					require.NoError(t, json.Unmarshal([]byte(installed), &held))
					for _, key := range test.path {
						held, _ = held[key].(map[string]any)
					}
					entry, ok := held["goblin"].(map[string]any)
					require.True(t, ok, installed)
					var want map[string]any
					require.NoError(t, json.Unmarshal([]byte(test.shape), &want))
					delete(want, "command")
					delete(entry, "command")
					require.Equal(t, want, entry)
				}
				require.Contains(t, w.Succeeds("install", client.name), "is up to date")
				w.Succeeds("uninstall", client.name)
				require.Equal(t, test.before, contents(t, file))

				w.Succeeds("install", client.name, "--replace")
				for _, server := range test.has {
					require.Equal(t, server == test.off, strings.Contains(contents(t, file), `"`+server+`": {"type"`), "only servers that Goblin serves are replaced")
				}
				// The client has rewritten its file. The servers are restored in their
				// own form.
				held = nil
				require.NoError(t, json.Unmarshal(commentless(contents(t, file)), &held))
				put(t, w, client.file, string(e2e.Marshal(held)))
				w.Succeeds("uninstall", client.name)
				var was, is any
				require.NoError(t, json.Unmarshal(commentless(test.before), &was))
				require.NoError(t, json.Unmarshal([]byte(contents(t, file)), &is))
				if name != "neither" {
					require.Equal(t, was, is)
				}
			})
		}
	}
}

func TestFilesOfAmazonQAreReadAndWrittenWhereItLooks(t *testing.T) {
	t.Parallel()
	const ide, agents, cli, legacy = "default.json", "agents/default.json", "cli-agents/dev.json", "mcp.json"
	entry := func(name, more string) string {
		return `{"mcpServers": {"` + name + `": {"command": "x"}}` + more + `}`
	}
	for name, test := range map[string]struct {
		files map[string]string
		has   []string // in the config
		left  string   // reported as not used
		into  string   // where Goblin is put
		tools bool     // the agent there names its tools
	}{
		"nothing yet":                     {nil, nil, "", legacy, false},
		"mcp.json alone":                  {map[string]string{legacy: entry("old", "")}, []string{"old"}, "", legacy, false},
		"the dialog of editors":           {map[string]string{ide: entry("a", "")}, []string{"a"}, "", ide, false},
		"both, by default":                {map[string]string{ide: entry("a", ""), legacy: entry("old", "")}, []string{"a", "old"}, "", ide, false},
		"both, on":                        {map[string]string{ide: entry("a", `, "useLegacyMcpJson": true`), legacy: entry("old", "")}, []string{"a", "old"}, "", ide, false},
		"both, off":                       {map[string]string{ide: entry("a", `, "useLegacyMcpJson": false`), legacy: entry("old", "")}, []string{"a"}, "old", ide, false},
		"agents of editors":               {map[string]string{agents: entry("b", "")}, []string{"b"}, "", agents, false},
		"agents of the command line":      {map[string]string{cli: entry("c", ""), legacy: entry("old", "")}, []string{"c", "old"}, "", legacy, false},
		"agents of the command line, off": {map[string]string{cli: entry("c", `, "useLegacyMcpJson": false`), legacy: entry("old", "")}, []string{"c"}, "old", cli, false},
		"an agent that names its tools":   {map[string]string{ide: entry("a", `, "tools": ["@a"]`)}, []string{"a"}, "", ide, true},
		"all, off": {map[string]string{
			ide: entry("a", ""), agents: entry("b", `, "useLegacyMcpJson": false`), cli: entry("c", ""), legacy: entry("old", ""),
		}, []string{"a", "b", "c"}, "old", ide, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			const folder = "home/.aws/amazonq/"
			for file, text := range test.files {
				put(t, w, folder+file, text)
			}
			out := w.Succeeds("init")
			if len(test.has) == 0 {
				put(t, w, "new.yaml", "servers: {z: {command: z}}\n")
			} else {
				text := contents(t, w.Config)
				require.Equal(t, len(test.has), strings.Count(text, "command:"), text)
			}
			if test.left != "" {
				require.Contains(t, out, test.left+" (Amazon Q Developer): is in a file that Amazon Q ignores because useLegacyMcpJson is false")
			}
			out = w.Succeeds("install", "amazon-q")
			require.Equal(t, test.tools, strings.Contains(out, `the agent offers only the tools in "tools" of that file; add "@goblin"`))
			for _, file := range []string{ide, agents, cli, legacy} {
				text, err := os.ReadFile(filepath.Join(w.Dir, folder, file))
				require.Equal(t, file == test.into, err == nil && strings.Contains(string(text), `"goblin"`), file)
			}
			w.Succeeds("uninstall", "amazon-q")
			for _, file := range []string{ide, agents, cli, legacy} {
				text, err := os.ReadFile(filepath.Join(w.Dir, folder, file))
				require.Equal(t, test.files[file], string(text))
				require.Equal(t, test.files[file] == "", err != nil, "a file that Goblin created is removed")
			}
		})
	}
}

func TestGoblinComesAndGoesInFilesOfEveryForm(t *testing.T) {
	t.Parallel()
	const cursor, opencode, goose = "home/.cursor/mcp.json", "cfg/opencode/opencode.json", "cfg/goose/config.yaml"
	for name, test := range map[string]struct{ client, file, text string }{
		"a section that is null":          {"cursor", cursor, `{"mcpServers": null, "theme": "x"}`},
		"a section that is null, by line": {"cursor", cursor, "{\r\n\t\"theme\": \"x\", // mine\r\n\t\"mcpServers\": null\r\n}\r\n"},
		"an outer section that is null":   {"opencode", opencode, `{"mcp": null}`},
		"an inner section that is null":   {"opencode", opencode, `{"mcp": {"servers": null}}`},
		"a section of YAML that is null":  {"goose", goose, "GOOSE_MODE: auto\nextensions: null\n"},
		"a comment without a line break":  {"cursor", cursor, "// top\n{\"mcpServers\": {\n  \"a\": {\"command\": \"x\",}, /* z */\n},} // end"},
		"a byte order mark":               {"cursor", cursor, "\uFEFF{\"mcpServers\": {}}"},
		"nothing but spaces":              {"cursor", cursor, " \n\n"},
		"keys that are escaped":           {"cursor", cursor, `{"\u006dcpServers": {"a\u0062": {"command": "x"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			file := put(t, w, test.file, test.text)
			w.Succeeds("install", test.client)
			require.Contains(t, contents(t, file), "stdio")
			require.Contains(t, w.Succeeds("install", test.client), "is up to date")
			w.Succeeds("uninstall", test.client)
			require.Equal(t, test.text, contents(t, file))
		})
	}
}

func TestAFileWhoseSectionIsNoMappingStaysAndIsNamed(t *testing.T) {
	t.Parallel()
	for _, section := range []string{`[]`, `"x"`, `5`, `false`} {
		w := e2e.NewWorld(t)
		text := `{"mcpServers": ` + section + `}`
		file := put(t, w, "home/.cursor/mcp.json", text)
		out := w.Run("install", "cursor")
		require.Equal(t, 1, out.Code)
		require.Contains(t, out.Stderr, `mcp.json is unchanged: "mcpServers" is not a mapping`)
		require.Equal(t, text, contents(t, file))
	}
}

func TestAConfigMayEndInAComment(t *testing.T) {
	t.Parallel()
	w := jsonWorld(t, `"odd": {"command": "x"}`)
	put(t, w, "client.json", "// top\n"+strings.TrimSpace(contents(t, w.Config))+" // end")
	require.Regexp(t, `(?m)^odd +stdio +enabled`, w.Succeeds("validate"))
	put(t, w, "client.json", "{\"mcpServers\": {\n\"a\": ")
	out := w.Run("validate")
	require.Equal(t, 3, out.Code)
	require.Contains(t, out.Stderr, "client.json:2: not valid JSON: unexpected end of file")
}

func TestInitLosesNothingInSilence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, told string }{
		"two sections":             {`{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}}`, "2 servers"},
		"tools that are no list":   {`{"mcpServers": {"a": {"command": "x", "tools": 5}}}`, `has "tools" that are not a list; they are ignored`},
		"a URL that is no address": {`{"mcpServers": {"a": {"url": "not a url"}}}`, `is invalid: "url" must begin with http:// or https://`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			require.Contains(t, w.Succeeds("init", "--from", put(t, w, "some.json", test.text)), test.told)
		})
	}
}
