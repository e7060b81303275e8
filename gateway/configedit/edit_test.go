package configedit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"goblin/gateway/configedit"
)

// opened is a config with a text, in its own file; "" means no file.
func opened(t require.TestingT, dir, name, text string) *configedit.File {
	path := filepath.Join(dir, name)
	require.NoError(t, os.RemoveAll(path))
	if text != "" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
		require.NoError(t, os.Chmod(path, 0o640)) // regardless of the umask
	}
	f, err := configedit.Open(path)
	require.NoError(t, err, text)
	return f
}

var (
	program = configedit.Server{Name: "new", Keys: map[string]any{"command": "npx", "args": []string{"-y", "a b", "${X:-d}"}, "env": map[string]string{"K": "yes"}}}
	remote  = configedit.Server{Name: "new", Keys: map[string]any{"url": "https://example.com/mcp", "headers": map[string]string{"Authorization": "Bearer ${T}"}}}
)

func TestAServerIsAddedBehindTheOthersAndAllElseStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, before, after string }{
		"no file": {"c.yaml", "", `# Goblin's servers. "goblin validate" checks this file, "goblin edit" opens it.
servers:
  new:
    url: https://example.com/mcp
    headers:
      Authorization: Bearer ${T}
`},
		"YAML with comments": {"c.yaml", `# mine
servers:   # all of them
    a:  # the first
        command: x   # why
        args:
        - one   # two

    # b is off
    b: {command: y}
# the rest
gateway: {linger: 1m}
`, `# mine
servers:   # all of them
    a:  # the first
        command: x   # why
        args:
        - one   # two

    # b is off
    b: {command: y}
    new:
        url: https://example.com/mcp
        headers:
            Authorization: Bearer ${T}
# the rest
gateway: {linger: 1m}
`},
		"a text of many lines last": {"c.yaml", "servers:\n  a:\n    command: |\n      x\n\n      y\n", "servers:\n  a:\n    command: |\n      x\n\n      y\n  new:\n    url: https://example.com/mcp\n    headers:\n      Authorization: Bearer ${T}\n"},
		"no line break at the end":  {"c.yaml", "servers: {}\ngateway: {linger: 1m}", "servers: {\n  \"new\": {\n    \"url\": \"https://example.com/mcp\",\n    \"headers\": {\n      \"Authorization\": \"Bearer ${T}\"\n    }\n  }\n}\ngateway: {linger: 1m}"},
		"servers without any":       {"c.yaml", "servers:\n# none yet\nlog: {level: info}\n", "servers:\n  new:\n    url: https://example.com/mcp\n    headers:\n      Authorization: Bearer ${T}\n# none yet\nlog: {level: info}\n"},
		"no servers":                {"c.yaml", "log: {level: info}\n", "log: {level: info}\nservers:\n  new:\n    url: https://example.com/mcp\n    headers:\n      Authorization: Bearer ${T}\n"},
		"lines of Windows":          {"c.yaml", "servers:\r\n  a: {command: x}\r\n", "servers:\r\n  a: {command: x}\r\n  new:\r\n    url: https://example.com/mcp\r\n    headers:\r\n      Authorization: Bearer ${T}\r\n"},
		"JSON":                      {"c.json", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"}\n\t},\n\t\"other\": 1\n}", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"},\n\t\t\"new\": {\n\t\t\t\"url\": \"https://example.com/mcp\",\n\t\t\t\"headers\": {\n\t\t\t\t\"Authorization\": \"Bearer ${T}\"\n\t\t\t}\n\t\t}\n\t},\n\t\"other\": 1\n}"},
		"JSON with comments and a comma too many": {"c.json", "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // the first\n  },\n}\n", "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // the first\n    \"new\": {\n      \"url\": \"https://example.com/mcp\",\n      \"headers\": {\n        \"Authorization\": \"Bearer ${T}\"\n      }\n    },\n  },\n}\n"},
		"an empty file of JSON":                   {"c.json", "", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"url\": \"https://example.com/mcp\",\n      \"headers\": {\n        \"Authorization\": \"Bearer ${T}\"\n      }\n    }\n  }\n}\n"},
		"lines of both sorts":                     {"c.yaml", "servers:\r\n  a: {command: x}\n", "servers:\r\n  a: {command: x}\n  new:\n    url: https://example.com/mcp\n    headers:\n      Authorization: Bearer ${T}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f := opened(t, dir, test.file, test.before)
			require.NoError(t, f.Add(remote))
			require.Equal(t, test.after, string(f.Text()))
			require.NoError(t, f.Save())
			written, err := os.ReadFile(f.Path())
			require.NoError(t, err)
			require.Equal(t, test.after, string(written))
			if test.before != "" {
				info, err := os.Stat(f.Path())
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o640), info.Mode())
			}
			require.ErrorContains(t, f.Add(program), `server "new" already exists`)
		})
	}
}

