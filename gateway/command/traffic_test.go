package command

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
)

// Without quotes, a shell takes the value as the name of a file.
func TestTrafficRefusesAFilterWhoseValueTheShellTook(t *testing.T) {
	t.Parallel()
	for _, filter := range []string{"ms:", "-size:>", "since:"} {
		got := try{}.run(t, "traffic", "--from", night, "--", "name:x", filter)
		require.Equal(t, cli.CodeUsage, got.code, filter)
		require.Contains(t, got.err, "quote filters")
	}
	require.Zero(t, try{}.run(t, "traffic", "--from", night, "name:", "ms:>1s").code)
}
