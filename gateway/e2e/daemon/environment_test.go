//go:build e2e

package daemon

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// Servers get the environment of the process that started the daemon. Later clients can't
// change it.
func TestNothingOfALaterClientsEnvironmentReachesServers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("own", showing(), e2e.Obj{"inherit_env": []string{"E2E_A", "E2E_B"}})
	w.Env = []string{"E2E_A=one"}
	first := w.Bridged()
	require.Equal(t, "one", variable(first, "own", "E2E_A"))
	daemon := w.DaemonPID()
	held := func(c *e2e.Client, starts int) {
		t.Helper()
		w.Succeeds("restart", "own")
		b.WaitStarts(starts)
		require.Equal(t, "one", variable(c, "own", "E2E_A"))
		require.Equal(t, "-", variable(c, "own", "E2E_B"))
		require.Equal(t, daemon, w.DaemonPID())
		require.Contains(t, w.Succeeds("status"), w.Config)
	}

	w.Env = []string{"E2E_A=two", "E2E_B=secret"}
	held(w.Bridged(), 2)

	var own struct{ Version string }
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("version", "--json")), &own))
	for i, kind := range []string{"mcp", "control", "screen"} {
		conn, err := net.Dial("unix", w.Sockets()[0])
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, `{"goblin":1,"kind":%q,"version":%q,"pid":%d,"env":{"E2E_B":"said"},"environ":["E2E_B=said"],"config":"/none","args":["--config","/none"]}`+"\n", kind, own.Version, os.Getpid())
		require.NoError(t, err)
		_, err = bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		held(first, 3+i)
		require.NoError(t, conn.Close())
	}
}
