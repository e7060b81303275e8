package e2e

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
)

// dial opens a connection on which the test writes HTTP itself.
func (s *web) dial() net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// head is the beginning of a request whose body is written by hand; with a
// negative length it comes in chunks.
func (s *web) head(length int, header map[string]string) string {
	var b strings.Builder
	b.WriteString("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n")
	if s.token != "" && header["Authorization"] == "" {
		b.WriteString("Authorization: Bearer " + s.token + "\r\n")
	}
	for k, v := range header {
		b.WriteString(k + ": " + v + "\r\n")
	}
	if length < 0 {
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	} else {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", length)
	}
	return b.String()
}

// upload sends a body of so many MiB, as far as it is taken, and gives the
// status that it gets.
func (s *web) upload(mib int, chunked bool, header map[string]string) int {
	s.t.Helper()
	conn := s.dial()
	require.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	length, part := mib<<20, bytes.Repeat([]byte("x"), 1<<20)
	if chunked {
		length, part = -1, fmt.Appendf(nil, "%x\r\n%s\r\n", len(part), part)
	}
	_, err := io.WriteString(conn, s.head(length, header))
	require.NoError(s.t, err)
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
	require.NoError(s.t, err)
	_ = conn.Close()
	<-sent
	return resp.StatusCode
}

// works shows that a new client is served at once.
func (s *web) works() {
	s.t.Helper()
	start := time.Now()
	require.Equal(s.t, "b:t:{}", s.client(false).callText("b_t", obj{}))
	require.True(s.t, racing() || time.Since(start) < 3*time.Second, "took %v", time.Since(start))
}

func TestH10_BodyOf200MBIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	s := w.serve()
	h := s.session()
	for _, chunked := range []bool{false, true} {
		for _, header := range []map[string]string{h, nil} {
			require.Equal(t, http.StatusRequestEntityTooLarge, s.upload(200, chunked, header))
			s.works()
		}
	}
	s.bounded(450)
}

func TestH11_UploadWithoutATokenIsNotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["auth_token"] = "Tok3n-of-the-test"
	w.backend("b", obj{"tools": []obj{tool("t")}})
	s := w.serve()
	for _, chunked := range []bool{false, true} {
		require.Equal(t, http.StatusUnauthorized, s.upload(200, chunked, map[string]string{"Authorization": "Bearer wrong"}))
	}
	s.works()
	s.bounded(100)
}

// files are the descriptors that the process holds.
func (p *program) files() []string {
	p.t.Helper()
	found, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.cmd.Process.Pid))
	require.NoError(p.t, err)
	return found
}

func TestH15_ConnectionsThatAreHungUpAreFreed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("t"), tool("wait")}, "on": obj{"tools/call wait": actions(do("wait", obj{"name": "go"}))}})
	s := w.serve()
	s.works()
	h := s.session()
	s.http.CloseIdleConnections()
	before := 0
	eventually(t, "the end of idle connections", func() bool {
		now := len(s.files())
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
			"", "POST /mcp HT", s.head(1000, h), s.head(1000, h) + `{"jsonrpc":`, s.head(-1, h) + "ff\r\n{",
			s.head(len(body), h) + body,
			"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: " + h["Mcp-Session-Id"] + "\r\n\r\n",
		} {
			conn := s.dial()
			_, err := io.WriteString(conn, text)
			require.NoError(t, err)
			conns = append(conns, conn)
		}
	}
	b.waitEvents("wait", "go", each)
	for _, conn := range conns {
		require.NoError(t, conn.Close())
	}
	s.works()
	b.do(do("release", obj{"name": "go"}))
	s.http.CloseIdleConnections()
	eventually(t, "the descriptors of those who hung up to be free", func() bool { return len(s.files()) <= before })
	require.Equal(t, http.StatusOK, s.do("POST", "/mcp", h, pingBody).status, "the session lives")
}

func TestH16_SessionsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	s := w.serve()
	first := s.session()
	const n, limit = 3000, 2048
	// Several at a time, as one that nobody uses ends by itself after a while.
	var all sync.WaitGroup
	ids := make(chan string, n)
	const workers = 10
	for range workers {
		all.Go(func() {
			for range n / workers {
				got := s.do("POST", "/mcp", nil, initBody)
				if got.status == http.StatusOK {
					ids <- got.header.Get("Mcp-Session-Id")
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
	require.Equal(t, fmt.Sprint(limit), s.metric(`mcp_sessions_active{transport="http"}`))
	require.Equal(t, http.StatusNotFound, s.do("POST", "/mcp", first, pingBody).status, "the oldest made room")
	s.works()
	s.bounded(300)
}

// callsTake is how long calls of a tool take, one after another.
func (c *client) callsTake(tool string) (p95, worst time.Duration) {
	c.t.Helper()
	took := make([]time.Duration, 200)
	for i := range took {
		start := time.Now()
		require.NotEmpty(c.t, c.callText(tool, obj{}))
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[len(took)*95/100], took[len(took)-1]
}

// called are the names in the calls so far. The lock is held.
func (b *backend) called() (names []string) {
	for _, m := range b.pick("tools/call") {
		names = append(names, str(m.Msg, "params", "name"))
	}
	return names
}

func TestH17_ClientsThatDoNotReadTheirAnswersDelayNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n, size = 20, 4 << 20
	b := w.backend("b", obj{"tools": []obj{tool("t"), tool("big")}, "on": obj{"tools/call big": actions(do("big", obj{"bytes": size}))}})
	s := w.serve()
	c := s.client(false)
	before, slowest := c.callsTake("b_t")
	for i := range n {
		conn := s.dial()
		body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"b_big"}}`
		if i%2 == 1 { // its answers come as events
			body = strings.Replace(body, `"b_big"`, `"b_big","_meta":{"progressToken":1}`, 1)
		}
		_, err := io.WriteString(conn, s.head(len(body), s.session())+body)
		require.NoError(t, err)
	}
	b.wait("the calls of all of them", func() bool { return count(b.called(), "big") == n })
	p95, worst := c.callsTake("b_t")
	if !racing() {
		require.LessOrEqual(t, p95, max(10*before, 250*time.Millisecond))
		require.LessOrEqual(t, worst, max(10*slowest, 3*time.Second))
	}
	s.bounded(300)
}

// listening are the addresses, as /proc/net has them, on which a process
// listens.
func (p *program) listening() (found []string) {
	p.t.Helper()
	sockets := map[string]bool{}
	for _, file := range p.files() {
		if name, err := os.Readlink(file); err == nil && strings.HasPrefix(name, "socket:[") {
			sockets[strings.Trim(name, "socket:[]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6", "udp", "udp6"} {
		text, err := os.ReadFile("/proc/net/" + table)
		require.NoError(p.t, err)
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
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	s := w.serve()
	s.works()
	all := s.listening()
	require.Len(t, all, 1)
	require.True(t, strings.HasPrefix(all[0], "0100007F:"), all[0])

	// Without gateway.listen there is no port at all.
	w = newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	alone := w.standalone()
	require.Equal(t, "b:t:{}", alone.callText("b_t", obj{}))
	require.Empty(t, alone.prog.listening())
}
