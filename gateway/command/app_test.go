package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

func TestMisuseIsAnsweredWithTheRightUse(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"call", "T", `{"query":"x"}`}, `use --args for arguments: goblin call T --args '{"name": "value"}'`},
		{[]string{"prompt", "P", "a=b"}, "use --arg for arguments: goblin prompt P --arg NAME=VALUE"},
		{[]string{"prompt", "P", "--arg", "a=1", "--arg", "a=2"}, "--arg a is given twice"},
		{[]string{"call", "T", "--sever", "a"}, `unknown flag: --sever; did you mean --server? See "goblin call --help"`},
		{[]string{"list", "tools", "--jsno"}, "did you mean --json?"},
	} {
		got := try{gateway: catalog()}.run(t, tt.args...)
		require.Equal(t, cli.CodeUsage, got.code, tt.args)
		require.Contains(t, got.err, tt.want)
	}
}

func TestHelpOnNoCommandNamesTheNearest(t *testing.T) {
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		a := &App{App: &cli.App{}}
		root := &cobra.Command{Use: "goblin", Long: "All about it.", SilenceErrors: true, SilenceUsage: true}
		root.AddGroup(cli.Groups()...)
		root.AddCommand(a.Commands()...)
		root.SetHelpCommand(a.Help())
		root.SetArgs(args)
		root.SetOut(&out)
		err := root.Execute()
		return out.String(), err
	}
	for args, want := range map[string]string{
		"lst":  `no command "lst"; did you mean "list"? See "goblin --help"`,
		"zzzz": `no command "zzzz"; see "goblin --help"`,
	} {
		out, err := run("help", args)
		require.EqualError(t, err, want)
		require.Equal(t, cli.CodeUsage, cli.ExitCode(err))
		require.Empty(t, out)
	}
	out, err := run("help", "read")
	require.NoError(t, err)
	require.Contains(t, out, "Read a resource")
	require.Contains(t, out, "goblin read URI")
	out, err = run("help")
	require.NoError(t, err)
	require.Contains(t, out, "All about it.")
}