func TestOddNamesCommentsAndEmptySectionsStay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, before, after string }{
		"a comment in empty braces": {"c.json", "{\"mcpServers\": {/* mine */}}\n", "{\"mcpServers\": {/* mine */\n  \"new\": {\n    \"url\": \"https://h/?a&b=<c>\"\n  }\n}}\n"},
		"servers that are null":     {"c.yaml", "servers: null # none\nlog: {level: info}\n", "servers:  # none\n  new:\n    url: https://h/?a&b=<c>\nlog: {level: info}\n"},
		"a name in escapes":         {"c.json", "{\"mcpServers\": {\n  \"\\ud83d\\ude00\": {\"command\": \"x\"}\n}}\n", "{\"mcpServers\": {\n  \"\\ud83d\\ude00\": {\"command\": \"x\"},\n  \"new\": {\n    \"url\": \"https://h/?a&b=<c>\"\n  }\n}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := opened(t, t.TempDir(), test.file, test.before)
			require.NoError(t, f.Add(configedit.Server{Name: "new", Keys: map[string]any{"url": "https://h/?a&b=<c>"}}))
			require.Equal(t, test.after, string(f.Text()))
		})
	}
	f := opened(t, t.TempDir(), "c.json", "{\"mcpServers\": {\"\\ud83d\\ude00\": {\"command\": \"x\"}}}")
	require.NoError(t, f.SetDisabled("😀", true))
	require.NoError(t, f.Remove("😀"))
	require.Equal(t, `{"mcpServers": {}}`, string(f.Text()))
}

func TestAConfigIsSavedAgainAndAgainButNeverWithAMistake(t *testing.T) {
	t.Parallel()
	f := opened(t, t.TempDir(), "c.yaml", "")
	require.True(t, f.IsNew())
	require.NoError(t, f.Add(configedit.Server{Name: "a", Comment: "of\n  evil: {command: x}", Keys: map[string]any{"command": "x"}}))
	require.Contains(t, string(f.Text()), "  # of evil: {command: x}\n  a:\n", "a comment is one line")
	require.NoError(t, f.Save())
	require.False(t, f.IsNew())
	require.NoError(t, f.Add(program))
	require.NoError(t, f.Save())
	saved := string(f.Text())
	require.NoError(t, f.Add(configedit.Server{Name: "wrong", Keys: map[string]any{"comand": "x"}}))
	require.ErrorContains(t, f.Save(), `unknown key "comand"`)
	written, err := os.ReadFile(f.Path())
	require.NoError(t, err)
	require.Equal(t, saved, string(written))
	info, err := os.Stat(f.Path())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

func TestChangesAtOnceAreAllMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "c.yaml")
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			err := configedit.ErrChanged
			for errors.Is(err, configedit.ErrChanged) {
				var f *configedit.File
				f, err = configedit.Open(path)
				if err == nil {
					err = f.Add(configedit.Server{Name: fmt.Sprintf("s%d", n), Keys: map[string]any{"command": "x"}})
				}
				if err == nil {
					err = f.Save()
				}
			}
			assert.NoError(t, err)
		})
	}
	all.Wait()
	folder, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Zero(t, folder.Mode().Perm()&0o077, "only the user can read it")
	f, err := configedit.Open(path)
	require.NoError(t, err)
	names, err := f.Servers()
	require.NoError(t, err)
	require.Len(t, names, 12)
}

func TestAServerIsTurnedOffAndOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, on, off string }{
		"YAML":                    {"c.yaml", "servers:\n  a:  # mine\n    # starts\n    command: x\n  b: {command: y}\n", "servers:\n  a:  # mine\n    # starts\n    disabled: true\n    command: x\n  b: {command: y}\n"},
		"YAML in braces":          {"c.yaml", "servers:\n  a: {command: x} # mine\n", "servers:\n  a: {disabled: true, command: x} # mine\n"},
		"a value that is printed": {"c.yaml", "servers:\n  a:\n    command: x\n    disabled: false # for now\n", "servers:\n  a:\n    command: x\n    disabled: true # for now\n"},
		"JSON":                    {"c.json", "{\"mcpServers\": {\n  \"a\": {\n    \"command\": \"x\"\n  }\n}}\n", "{\"mcpServers\": {\n  \"a\": {\n    \"disabled\": true,\n    \"command\": \"x\"\n  }\n}}\n"},
		"JSON on a line":          {"c.json", `{"mcpServers":{"a":{"command":"x"}}}`, `{"mcpServers":{"a":{"disabled": true, "command":"x"}}}`},
		"another client's key":    {"c.json", `{"mcpServers":{"a":{"command":"x","enabled":true}}}`, `{"mcpServers":{"a":{"command":"x","enabled":false}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := opened(t, t.TempDir(), test.file, test.on)
			require.NoError(t, f.SetDisabled("a", true))
			require.Equal(t, test.off, string(f.Text()))
			require.NoError(t, f.SetDisabled("a", true))
			require.Equal(t, test.off, string(f.Text()), "a second time changes nothing")
			require.NoError(t, f.SetDisabled("a", false))
			require.Equal(t, test.on, string(f.Text()))
			require.ErrorIs(t, f.SetDisabled("c", true), configedit.ErrNone)
		})
	}
}

func TestAServerThatWasTurnedOffByHandIsTurnedOn(t *testing.T) {
	t.Parallel()
	for before, after := range map[string]string{
		"servers:\n  a: {command: x, disabled: true}\n":              "servers:\n  a: {command: x}\n",
		"servers:\n  a: {disabled: true, command: x}\n":              "servers:\n  a: {command: x}\n",
		"servers:\n  a: {command: 'it''s', disabled: true}\n":        "servers:\n  a: {command: 'it''s'}\n",
		"servers:\n  a:\n    command: x\n    disabled: true # why\n": "servers:\n  a:\n    command: x\n    disabled: false # why\n",
	} {
		f := opened(t, t.TempDir(), "c.yaml", before)
		require.NoError(t, f.SetDisabled("a", false))
		require.Equal(t, after, string(f.Text()))
	}
}

func TestAServerIsTakenOutAndAllElseStays(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, before, after string }{
		"YAML":                        {"c.yaml", "# all\nservers:\n  # about a\n  a:\n    command: x # what\n\n    args: [y]\n\n  # about b\n  b: {command: z}\n", "# all\nservers:\n  # about a\n\n  # about b\n  b: {command: z}\n"},
		"the only one":                {"c.yaml", "servers:\n  a:\n    command: x\nlog: {level: info}\n", "servers:\nlog: {level: info}\n"},
		"YAML in braces":              {"c.yaml", "servers: {a: {command: x}, b: {command: y}}\n", "servers: {b: {command: y}}\n"},
		"behind letters beyond ASCII": {"c.yaml", "{log: {file: größe/∞}, servers: {a: {command: x}, b: {command: y}}}\n", "{log: {file: größe/∞}, servers: {b: {command: y}}}\n"},
		"behind those in JSON":        {"c.json", `{"note": "größer als ∞ 🧌", "mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`, `{"note": "größer als ∞ 🧌", "mcpServers": {"b": {"command": "y"}}}`},
		"JSON, the first":             {"c.json", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \"b\": {\"command\": \"y\"}\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"b\": {\"command\": \"y\"}\n  }\n}\n"},
		"JSON, the last":              {"c.json", "{\n  \"mcpServers\": {\n    \"b\": {\"command\": \"y\"}, // kept\n    \"a\": {\"command\": \"x\"}\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"b\": {\"command\": \"y\"} // kept\n  }\n}\n"},
		"JSON, the only":              {"c.json", `{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {}}`},
		"quotes and signs":            {"c.yaml", "servers:\n  \"a\":\n    command: \"}{,#\" # }\n  b: {command: 'it''s: {', args: [\"]\"]}\n", "servers:\n  b: {command: 'it''s: {', args: [\"]\"]}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := opened(t, t.TempDir(), test.file, test.before)
			require.NoError(t, f.Remove("a"))
			require.Equal(t, test.after, string(f.Text()))
			require.ErrorIs(t, f.Remove("a"), configedit.ErrNone)
		})
	}
}

