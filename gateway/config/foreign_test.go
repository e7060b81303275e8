package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
)

func TestACommandLineIsDividedByTheRulesOfAShell(t *testing.T) {
	t.Parallel()
	type entry = map[string]any
	for line, want := range map[string]entry{
		`npx -y pkg --flag 'a b'`:                  {"command": "npx", "args": []any{"-y", "pkg", "--flag", "a b"}},
		`npx "a \"b\" \x" ''`:                      {"command": "npx", "args": []any{`a "b" \x`, ""}},
		`npx a\ b c\\d`:                            {"command": "npx", "args": []any{"a b", `c\d`}},
		`npx 'it'\''s'`:                            {"command": "npx", "args": []any{"it's"}},
		`npx ${A:-x y} "${B C}" {env:D E}`:         {"command": "npx", "args": []any{"${A:-x y}", "${B C}", "{env:D E}"}},
		`  npx  `:                                  {"command": "  npx  "},
		`'/my tools/run'`:                          {"command": "/my tools/run"},
		`A=1 B='x y' npx z`:                        {"command": "npx", "args": []any{"z"}, "env": entry{"A": "1", "B": "x y"}},
		`npx mcp-remote https://h/?a=1&b=2`:        {"command": "npx", "args": []any{"mcp-remote", "https://h/?a=1&b=2"}},
		`npx x '&&' "|"`:                           {"command": "npx", "args": []any{"x", "&&", "|"}},
		`C:\Program Files\nodejs\npx.cmd`:          {"command": `C:\Program Files\nodejs\npx.cmd`},
		`C:\Program Files\nodejs\npx.cmd -y "a b"`: {"command": `C:\Program Files\nodejs\npx.cmd`, "args": []any{"-y", "a b"}},
		`"C:\Program Files\nodejs\npx.cmd" -y x`:   {"command": `C:\Program Files\nodejs\npx.cmd`, "args": []any{"-y", "x"}},
		`\\host\My Share\x.exe /q`:                 {"command": `\\host\My Share\x.exe`, "args": []any{"/q"}},
		`D:\no extension here`:                     {"command": `D:\no extension here`},
		`there is such a file`:                     {"command": `there is such a file`},
		`/opt/my tools/run --fast`:                 {"command": "/opt/my tools/run", "args": []any{"--fast"}},
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			out, _, why := config.Translate(entry{"command": line}, func(command string) bool {
				return command == "there is such a file" || command == "/opt/my tools/run"
			})
			require.Empty(t, why)
			require.Equal(t, want, out)
		})
	}
	for line, want := range map[string]string{
		`cd /x && npx y`: "needs a shell",
		`npx x | tee y`:  "needs a shell",
		`npx $(pwd) x`:   "needs a shell",
		"npx `pwd` x":    "needs a shell",
		`npx 'x y`:       "an unclosed quote",
		`npx "x y`:       "an unclosed quote",
	} {
		_, _, why := config.Translate(entry{"command": line}, func(string) bool { return false })
		require.Contains(t, why, want, line)
	}
}