func TestWhatCannotBeDoneIsToldWithItsCode(t *testing.T) {
	t.Setenv("GOBLIN_NO_KEYRING", "1")
	stateDir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(stateDir, "goblin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(stateDir, "goblin", "secrets.json"), []byte("{"), 0o600))
	const servers = `
servers:
  local: {command: c, env: {API_KEY: literal-key}}
  header: {url: "https://h.example/mcp", headers: {Authorization: "Bearer literal-token"}}
  none: {url: "https://h.example/mcp", oauth: off}
  off: {url: "https://h.example/mcp", disabled: true}
  lacks: {url: "https://${NOT_SET}/mcp"}
`
	for _, tt := range []struct {
		config string
		args   []string
		code   int
		told   string
	}{
		{servers, []string{"login", "local"}, cli.CodeUsage, `server "local" is a local program and needs no login`},
		{servers, []string{"login", "header"}, cli.CodeUsage, `server "header" doesn't use OAuth: its config has an Authorization header, or oauth: off`},
		{servers, []string{"logout", "none"}, cli.CodeUsage, `server "none" doesn't use OAuth`},
		{servers, []string{"login", "off"}, cli.CodeConnect, `server "off" is disabled; remove "disabled: true"`},
		{servers, []string{"login", "lacks"}, cli.CodeConnect, `server "lacks" cannot start: `},
		{servers, []string{"login", "literal-key"}, cli.CodeNotFound, `no server "[hidden]"`},
		{servers, []string{"secret", "get", "a"}, cli.CodeFailure, `secret "a": ` + filepath.Join(stateDir, "goblin", "secrets.json") + " cannot be read"},
		{servers, []string{"validate", "other.yaml"}, cli.CodeUsage, "validate takes no arguments; to use a config, add --config other.yaml"},
		{servers + "gateway: {listen: \"127.0.0.1:0\", auth_token: \"${NOT_SET}\"}\n", []string{"validate"}, cli.CodeConfig, "${NOT_SET} is not set"},
		{servers + "gateway: {auth_token: \"${NOT_SET}\"}\n", []string{"validate"}, cli.CodeOK, "warning: ${NOT_SET} is not set"},
	} {
		got := try{config: tt.config, env: map[string]string{"XDG_STATE_HOME": stateDir}}.run(t, tt.args...)
		require.Equal(t, tt.code, got.code, "%v: %s", tt.args, got.err)
		require.Contains(t, got.err, tt.told, tt.args)
		require.NotContains(t, got.err, "literal-")
	}
}

func TestVersion(t *testing.T) {
	require.Contains(t, try{}.run(t, "version").out, "goblin test (go1")
	require.Equal(t, "test", decodeJSON(t, try{}.run(t, "version", "--json").out).(map[string]any)["version"])
}

func TestEveryCommandIsExplained(t *testing.T) {
	all := (&App{}).Commands()
	for i := 0; i < len(all); i++ {
		c := all[i]
		require.NotEmpty(t, c.Short, c.Name())
		require.NotEmpty(t, c.Long, c.Name())
		if c.Hidden {
			continue // run by programs
		}
		require.NotEmpty(t, c.Example, c.Name())
		if all = append(all, c.Commands()...); !c.HasSubCommands() {
			require.NotNil(t, c.Flags().Lookup("json"), c.Name())
		}
		require.True(t, strings.HasPrefix(strings.TrimSpace(c.Example), "goblin "), c.Name())
	}
}

func TestWrongUseIsCode2AndNamesTheHelp(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"list"}, `list needs a kind: servers, tools, prompts, resources or templates; see "goblin list --help"`},
		{[]string{"list", "tolls"}, `not "tolls"; see`},
		{[]string{"list", "tools", "--mime", "x/y"}, "--mime is for resources and templates"},
		{[]string{"list", "resources", "--mime", "["}, `--mime must be a MIME type or a pattern like 'text/*', not "["`},
		{[]string{"list", "tools", "x"}, `list takes one kind, but got "x" too`},
		{[]string{"list", "tools", "--server", ""}, "goblin: --server must not be empty; see"},
		{[]string{"list", "tools", "--json=x"}, `goblin: --json takes no value, but got "x"`},
		{[]string{"list", "tools", "--bogus"}, "unknown flag: --bogus"},
		{[]string{"list", "-x"}, "unknown flag: -x"},
		{[]string{"list", "tools", "--server"}, "--server needs a value: SERVER"},
		{[]string{"search", "x", "--limit", "many"}, `--limit must be a whole number, not "many"`},
		{[]string{"read"}, "goblin: read needs the URI of a resource"},
		{[]string{"read", "a", "b"}, `got "b" too`},
		{[]string{"call", "x", "--args", "[1]"}, `--args must be a JSON object such as '{"name": "value"}', not an array`},
		{[]string{"call", "x", "--args", "{"}, "--args takes a JSON object"},
		{[]string{"call", "x", "--args", "@/nonexistent/file"}, "--args: cannot read /nonexistent/file: no such file"},
		{[]string{"call", "x", "--meta", `"m"`}, `--meta must be a JSON object such as '{"name": "value"}', not a string`},
		{[]string{"prompt", "x", "--arg", "novalue"}, `--arg "novalue" must be NAME=VALUE`},
		{[]string{"status", "x"}, `takes no arguments, but got "x"`},
		{[]string{"validate", "c.yaml"}, `takes no arguments; to use a config, add --config c.yaml; see`},
		{[]string{"restart"}, "needs the name of a server"},
		{[]string{"tools"}, "goblin: tools needs a command: off, on or list; see"},
		{[]string{"tools", "of"}, `goblin: tools takes off, on or list, not "of"; did you mean "off"?`},
		{[]string{"secret", "frob"}, `goblin: secret takes set, get, list or rm, not "frob"; see`},
		{[]string{"add", "d", "http://x", "--type", "foo"}, `goblin: --type must be http or sse, not "foo"; see`},
		{[]string{"registry", "search", "x", "--url", "foo"}, `goblin: the registry "foo" is not a URL like https://`},
	}
	for _, tt := range tests {
		got := try{gateway: catalog()}.run(t, tt.args...)
		require.Equal(t, cli.CodeUsage, got.code, tt.args)
		require.Contains(t, got.err, tt.want)
		require.Regexp(t, `^goblin: [^\n]+\n$`, got.err, "one line")
		require.Empty(t, got.out)
	}
}

func TestServersThatCannotBeAskedAreNamed(t *testing.T) {
	const unset = "servers:\n  a: {command: x, args: [\"${SURELY_NOT_SET}\"]}\n  off: {command: x, disabled: true}\n"
	tests := []struct {
		args []string
		code int
		want string
	}{
		{[]string{"list", "tools", "--server", "of"}, cli.CodeNotFound, `no server "of"; did you mean "off"?`},
		{[]string{"list", "tools", "--server", "off"}, cli.CodeConnect, `server "off" is disabled`},
		{[]string{"list", "tools", "--server", "a"}, cli.CodeConnect, "SURELY_NOT_SET"},
		{[]string{"read", "mcp://off/x"}, cli.CodeConnect, `server "off" is disabled`},
		{[]string{"call", "x", "--server", "zzz"}, cli.CodeNotFound, `no server "zzz"`},
	}
	for _, tt := range tests {
		got := try{config: unset, gateway: &scripted{}}.run(t, tt.args...)
		require.Equal(t, tt.code, got.code, tt.args)
		require.Contains(t, got.err, tt.want)
	}
}
