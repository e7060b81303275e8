package daemon_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
)

func TestADaemonMovesAndIsFoundAtItsFirstPlace(t *testing.T) {
	first, dir := place(t), place(t).Dir
	at := func(name string) daemon.Endpoint {
		p := first
		p.Dir, p.Socket, p.Lock = dir, filepath.Join(dir, name+".sock"), filepath.Join(dir, name+".lock")
		return p
	}
	l, end := serve(t, first, echoing)
	found := func(p daemon.Endpoint) {
		t.Helper()
		c, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, "hello\n")
		require.NoError(t, err)
		require.Equal(t, "hello\n", line(t, c))
	}
	require.NoError(t, l.AddEndpoint(first))
	for _, name := range []string{"a", "b", "b", "a"} {
		require.NoError(t, l.AddEndpoint(at(name)))
		found(at(name))
		found(first)
		require.Equal(t, os.FileMode(0o600), stat(t, at(name).Socket).Mode().Perm())
		var running *daemon.RunningError
		_, err := daemon.Listen(at(name))
		require.ErrorAs(t, err, &running)
	}
	require.NoFileExists(t, at("b").Socket)
	other, err := daemon.Listen(at("b"))
	require.NoError(t, err, "a released endpoint is free")
	var running *daemon.RunningError
	require.ErrorAs(t, l.AddEndpoint(at("b")), &running)
	require.Equal(t, os.Getpid(), running.PID)
	found(at("a"))
	require.NoError(t, l.AddEndpoint(first))
	require.NoFileExists(t, at("a").Socket)
	require.NoError(t, l.AddEndpoint(at("a")))
	end()
	for _, p := range []daemon.Endpoint{first, at("a")} {
		require.NoFileExists(t, p.Socket)
		next, err := daemon.Listen(p)
		require.NoError(t, err)
		require.NoError(t, next.Close())
	}
	require.NoError(t, other.Close())
	require.NoError(t, l.AddEndpoint(at("c")), "an exited daemon does not move")
	require.NoFileExists(t, at("c").Socket)
}

func TestServingReadsLockFilesOnly(t *testing.T) {
	p := place(t)
	p.Config = "/a \"b\"\n/goblin.yaml"
	_, end := serve(t, p, echoing)
	require.Equal(t, []daemon.Endpoint{p}, daemon.FindRunning(p.Dir, p.Config, p.Version))
	require.Empty(t, daemon.FindRunning(p.Dir, "/other.yaml", p.Version))
	require.Empty(t, daemon.FindRunning(p.Dir, p.Config, p.Version+"1"), "which it would refuse")
	for name, text := range map[string]string{"empty": "", "old": "12\n", "odd": "x\n\"a\" \"b\"\n", "cut": "12\n\"a"} {
		require.NoError(t, os.WriteFile(filepath.Join(p.Dir, name+".lock"), []byte(text), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(p.Dir, "dir.lock"), 0o700))
	require.Equal(t, []daemon.Endpoint{p}, daemon.FindRunning(p.Dir, p.Config, p.Version))
	end()
}

func TestTheFullestDaemonWithTheSameValuesServes(t *testing.T) {
	dir := place(t).Dir
	at := func(name string, variables map[string]string) daemon.Endpoint {
		return daemon.Endpoint{
			Dir: dir, Socket: filepath.Join(dir, name+".sock"), Lock: filepath.Join(dir, name+".lock"), Log: filepath.Join(dir, name+".log"),
			Version: "v1", Config: "/goblin.yaml", Variables: variables,
		}
	}
	for _, h := range []struct { // a daemon with fewer does not start beside one with more
		name      string
		variables map[string]string
	}{
		{"few", map[string]string{"A": "1", "B": "2"}},
		{"all", map[string]string{"A": "1", "B": "2", "C": "3"}},
		{"others", map[string]string{"A": "9", "B": "2", "C": "3", "D": "4"}},
	} {
		serve(t, at(h.name, h.variables), daemon.Handlers{MCP: func(_ context.Context, c net.Conn, _ io.Reader, from daemon.Client) {
			_, _ = fmt.Fprintf(c, "%s for %s\n", h.name, from.Profile)
		}})
	}
	for _, c := range []struct {
		variables map[string]string
		want      string // or "" if it starts
	}{
		{map[string]string{"A": "1"}, "all"},
		{map[string]string{"A": "1", "C": "3"}, "all"},
		{map[string]string{"A": "9"}, "others"},
		{nil, "others"},
		{map[string]string{"A": "1", "B": "7"}, ""},
		{map[string]string{"A": "1", "Z": "1"}, ""},
	} {
		p := at("mine", c.variables)
		p.Profile = "work"
		conn, err := daemon.Dial(context30s(t), p, daemon.KindMCP)
		if c.want == "" {
			require.ErrorIs(t, err, daemon.ErrNotRunning, c.variables)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want+" for work\n", line(t, conn), c.variables)
		require.NoError(t, conn.Close())
		found, err := daemon.DialOrStart(context30s(t), p, daemon.KindMCP, "/no/such/program", nil, nil)
		require.NoError(t, err)
		require.Equal(t, at(c.want, nil).Socket, found.Endpoint.Socket)
		require.Equal(t, "work", found.Endpoint.Profile)
		require.NoError(t, found.Close())
		var running *daemon.RunningError
		_, err = daemon.Listen(p)
		require.ErrorAs(t, err, &running, "no second daemon starts")
	}
	conn, err := daemon.Dial(context30s(t), at("few", map[string]string{"A": "1", "B": "2"}), daemon.KindMCP)
	require.NoError(t, err)
	require.Equal(t, "all for \n", line(t, conn), "even beside one without more")
	require.NoError(t, conn.Close())
}
