package command

import (
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
