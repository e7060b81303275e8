//go:build e2e

package inputs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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
			require.Contains(t, w.Succeeds("install", test.client), "is as it should be")
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
		require.Contains(t, out.Stderr, `mcp.json stays as it is: "mcpServers" is not a mapping`)
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
	require.Contains(t, out.Stderr, "client.json:2: not valid JSON: it ends too early")
}

func TestInitLosesNothingInSilence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ text, told string }{
		"two sections":             {`{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}}`, "2 servers"},
		"tools that are no list":   {`{"mcpServers": {"a": {"command": "x", "tools": 5}}}`, `has "tools" that are no list; they are left out`},
		"a URL that is no address": {`{"mcpServers": {"a": {"url": "not a url"}}}`, `is not understood: "url" must begin with http:// or https://`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Written, w.Config = true, filepath.Join(w.Dir, "new.yaml")
			require.Contains(t, w.Succeeds("init", "--from", put(t, w, "some.json", test.text)), test.told)
		})
	}
}
