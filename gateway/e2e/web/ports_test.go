//go:build e2e

package web

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestH21_PortInUse(t *testing.T) {
	t.Parallel()
	s := e2e.NewWorld(t).Serve()
	addr := strings.TrimPrefix(s.Base, "http://")
	w := e2e.NewWorld(t)
	w.Gateway["listen"] = addr
	w.Backend("filesystem", e2e.Filesystem())
	out := w.Run("serve")
	require.Equal(t, e2e.ExitFailure, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "listen on "+addr+" (gateway.listen): ")
	require.Equal(t, 1, strings.Count(strings.TrimSpace(lastLine(out.Stderr)), "\n")+1)
	w.Gateway["listen"] = "127.0.0.1:" + fmt.Sprint(e2e.FreePort(t))
	out = w.Run("serve", "--listen", addr)
	require.Equal(t, e2e.ExitFailure, out.Code, out.Stderr)
	require.Contains(t, out.Stderr, "listen on "+addr+" (--listen): ")
	require.Contains(t, out.Stderr, "; choose another address with --listen\n")
	w.Gateway["listen"] = addr
	// Any other daemon works without it.
	c := w.Bridged()
	require.NotEmpty(t, c.Names("resources"))
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func TestH15_ConnectionsThatAreHungUpAreFreed(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("wait")}, "on": e2e.Obj{"tools/call wait": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}))}})
	s := w.Serve()
	s.Works()
	h := s.Session()
	s.Http.CloseIdleConnections()
	before := 0
	e2e.Eventually(t, "the end of idle connections", func() bool {
		now := len(files(s.Program))
		was := before
		before = now
		return now == was
	})

	call := func(id int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"b_wait"}}`, id)
	}
	const each = 50
	var conns []net.Conn
	for i := range each {
		body := call(100 + i)
		for _, text := range []string{
			"", "POST /mcp HT", s.Head(1000, h), s.Head(1000, h) + `{"jsonrpc":`, s.Head(-1, h) + "ff\r\n{",
			s.Head(len(body), h) + body,
			"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + h["Mcp-Session-Id"] + "\r\n\r\n",
		} {
			conn := s.Dial()
			_, err := io.WriteString(conn, text)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
	}
	b.WaitEvents("wait", "go", each)
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	s.Works()
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	s.Http.CloseIdleConnections()
	e2e.Eventually(t, "the descriptors of closed connections are freed", func() bool { return len(files(s.Program)) <= before })
	require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", h, e2e.PingBody).Status, "the session still works")
}

func TestH11_UploadWithoutATokenIsNotRead(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "Tok3n-of-the-test"
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	for _, chunked := range []bool{false, true} {
		require.Equal(t, http.StatusUnauthorized, s.Upload(200, chunked, map[string]string{"Authorization": "Bearer wrong"}))
	}
	s.Works()
	s.Bounded(100)
}

func TestH19_NothingListensBeyondLoopback(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	s.Works()
	all := listening(s.Program)
	require.Len(t, all, 1)
	require.True(t, strings.HasPrefix(all[0], "0100007F:"), all[0])

	// Without gateway.listen there is no port at all.
	w = e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	alone := w.Standalone()
	require.Equal(t, "b:t:{}", alone.CallText("b_t", e2e.Obj{}))
	require.Empty(t, listening(alone.Prog))
}

// listening returns the addresses on which a process listens, in the format of /proc/net.
func listening(p *e2e.Program) (found []string) {
	p.T.Helper()
	sockets := map[string]bool{}
	for _, file := range files(p) {
		if name, err := os.Readlink(file); err == nil && strings.HasPrefix(name, "socket:[") {
			sockets[strings.Trim(name, "socket:[]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		require.NoError(p.T, err)
		for line := range strings.Lines(string(text)) {
			const listen, unconnected = "0A", "07"
			if f := strings.Fields(line); len(f) > 9 && (f[3] == listen || f[3] == unconnected) && sockets[f[9]] {
				found = append(found, f[1])
			}
		}
	}
	return found
}

// files returns the process's file descriptors.
func files(p *e2e.Program) []string {
	p.T.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Cmd.Process.Pid))
	require.NoError(p.T, err)
	return found
}
