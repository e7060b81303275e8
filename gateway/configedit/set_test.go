package configedit_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/configedit"
)

func TestAValueIsSetAndAllElseStays(t *testing.T) {
	t.Parallel()
	env := func(name string) []string { return []string{"env", name} }
	for name, test := range map[string]struct {
		file, before string
		path         []string
		value        any
		after        string
	}{
		"a text with a comment":     {"c.yaml", "servers:\n  a:  # mine\n    command: x # why\n    cwd: /tmp\n", []string{"command"}, "y z", "servers:\n  a:  # mine\n    command: y z # why\n    cwd: /tmp\n"},
		"quotes stay":               {"c.yaml", "servers:\n  a:\n    command: \"x\" # why\n    cwd: '/a b'\n", []string{"cwd"}, "it's", "servers:\n  a:\n    command: \"x\" # why\n    cwd: 'it''s'\n"},
		"a text that needs quotes":  {"c.yaml", "servers:\n  a:\n    command: x\n", []string{"command"}, "8080", "servers:\n  a:\n    command: \"8080\"\n"},
		"lines become one":          {"c.yaml", "servers:\n  a:\n    command: |-\n      x\n    cwd: y # why\n", []string{"command"}, "z", "servers:\n  a:\n    command: z\n    cwd: y # why\n"},
		"a variable":                {"c.yaml", "servers:\n  a:\n    command: x\n    env:\n      # the key\n      A: ${A} # why\n      B: b\n", env("A"), "${keyring:a.A}", "servers:\n  a:\n    command: x\n    env:\n      # the key\n      A: ${keyring:a.A} # why\n      B: b\n"},
		"a new variable":            {"c.yaml", "servers:\n  a:\n    env:\n      A: a\n    command: x\n\n  # b\n  b: {command: x}\n", env("B"), "b: #", "servers:\n  a:\n    env:\n      A: a\n      B: 'b: #'\n    command: x\n\n  # b\n  b: {command: x}\n"},
		"the first variable":        {"c.yaml", "servers:\n    a:\n        command: x", env("A"), "a", "servers:\n    a:\n        command: x\n        env:\n          A: a\n"},
		"the last variable goes":    {"c.yaml", "servers:\n  a:\n    env:\n      A: a\n    command: x\n", env("A"), nil, "servers:\n  a:\n    command: x\n"},
		"one of several goes":       {"c.yaml", "servers:\n  a:\n    env: {A: a, B: b}\n    command: x\n", env("A"), nil, "servers:\n  a:\n    env: {B: b}\n    command: x\n"},
		"an item of a list":         {"c.yaml", "servers:\n  a:\n    command: x\n    args:\n      - -y # yes\n      # the package\n      - \"pkg\"\n", []string{"args"}, []string{"-y", "pkg2", "/tmp"}, "servers:\n  a:\n    command: x\n    args:\n      - -y # yes\n      # the package\n      - \"pkg2\"\n      - /tmp\n"},
		"items go":                  {"c.yaml", "servers:\n  a:\n    command: x\n    args:\n    - a\n    - b # b\n    - c\n", []string{"args"}, []string{"a", "c"}, "servers:\n  a:\n    command: x\n    args:\n    - a\n    - c\n"},
		"a list in brackets":        {"c.yaml", "servers:\n  a:\n    command: x\n    args: [\"-y\", pkg] # why\n", []string{"args"}, []string{"-y", "-q", "a, b", "pkg"}, "servers:\n  a:\n    command: x\n    args: [\"-y\", -q, 'a, b', pkg] # why\n"},
		"braces":                    {"c.yaml", "servers:\n  a: {command: x, env: {A: a}} # why\n", env("B"), "b", "servers:\n  a: {command: x, env: {A: a, B: b}} # why\n"},
		"a new key in braces":       {"c.yaml", "servers:\n  a: {command: x} # why\n", []string{"args"}, []string{"z"}, "servers:\n  a: {command: x, args: [z]} # why\n"},
		"JSON":                      {"c.json", "{\"mcpServers\": {\n  \"a\": {\n    \"command\": \"x\", // why\n    \"env\": {\"A\": \"a\"}\n  }\n}}", env("A"), "<\"b\">", "{\"mcpServers\": {\n  \"a\": {\n    \"command\": \"x\", // why\n    \"env\": {\"A\": \"<\\\"b\\\">\"}\n  }\n}}"},
		"a new key in JSON":         {"c.json", "{\"mcpServers\": {\n  \"a\": {\n    \"command\": \"x\" // why\n  }\n}}", env("A"), "a", "{\"mcpServers\": {\n  \"a\": {\n    \"command\": \"x\", // why\n    \"env\": {\"A\": \"a\"}\n  }\n}}"},
		"items of JSON":             {"c.json", "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\n  \"a\", // a\n  \"b\"\n]}}}", []string{"args"}, []string{"a", "b", "c"}, "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"args\": [\n  \"a\", // a\n  \"b\",\n  \"c\"\n]}}}"},
		"lines of Windows":          {"c.yaml", "servers:\r\n  a:\r\n    command: x # why\r\n", []string{"command"}, "z", "servers:\r\n  a:\r\n    command: z # why\r\n"},
		"the same value":            {"c.yaml", "servers:\n  a:\n    command:   x\n", []string{"command"}, "x", "servers:\n  a:\n    command:   x\n"},
		"a key that is not there":   {"c.yaml", "servers:\n  a: {command: x}\n", env("A"), nil, "servers:\n  a: {command: x}\n"},
		"a mapping without a value": {"c.yaml", "servers:\n  a:\n    env: # none yet\n    command: x\n", env("A"), "a", "servers:\n  a:\n    env:\n      A: a\n    command: x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := opened(t, t.TempDir(), test.file, test.before)
			require.NoError(t, f.Set("a", test.value, test.path...))
			require.Equal(t, test.after, string(f.Text()))
			require.ErrorIs(t, f.Set("none", "x", "command"), configedit.ErrNone)
		})
	}
	for before, path := range map[string][]string{
		"servers:\n  x: &x {command: x}\n  a: *x\n":                                               {"command"},
		"servers:\n  x:\n    command: x\n    env: &e {A: a}\n  a:\n    command: x\n    env: *e\n": env("A"),
	} {
		f := opened(t, t.TempDir(), "c.yaml", before)
		require.ErrorContains(t, f.Set("a", "y", path...), "by hand", before)
		require.Equal(t, before, string(f.Text()))
	}
}