func TestAConfigThatCannotBeChangedSafelyIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := opened(t, dir, "merged.yaml", "servers:\n  x: &x {command: x}\n  a: *x\n")
	require.Error(t, f.SetDisabled("a", true), "an alias, so both would be disabled")
	require.NotContains(t, string(f.Text()), "disabled")

	f = opened(t, dir, "changed.yaml", "servers:\n  a: {command: x}\n")
	require.NoError(t, f.Remove("a"))
	require.NoError(t, os.WriteFile(f.Path(), []byte("servers:\n  b: {command: x}\n"), 0o600))
	require.ErrorContains(t, f.Save(), "changed by another program")
	kept, err := os.ReadFile(f.Path())
	require.NoError(t, err)
	require.Equal(t, "servers:\n  b: {command: x}\n", string(kept))

	f = opened(t, dir, "read-only.yaml", "servers:\n  a: {command: x}\n")
	require.NoError(t, os.Chmod(f.Path(), 0o440))
	f, err = configedit.Open(f.Path())
	require.NoError(t, err)
	require.NoError(t, f.Remove("a"))
	require.ErrorContains(t, f.Save(), "read-only")

	target := filepath.Join(dir, "dotfiles.yaml")
	require.NoError(t, os.WriteFile(target, []byte("servers:\n  a: {command: x}\n"), 0o644))
	link := filepath.Join(dir, "link.yaml")
	require.NoError(t, os.Symlink(target, link))
	f, err = configedit.Open(link)
	require.NoError(t, err)
	require.NoError(t, f.Add(remote))
	require.NoError(t, f.Save())
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link is kept")

	for name, text := range map[string]string{"mistakes": "servers:\n  a: {comand: x}\n", "no YAML": "servers: [\n", "no mapping": "- a\n"} {
		path := filepath.Join(dir, "wrong.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := configedit.Open(path)
		require.ErrorContains(t, err, path, name)
	}
}

// Adding and removing a server restores the text, regardless of its surroundings.
func TestAServerThatIsAddedAndTakenOutLeavesTheBytes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		text, name := drawnConfig(t), "c.yaml"
		if text[0] == '{' {
			name = "c.json"
		}
		f := opened(t, dir, name, text)
		require.NoError(t, f.Add(program))
		require.NoError(t, f.SetDisabled("new", true))
		require.NoError(t, f.SetDisabled("new", false))
		require.NoError(t, f.Remove("new"), string(f.Text()))
		require.Equal(t, text, string(f.Text()))
	})
}

func drawnConfig(t *rapid.T) string {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	count := rapid.IntRange(1, 3).Draw(t, "servers")
	var out strings.Builder
	if rapid.Bool().Draw(t, "JSON") {
		nl, tab := "\n", pick("step", "  ", "\t")
		out.WriteString("{" + pick("comment", "", " // mine", " /* { */") + nl + tab + `"mcpServers": {` + nl)
		for i := range count {
			comma := ","
			if i == count-1 {
				comma = ""
			}
			out.WriteString(tab + tab + `"` + string(rune('a'+i)) + `": ` + pick("entry", `{"command": "x"}`, `{"command": "}\"{", "args": ["]", "// no"]}`, `{"url": "https://h/x" }`) + comma + pick("end", "", " // {") + nl)
		}
		out.WriteString(tab + "}" + nl + "}" + pick("last", "", nl))
		return out.String()
	}
	indent := pick("indent", "  ", "    ", " ")
	out.WriteString(pick("head", "", "# a\n\n", "log: {level: info}\n") + "servers:" + pick("comment", "", " # {") + "\n")
	for i := range count {
		out.WriteString(pick("before", "", "\n", indent+"# about\n") + indent + string(rune('a'+i)) + ":" + pick("entry",
			" {command: x}", " {command: \"}\", args: ['it''s', \"#\"]} # }", "\n"+indent+indent+"command: x\n"+indent+indent+"args:\n"+indent+indent+"- y # z",
			"\n"+indent+indent+"url: https://h/x # why") + "\n")
	}
	return out.String() + pick("tail", "", "\n# end\n", "gateway:\n  linger: 1m\n")
}

func FuzzEdits(f *testing.F) {
	for _, text := range []string{"servers:\n  a: {command: x}\n", "{\"mcpServers\":{\"a\":{\"command\":\"x\"},}}", "servers: {a: {url: 'http://h'}}\n", "servers:\n  a: &x\n    command: y\n  b: *x\n"} {
		f.Add([]byte(text))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(dir, "c.yaml")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		file, err := configedit.Open(path)
		if err != nil {
			return
		}
		names, err := file.Servers()
		if err != nil {
			return
		}
		for _, name := range names {
			_ = file.SetDisabled(name, true) // correct or refused; change compares
			_ = file.Set(name, "x: #", "env", "K")
			_ = file.Set(name, []string{"a", "x"}, "args")
			_ = file.Set(name, nil, "command")
		}
		_ = file.Add(remote)
		for _, name := range names {
			_ = file.Remove(name)
		}
	})
}
