package command

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

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
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		a := &App{App: &cli.App{Err: &errs}}
		step := a.reportSlowSteps(t.Context())
		step("starting the server")
		time.Sleep(longDelay - 1)
		step("running the conformance suite")
		time.Sleep(time.Minute)
		step("")
		require.Equal(t, "goblin: running the conformance suite …\n", errs.String())
	})
}