// A value that is set and set back restores the text, except quotes of a list.
func TestAValueThatIsSetAndRemovedLeavesTheBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text, name := drawnConfig(t), "c.yaml"
		if text[0] == '{' {
			name = "c.json"
		}
		f := opened(t, dir, name, text)
		value := rapid.StringOf(rapid.RuneFrom([]rune("a1:#'\"{}[],\\ \n-&*!|>%@ä😀"))).Draw(t, "value")
		require.NoError(t, f.Set("a", value, "env", "NEW"), text)
		require.NoError(t, f.Set("a", []string{value, "x"}, "tags"), string(f.Text()))
		require.NoError(t, f.Set("a", []string{"y", value, "x"}, "tags"), string(f.Text()))
		require.NoError(t, f.Set("a", nil, "tags"), string(f.Text()))
		require.NoError(t, f.Set("a", nil, "env", "NEW"), string(f.Text()))
		require.Equal(t, text, string(f.Text()))
	})
}

func TestAListMayBeginWithALineBreak(t *testing.T) {
	t.Parallel()
	f := opened(t, t.TempDir(), "c.yaml", "servers:\n  a:\n    command: x\n")
	require.NoError(t, f.Set("a", []string{"\na", "x"}, "args"))
	require.Contains(t, string(f.Text()), `    args: ["\na", x]`)
}

func TestTheLineOfAServerIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"servers:\n  a: {command: x}\n":                                     2,
		"# a:\nservers: {\n  b: {command: x},\n  \"a\": {command: x}}\n":    4,
		"{\"mcpServers\": {\n  \"b\": {},\n  \"a\": {\"command\": \"x\"}}}": 3,
		"servers:\n  b: [\n  a:\n":                                          3,
		"servers:\n  b: {comand: x}\n":                                      0,
		"{\"mcpServers\":\n\n {\"a\": {}":                                   3,
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.Equal(t, want, configedit.Line(path, "a"), text)
	}
	require.Zero(t, configedit.Line("/no/such/file", "a"))
}
