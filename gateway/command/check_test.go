package command

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

func TestCheckShowsItsStepsOnATerminal(t *testing.T) {
	got := try{config: "servers: {}"}.run(t, "check", "--", "no-such-program")
	require.Equal(t, cli.CodeConnect, got.code)
	require.NotContains(t, got.err, "\r")
	require.Contains(t, got.out, `"no-such-program" not found in PATH`)

	got = try{config: "servers: {}", tty: true}.run(t, "check", "--", "no-such-program")
	require.Equal(t, cli.CodeConnect, got.code)
	require.Regexp(t, `^\r\x1b\[Kstarting the server …\r\x1b\[K.*\r\x1b\[Kgoblin: no-such-program cannot be checked: `, got.err)
}

func TestCheckReportsSlowStepsWithoutATerminal(t *testing.T) {
	var errs bytes.Buffer
	a := &App{App: &cli.App{Err: &errs}, testDelay: 1}
	step := a.reportSlowStep()
	step("starting the server: 11 s of 2m")
	step("")
	require.Equal(t, "goblin: starting the server: 11 s of 2m …\n", errs.String())
}
