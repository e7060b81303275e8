package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/config"
)

func TestValidateTellsEveryMistake(t *testing.T) {
	const wrong = "servers:\n  a: {comand: x}\n  b: {command: [], url: 3}\nbogus: 1\n"
	got := try{config: wrong}.run(t, "validate")
	require.Equal(t, cli.CodeConfig, got.code)
	require.Empty(t, got.out)
	require.Regexp(t, `(?m)^goblin: .*goblin\.yaml:2: unknown key "comand".*did you mean "command"\?$`, got.err)
	require.Regexp(t, `(?m)goblin\.yaml:3: `, got.err)
	require.Regexp(t, `(?m)goblin\.yaml:4: .*bogus`, got.err)

	got = try{config: wrong}.run(t, "validate", "--json")
	require.Equal(t, cli.CodeConfig, got.code)
	require.Empty(t, got.err)
	report := decodeJSON(t, got.out).(map[string]any)
	require.Equal(t, false, report["valid"])
	require.GreaterOrEqual(t, len(report["errors"].([]any)), 3)
	require.EqualValues(t, 2, report["errors"].([]any)[0].(map[string]any)["line"])

	for _, args := range [][]string{{"list", "tools"}, {"call", "x"}, {"status"}, {"stop"}} {
		require.Equal(t, cli.CodeConfig, try{config: wrong}.run(t, args...).code, "%v", args)
	}
}

func TestValidateOfAGoodConfigIsShort(t *testing.T) {
	const good = "servers:\n  a: {command: x}\n  b: {command: \"${SURELY_NOT_SET}\"}\n  c: {url: \"http://127.0.0.1:1\", disabled: true}\ngateway: {listen: \"127.0.0.1:99\", auth_token: t0ken-t0ken}\nrules: [{when: \"name:x\", then: deny}]\n"
	got := try{config: good}.run(t, "validate")
	require.Zero(t, got.code)
	require.Contains(t, got.out, "is valid, with 1 warning: 3 servers, 1 rule.\n")
	require.Contains(t, got.out, "c       http   disabled\n")
	require.Contains(t, got.out, "HTTP: http://127.0.0.1:99/mcp\n")
	require.Regexp(t, `(?m)goblin\.yaml:3: warning: .*SURELY_NOT_SET`, got.err)

	report := decodeJSON(t, try{config: good}.run(t, "validate", "--json").out).(map[string]any)
	require.Equal(t, true, report["valid"])
	require.Len(t, report["servers"], 3)
	require.Len(t, report["warnings"], 1)

	require.Equal(t, string(config.Schema()), try{}.run(t, "validate", "--schema").out)
}
