package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// upload sends a body of so many MiB, as far as it is taken, and gives the
// status that it gets.
func upload(s *e2e.Web, mib int, chunked bool, header map[string]string) int {
	s.T.Helper()
	conn := s.Dial()
	require.NoError(s.T, conn.SetDeadline(time.Now().Add(e2e.Patience)))
	length, part := mib<<20, bytes.Repeat([]byte("x"), 1<<20)
	if chunked {
		length, part = -1, fmt.Appendf(nil, "%x\r\n%s\r\n", len(part), part)
	}
	_, err := io.WriteString(conn, s.Head(length, header))
	require.NoError(s.T, err)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range mib {
			if _, err := conn.Write(part); err != nil {
				return // the answer says why
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(s.T, err)
	_ = conn.Close()
	<-sent
	return resp.StatusCode
}

func TestH10_BodyOf200MBIsRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	h := s.Session()
	for _, chunked := range []bool{false, true} {
		for _, header := range []map[string]string{h, nil} {
			require.Equal(t, http.StatusRequestEntityTooLarge, upload(s, 200, chunked, header))
			s.Works()
		}
	}
	s.Bounded(450)
}

func TestH11_UploadWithoutATokenIsNotRead(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "Tok3n-of-the-test"
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	for _, chunked := range []bool{false, true} {
		require.Equal(t, http.StatusUnauthorized, upload(s, 200, chunked, map[string]string{"Authorization": "Bearer wrong"}))
	}
	s.Works()
	s.Bounded(100)
}

// files are the descriptors that the process holds.
func files(p *e2e.Program) []string {
	p.T.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Cmd.Process.Pid))
	require.NoError(p.T, err)
	return found
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
	e2e.Eventually(t, "the descriptors of those who hung up to be free", func() bool { return len(files(s.Program)) <= before })
	require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", h, pingBody).Status, "the session lives")
}

func TestH16_SessionsAreBounded(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	first := s.Session()
	const n, limit = 3000, 2048
	// Several at a time, as one that nobody uses ends by itself after a while.
	var all sync.WaitGroup
	ids := make(chan string, n)
	const workers = 10
	for range workers {
		all.Go(func() {
			for range n / workers {
				got := s.Do("POST", "/mcp", nil, e2e.InitBody)
				if got.Status == http.StatusOK {
					ids <- got.Header.Get("Mcp-Session-Id")
				}
			}
		})
	}
	all.Wait()
	close(ids)
	found := map[string]bool{}
	for id := range ids {
		found[id] = true
	}
	require.Len(t, found, n)
	require.Equal(t, fmt.Sprint(limit), s.Metric(`mcp_sessions_active{transport="http"}`))
	require.Equal(t, http.StatusNotFound, s.Do("POST", "/mcp", first, pingBody).Status, "the oldest made room")
	s.Works()
	s.Bounded(300)
}

// callsTake is how long calls of a tool take, one after another.
func callsTake(c *e2e.Client, tool string) (p95, worst time.Duration) {
	c.T.Helper()
	took := make([]time.Duration, 200)
	for i := range took {
		start := time.Now()
		require.NotEmpty(c.T, c.CallText(tool, e2e.Obj{}))
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)*95/100], took[len(took)-1]
}

// called are the names in the calls so far. The lock is held.
func called(b *e2e.Backend) (names []string) {
	for _, m := range b.Pick("tools/call") {
		names = append(names, e2e.Str(m.Msg, "params", "name"))
	}
	return names
}

func TestH17_ClientsThatDoNotReadTheirAnswersDelayNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	const n, size = 20, 4 << 20
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("big")}, "on": e2e.Obj{"tools/call big": e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": size}))}})
	s := w.Serve()
	c := s.Client(false)
	before, slowest := callsTake(c, "b_t")
	for i := range n {
		conn := s.Dial()
		body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"b_big"}}`
		if i%2 == 1 { // its answers come as events
			body = strings.Replace(body, `"b_big"`, `"b_big","_meta":{"progressToken":1}`, 1)
		}
		_, err := io.WriteString(conn, s.Head(len(body), s.Session())+body)
		require.NoError(t, err)
	}
	b.Wait("the calls of all of them", func() bool { return e2e.Count(called(b), "big") == n })
	p95, worst := callsTake(c, "b_t")
	if !e2e.Racing() {
		require.LessOrEqual(t, p95, max(10*before, 250*time.Millisecond))
		require.LessOrEqual(t, worst, max(10*slowest, 3*time.Second))
	}
	s.Bounded(300)
}

// listening are the addresses, as /proc/net has them, on which a process
// listens.
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
