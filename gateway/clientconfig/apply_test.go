package clientconfig_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"goblin/gateway/atomicfile"
	"goblin/gateway/clientconfig"
	"goblin/gateway/configedit"
)

const twoServers = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // mine\n    \"b\": {\"command\": \"y\"}\n  }\n}\n"

func apply(t *testing.T, plan func() (*clientconfig.Change, error)) {
	t.Helper()
	ch, err := plan()
	require.NoError(t, err)
	require.NoError(t, ch.Apply(noon))
}

// A process may stop between writing the record and writing the file.
func TestUninstallRestoresTheBytesAfterAnInstallThatStopped(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{".cursor/mcp.json": twoServers})
	c, path, state := clientconfig.Find("cursor"), filepath.Join(dir, ".cursor/mcp.json"), filepath.Join(dir, "state")
	install := func(took ...string) func() (*clientconfig.Change, error) {
		return func() (*clientconfig.Change, error) { return c.Install(m, state, goblin, []string{"stdio"}, took) }
	}
	uninstall := func() (*clientconfig.Change, error) { return c.Uninstall(m, state) }

	apply(t, install("a"))
	require.NoError(t, os.WriteFile(path, []byte(twoServers), 0o600)) // stopped before the file
	_, err := uninstall()
	require.ErrorIs(t, err, clientconfig.ErrNone)
	without := "{\n  \"mcpServers\": {\n    \"b\": {\"command\": \"y\"}\n  }\n}\n"
	require.NoError(t, os.WriteFile(path, []byte(without), 0o600))

	require.NoError(t, os.WriteFile(path, []byte(twoServers), 0o600))
	apply(t, install())
	first := read(t, path)
	apply(t, install("a", "b"))
	require.NoError(t, os.WriteFile(path, []byte(first), 0o600)) // stopped before the file
	apply(t, uninstall)
	require.Equal(t, twoServers, read(t, path))
}

func TestAChangeThatWasPlannedBeforeAnotherOneWritesNothing(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{".cursor/mcp.json": twoServers})
	c, path, state := clientconfig.Find("cursor"), filepath.Join(dir, ".cursor/mcp.json"), filepath.Join(dir, "state")
	late, err := c.Install(m, state, goblin, []string{"stdio"}, []string{"a", "b"})
	require.NoError(t, err)
	apply(t, func() (*clientconfig.Change, error) {
		return c.Install(m, state, goblin, []string{"stdio"}, []string{"a"})
	})
	require.ErrorIs(t, late.Apply(noon), configedit.ErrChanged)
	gone, err := c.Uninstall(m, state)
	require.NoError(t, err)
	apply(t, func() (*clientconfig.Change, error) {
		return c.Install(m, state, goblin, []string{"stdio"}, []string{"b"})
	})
	require.ErrorIs(t, gone.Apply(noon), configedit.ErrChanged)
	apply(t, func() (*clientconfig.Change, error) { return c.Uninstall(m, state) })
	require.Equal(t, twoServers, read(t, path))
}

func TestAChangeWaitsForAnotherProcessAndGivesUp(t *testing.T) {
	t.Parallel()
	m, dir := home(t, map[string]string{".cursor/mcp.json": "{}"})
	state := filepath.Join(dir, "state")
	unlock, err := atomicfile.Lock(filepath.Join(state, "clients"))
	require.NoError(t, err)
	ch, err := clientconfig.Find("cursor").Install(m, state, goblin, []string{"stdio"}, nil)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) { // the wait for the lock takes no time
		require.ErrorContains(t, ch.Apply(noon), "another process holds")
	})
	require.Equal(t, "{}", read(t, filepath.Join(dir, ".cursor/mcp.json")))
	unlock()
	require.NoError(t, ch.Apply(noon))
}
