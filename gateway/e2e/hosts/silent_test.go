package hosts

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Clients end it so, and show what it says as if something was wrong.
func TestABridgeEndsOnSIGTERMSilently(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Filesystem())
	c := w.Bridged()
	require.NotEmpty(t, c.Names("tools"))
	c.Prog.Signal(syscall.SIGTERM)
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Empty(t, c.Prog.Stderr.String())
}
