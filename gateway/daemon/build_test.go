package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
)

// TestBuilds: a daemon serves UIs of its own build only. It serves MCP and control
// connections of every build.
func TestBuilds(t *testing.T) {
	const other = "this program is build"
	for _, c := range []struct{ daemon, client string }{{"a", "a"}, {"a", "b"}, {"a", ""}, {"", "b"}, {"", ""}} {
		t.Run(fmt.Sprintf("%q meets %q", c.client, c.daemon), func(t *testing.T) {
			p := place(t)
			p.Build = c.daemon
			serve(t, p, daemon.Handlers{
				MCP:     echo,
				Screen:  func(_ context.Context, c net.Conn, _ io.Reader) { _, _ = io.WriteString(c, "shown\n") },
				Control: func(context.Context, string, json.RawMessage) (any, error) { return "done", nil },
			})
			p.Build = c.client

			var done string
			require.NoError(t, daemon.Control(context30s(t), p, "stop", nil, &done))
			require.Equal(t, "done", done)
			conn, err := daemon.DialOrStart(context30s(t), p, daemon.KindMCP, "/no/such/program", nil, nil)
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			ui, err := daemon.Dial(context30s(t), p, daemon.KindScreen)
			if c.daemon == c.client {
				require.Nil(t, conn.OtherBuild)
				require.NoError(t, err)
				require.Equal(t, "shown\n", line(t, ui))
				require.NoError(t, ui.Close())
				return
			}
			want := &daemon.BuildError{PID: os.Getpid(), Daemon: c.daemon, Own: c.client}
			require.Equal(t, want, conn.OtherBuild)
			require.Equal(t, want, err)
			require.ErrorContains(t, err, other)
		})
	}
}

// TestUIOfABuildWithoutID: such a UI compares no builds, so the daemon's answer has the fix.
func TestUIOfABuildWithoutID(t *testing.T) {
	p := place(t)
	p.Build = "a"
	serve(t, p, daemon.Handlers{Screen: func(context.Context, net.Conn, io.Reader) {}})
	conn, err := net.Dial("unix", p.Socket)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, `{"goblin":1,"kind":"screen","version":%q,"pid":1}`+"\n", p.Version)
	require.NoError(t, err)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, answer, `the daemon is build a, the caller is build unknown; run \"goblin stop\" and start again`)
}

// TestDaemonWithoutID: the UI refuses a daemon that reports no build, as older ones do.
func TestDaemonWithoutID(t *testing.T) {
	p := place(t)
	l, err := net.Listen("unix", p.Socket)
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			defer conn.Close()
			if _, err = bufio.NewReader(conn).ReadString('\n'); err == nil {
				_, err = io.WriteString(conn, `{"goblin":1,"ok":true,"pid":7}`+"\n")
			}
		}
		answered <- err
	}()
	p.Build = "b"
	_, err = daemon.Dial(context30s(t), p, daemon.KindScreen)
	require.EqualError(t, err, "the daemon (pid 7) is build unknown, this program is build b")
	require.NoError(t, <-answered)
	require.NoError(t, l.Close())
}
