package command

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/state"
)

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
		{servers, []string{"login", "local"}, cli.CodeUsage, `server "local" is a local program, which needs no login`},
		{servers, []string{"login", "header"}, cli.CodeUsage, `server "header" has no login: its config has an Authorization header, or oauth: off`},
		{servers, []string{"logout", "none"}, cli.CodeUsage, `server "none" has no login`},
		{servers, []string{"login", "off"}, cli.CodeConnect, `server "off" is disabled; remove "disabled: true"`},
		{servers, []string{"login", "lacks"}, cli.CodeConnect, `server "lacks" cannot start: `},
		{servers, []string{"login", "literal-key"}, cli.CodeNotFound, `there is no server "[hidden]"`},
		{servers, []string{"secret", "get", "a"}, cli.CodeFailure, `secret "a": ` + filepath.Join(stateDir, "goblin", "secrets.json") + " cannot be read"},
		{servers, []string{"validate", "other.yaml"}, cli.CodeUsage, "validate takes no arguments; a config is named by --config other.yaml"},
		{servers + "gateway: {listen: \"127.0.0.1:0\", auth_token: \"${NOT_SET}\"}\n", []string{"validate"}, cli.CodeConfig, "${NOT_SET} is not set"},
		{servers + "gateway: {auth_token: \"${NOT_SET}\"}\n", []string{"validate"}, cli.CodeOK, "warning: ${NOT_SET} is not set"},
	} {
		got := try{config: tt.config, env: map[string]string{"XDG_STATE_HOME": stateDir}}.run(t, tt.args...)
		require.Equal(t, tt.code, got.code, "%v: %s", tt.args, got.err)
		require.Contains(t, got.err, tt.told, tt.args)
		require.NotContains(t, got.err, "literal-")
	}
}

func TestWhatIsOffAlreadyAndWhatStaysOffIsTold(t *testing.T) {
	t.Parallel()
	things := []Thing{{Server: "a", Name: "x", Listed: "a_x"}, {Server: "a", Name: "y", Listed: "a_y"}}
	of := func(profile string) []state.ToggleEntry {
		return []state.ToggleEntry{{Profile: profile, Server: "a", Kind: "tool", Name: "x"}, {Profile: profile, Server: "a", Kind: "tool", Name: "y"}}
	}
	for _, tt := range []struct {
		before  []state.ToggleEntry
		on      bool
		profile string
		want    string
	}{
		{nil, false, "", "Off for all clients: a_x, a_y.\n"},
		{of("")[:1], false, "", "Off for all clients: a_y.\nOff already: a_x.\n"},
		{of("")[:1], true, "", "On for all clients: a_x.\nOn already: a_y.\n"},
		{of("p"), true, "p", "On for clients of profile \"p\": a_x, a_y.\n"},
		{of("")[1:], true, "p", "On already: a_x, a_y.\nOff for all clients, so also for these: a_y; turn them on without --profile.\n"},
		{of(""), false, "p", "Off for clients of profile \"p\": a_x, a_y.\n"},
	} {
		require.Equal(t, tt.want, told(things, of(tt.profile), tt.before, tt.on, tt.profile))
	}
}

func TestServersWithDotsOwnTheNamesThatTheirToolsHave(t *testing.T) {
	t.Parallel()
	require.True(t, toolKind.owns("my.files", "my_files_read"))
	require.True(t, toolKind.owns("my.files", "my.files/read"))
	require.False(t, toolKind.owns("my.files", "my.files_read"))
}
