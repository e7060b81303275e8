//go:build e2e

package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestWrongCommandLinesAreOneLineAndCode2(t *testing.T) {
	env := place(t)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"lst"}, `no command "lst"; did you mean "list"? See "goblin --help"`},
		{[]string{"serch", "x"}, `no command "serch"; did you mean "search" or "serve"? See "goblin --help"`},
		{[]string{"xyzzy"}, `no command "xyzzy"; see "goblin --help"`},
		{[]string{"servers.json"}, `no command "servers.json"; to use a config, add --config servers.json; see`},
		{[]string{"--bogus"}, "unknown flag: --bogus"},
		{[]string{"stdio", "now"}, "goblin: stdio takes no arguments"},
		{[]string{"serve", "--listen", "nowhere"}, "must be host:port"},
		{[]string{"completion", "tcsh"}, "completion needs a shell"},
		{[]string{"completion", "bash", "x"}, `goblin: completion bash takes no arguments, but got "x"`},
		{[]string{"help", "list", "tools"}, `list has no command "tools"; see "goblin list --help"`},
		{[]string{"status", "--config", ""}, "goblin: --config must not be empty"},
		{[]string{"--theme", "pink"}, `goblin: --theme must be one of auto, dark, light, none, not "pink"`},
		{[]string{"--tui-tty", "/dev/null"}, "/dev/null is not a terminal"},
		{[]string{"demo-server", "nobody"}, "demo-server needs one of [clock library notes]"},
	}
	for _, tt := range tests {
		out, errs, code := shell(t, env, tt.args...)
		require.Equal(t, e2e.ExitUsage, code, tt.args)
		require.Contains(t, errs, tt.want)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		require.Empty(t, out)
	}
}

func TestHelpShowsFlagsWhereTheyDoSomething(t *testing.T) {
	env := place(t)
	for _, tt := range []struct{ args, shows, hides string }{
		{"--help", "--config --theme --ascii --tui", ""},
		{"status --help", "--config --json", "--theme --ascii"},
		{"stdio --help", "--config --standalone", "--theme --ascii"},
		{"version --help", "--json", "--config --theme --ascii"},
		{"completion bash --help", "", "--config --theme --ascii"},
	} {
		text, _, code := shell(t, env, strings.Fields(tt.args)...)
		require.Zero(t, code)
		for flag := range strings.FieldsSeq(tt.shows) {
			require.Contains(t, text, flag, tt.args)
		}
		for flag := range strings.FieldsSeq(tt.hides) {
			require.NotContains(t, text, flag, tt.args)
		}
	}
	for args, want := range map[string]int{
		"version --theme dark": e2e.ExitOK, "--ascii version": e2e.ExitOK,
		"--config none.yaml version": e2e.ExitUsage, "version --config none.yaml": e2e.ExitUsage,
	} {
		_, _, code := shell(t, env, strings.Fields(args)...)
		require.Equal(t, want, code, args)
	}
}

func TestConfigsThatCannotBeUsedAreCode3(t *testing.T) {
	env := place(t)
	file := filepath.Join(t.TempDir(), "goblin.yaml")
	require.NoError(t, os.WriteFile(file, []byte("servers:\n  a: {comand: x}\n"), 0o600))
	for _, args := range [][]string{{"stdio"}, {"stdio", "--standalone"}, {"serve"}, {"daemon"}, {"host"}, {"validate"}} {
		_, errs, code := shell(t, env, append(args, "--config", file)...)
		require.Equal(t, e2e.ExitConfig, code, args)
		require.Contains(t, errs, `goblin.yaml:2: unknown key "comand"`)
	}
	_, errs, code := shell(t, env, "serve", "--listen", "0.0.0.0:0")
	require.Equal(t, e2e.ExitConfig, code)
	require.Contains(t, errs, "auth_token is required")
}

func TestTheDemoAnswersFromTheShell(t *testing.T) {
	env := place(t)
	out, errs, code := shell(t, env, "list", "servers", "--json")
	require.Zero(t, code, errs)
	var servers []struct{ Name, State string }
	require.NoError(t, json.Unmarshal([]byte(out), &servers))
	require.Len(t, servers, 3)
	for _, s := range servers {
		require.Equal(t, "ready", s.State, s.Name)
	}
	out, errs, code = shell(t, env, "read", "mcp://notes/note:///haiku")
	require.Zero(t, code, errs)
	require.NotEmpty(t, out)
	_, errs, code = shell(t, env, "read", "mcp://notes/note:///haik")
	require.Equal(t, e2e.ExitNotFound, code)
	require.Contains(t, errs, `did you mean "mcp://notes/note:///haiku"`)
}

func TestProgressExtendsACallInAPipe(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Config = filepath.Join(w.Dir, "slow.yaml")
	w.Written = true
	require.NoError(t, os.WriteFile(w.Config, fmt.Appendf(nil,
		"servers: {clock: {command: %q, args: [demo-server, clock], timeout: 1s}}", e2e.Goblin), 0o600))
	got := w.Run("call", "clock_countdown", "--args", `{"from": 8, "interval_ms": 250}`)
	require.Zero(t, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "Lift-off")
}

func TestAPromptNamesItsRequiredArguments(t *testing.T) {
	env := place(t)
	_, errs, code := shell(t, env, "prompt", "library/discuss_book", "--arg", "author=x")
	require.Equal(t, e2e.ExitUsage, code)
	require.Equal(t, "goblin: prompt \"library/discuss_book\" needs --arg title=…\n", errs)
	_, errs, code = shell(t, env, "call", "library_search_books")
	require.Equal(t, e2e.ExitFailure, code)
	require.Contains(t, errs, `missing "query"`)
}

// Another client's file with an entry for Goblin must not start a chain of Goblins.
func TestGoblinsOwnEntryStartsNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Shop())
	link := filepath.Join(w.Dir, "mcp-hub")
	require.NoError(t, os.Symlink(e2e.Goblin, link))
	w.Config = filepath.Join(w.Dir, "claude.json")
	w.Written = true
	require.NoError(t, os.WriteFile(w.Config, fmt.Appendf(nil,
		`{"mcpServers": {"goblin": {"command": %q, "args": ["stdio"]}, "hub": {"command": %q}, "shop": %s}}`,
		e2e.Goblin, link, e2e.Marshal(b.Conf)), 0o600))
	out := w.Run("list", "tools")
	require.Zero(t, out.Code, out.Stderr)
	require.Contains(t, out.Stdout, "shop_stat")
	require.Equal(t, 1, b.Starts(), "no other Goblin has started it")
	require.Empty(t, out.Stderr, "the variables are not needed")
	require.Regexp(t, `(?m)^goblin-2 +disabled(.|\n)*^hub +disabled`, w.Succeeds("list", "servers"))
	out = w.Run("validate")
	require.Zero(t, out.Code)
	require.Contains(t, out.Stderr, `warning: server "goblin" is Goblin itself, so it is disabled`)
	require.Contains(t, out.Stderr, `warning: server "hub" is Goblin itself, so it is disabled`)
}

func TestTheStateOfServersIsReadWhenTheyHaveStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Shop())
	w.Backend("s3", e2e.S3())
	text := w.Succeeds("read", "goblin://servers")
	require.Equal(t, 2, strings.Count(text, `"state":"ready"`), text)
}
