package command

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

const patients = `
servers:
  gone: {command: no-such-program}
  off: {command: x, disabled: true}
  refused: {url: "http://127.0.0.1:1/mcp?key=${SECRET:-hunter2}"}
`

func TestDoctorTellsWhatIsBrokenAndTheFix(t *testing.T) {
	got := try{config: patients}.run(t, "doctor")
	require.Equal(t, cli.CodeFailure, got.code)
	lines := strings.Split(got.out, "\n")
	require.Regexp(t, `^gone     broken    command: "no-such-program" not found in PATH \(`, lines[0])
	require.Equal(t, "                   fix: install it, or set command to its full path", lines[1])
	require.Equal(t, "off      disabled  config: has \"disabled: true\"", lines[2])
	require.Regexp(t, `^refused  broken    connect: no connection to 127.0.0.1:1: `, lines[3])
	require.Equal(t, "goblin   ok        no daemon is running; the first client starts one", lines[5])
	require.NotContains(t, got.out, "hunter2")

	got = try{config: patients, tty: true}.run(t, "doctor", "refused")
	require.Equal(t, cli.CodeFailure, got.code)
	require.Regexp(t, `^refused  broken\n  broken  connect  no connection to 127\.0\.0\.1:1: .*\n                   fix: check that the server runs .*\n$`, got.out)
}

func TestDoctorOfNoServersLooksAtGoblinItself(t *testing.T) {
	got := try{config: "servers: {}"}.run(t, "doctor")
	require.Zero(t, got.code, got.out)
	require.Equal(t, "goblin  ok  no daemon is running; the first client starts one\n", strings.ReplaceAll(got.out, "ok  none", "ok        none"))
}

func TestDoctorRepeatsTheWarningsAboutRules(t *testing.T) {
	got := try{config: "servers: {files: {command: x, disabled: true}}\nrules:\n  - {when: 'server:fils', then: deny}\n  - {when: 'name:x', then: stop}\n  - {when: 'name:x', then: deny}\n  - {then: drop}\n"}.run(t, "doctor")
	require.Zero(t, got.code, got.out)
	for _, want := range []string{
		`rules: .*goblin.yaml:3: rules\[0\] server:fils matches no server of the config`,
		`rules: .*goblin.yaml:5: rules\[2\] contradicts rules\[1\] on line 4`,
		`rules: .*goblin.yaml:6: rules\[3\] matches every request`,
	} {
		require.Regexp(t, want, got.out)
	}
}

func TestDoctorForPrograms(t *testing.T) {
	got := try{config: patients}.run(t, "doctor", "--json")
	require.Equal(t, cli.CodeFailure, got.code)
	report := decodeJSON(t, got.out).(map[string]any)
	require.Equal(t, "broken", report["state"])
	servers := report["servers"].([]any)
	require.Len(t, servers, 3)
	first := servers[0].(map[string]any)
	require.Equal(t, "gone", first["serverId"])
	check := first["checks"].([]any)[0].(map[string]any)
	require.Equal(t, "command", check["name"])
	require.Equal(t, "broken", check["state"])
	require.NotEmpty(t, check["fix"])
	require.Equal(t, "ok", report["goblin"].(map[string]any)["state"])
}

func TestDoctorOfAConfigWithMistakes(t *testing.T) {
	got := try{config: "servers: {a: {comand: x}, b: {url: 7}}"}.run(t, "doctor")
	require.Equal(t, cli.CodeFailure, got.code)
	require.Regexp(t, `^goblin  broken  config: .*goblin.yaml:1: .*more mistake.*\n +fix: to see all mistakes, run "goblin validate"\n$`, got.out)
}

func TestDoctorOfAServerThatIsNotThere(t *testing.T) {
	got := try{config: patients}.run(t, "doctor", "refusd")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `no server "refusd"; did you mean "refused"?`)
}
