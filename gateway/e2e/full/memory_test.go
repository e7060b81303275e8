//go:build faults

package full

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// All clients and servers together may make Goblin hold half of GOMEMLIMIT. Each crowd
// here would hold several times that, without reaching a limit of one client.
const (
	crampedLimit  = "GOMEMLIMIT=128MiB"
	bound         = 64  // MiB of messages
	crampedMemory = 260 // MiB resident, with recently freed memory; the crowd requests 288
)

// many returns the number of clients in a crowd. It is smaller with the race detector,
// which is slow for each byte.
func many() int {
	if e2e.Racing() {
		return 12
	}
	return 24
}

// refusals counts the refused clients of a crowd. enough is closed with the last refusal
// that must happen; clients within the limit need not be awaited.
type refusals struct {
	left   atomic.Int64
	enough context.Context
	end    func()
}

func refusalsOf(n int) *refusals {
	r := &refusals{}
	r.left.Store(int64(n))
	r.enough, r.end = context.WithCancel(context.Background())
	return r
}

func (r *refusals) add() {
	if r.left.Add(-1) == 0 {
		r.end()
	}
}

// cramped starts Goblin with little memory and three servers. One is healthy, one has
// large answers and one never answers.
func cramped(t *testing.T) (*e2e.World, *e2e.Web) {
	w := e2e.NewWorld(t)
	w.Env = append(w.Env, crampedLimit)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	w.Backend("wide", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("big"), e2e.Tool("huge")}, "on": e2e.Obj{
		"tools/call big": e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": 1 << 20})), "tools/call huge": e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": large})),
	}})
	w.FaultyServer("bad", "hang-call", false, e2e.Obj{"timeout": "10m"})
	return w, w.Served()
}

// stranger is a client on the daemon's socket that writes raw lines.
type stranger struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

// strangers connects n clients to a daemon.
func strangers(w *e2e.World, n int) []*stranger {
	w.T.Helper()
	all := make([]*stranger, n)
	for i := range all {
		conn, in := w.Connect()
		w.T.Cleanup(func() { _ = conn.Close() })
		g := &stranger{t: w.T, conn: conn, in: in}
		g.send(e2e.InitBody + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")
		require.Contains(w.T, g.line(), `"result"`)
		all[i] = g
	}
	return all
}

func (g *stranger) send(text string) {
	g.t.Helper()
	require.NoError(g.t, g.conn.SetDeadline(time.Now().Add(e2e.Patience)))
	_, err := io.WriteString(g.conn, text)
	require.NoError(g.t, err)
}

// line returns the next line, or "" at the end of the connection.
func (g *stranger) line() string {
	require.NoError(g.t, g.conn.SetDeadline(time.Now().Add(e2e.Patience)))
	text, err := g.in.ReadString('\n')
	if err != nil {
		require.NotErrorIs(g.t, err, os.ErrDeadlineExceeded)
	}
	return text
}

// answer returns the next line that is not a notification.
func (g *stranger) answer() string {
	for {
		if text := g.line(); !strings.Contains(text, `"method"`) {
			return text
		}
	}
}

// meanwhile runs many functions concurrently, while a healthy client works as if it were
// alone.
func meanwhile(s *e2e.Web, one func(i int)) {
	s.T.Helper()
	c := s.Client(true) // before the crowd exists: slow clients are disconnected later
	var all sync.WaitGroup
	for i := range many() {
		all.Go(func() { one(i) })
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for n := 0; ; n++ {
		require.Equal(s.T, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
		if n%10 == 0 { // not so small
			text := strings.Repeat("x", 100<<10)
			require.Equal(s.T, text, e2e.Str(json.RawMessage(strings.TrimPrefix(c.CallText("b_t", e2e.Obj{"x": text}), "b:t:")), "x"))
		}
		select {
		case <-done:
			if n >= 20 {
				s.Bounded(crampedMemory)
				return
			}
		case <-time.After(20 * time.Millisecond): // leaves the processors to the crowd
		}
	}
}

const large = 12 << 20

// together is part of every refusal because of the common limit.
const together = "for all clients and servers"

func TestUnfinishedMessagesOfManyClientsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w, s := cramped(t)
	all := strangers(w, many())
	part := strings.Repeat("x", large)
	meanwhile(s, func(i int) {
		all[i].send(`{"jsonrpc":"2.0","id":"mine","method":"ping","params":{"x":"` + part)
	})
	refused := 0
	for _, g := range all {
		g.send("\"}}\n" + `{"jsonrpc":"2.0","id":"next","method":"ping"}` + "\n")
		lines := g.answer() + g.answer()
		require.Contains(t, lines, `"id":"mine"`)
		require.Contains(t, lines, `{"jsonrpc":"2.0","id":"next","result":{}}`)
		if strings.Contains(lines, "discarded") {
			refused++
		}
	}
	require.GreaterOrEqual(t, refused, many()-bound/12)
	require.Less(t, refused, many(), "entries within the limit are kept")
}

func TestManyClientsThatDoNotReadAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w, s := cramped(t)
	all := strangers(w, many())
	meanwhile(s, func(i int) {
		for id := range 12 {
			// It fails once the client has left too much unread.
			_, _ = fmt.Fprintf(all[i].conn, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"wide_big"}}`+"\n", 100+id)
		}
		e2e.Eventually(t, "some answers are refused", func() bool {
			// A client that doesn't read doesn't notice: other clients must be served.
			return strings.Contains(s.Stderr.String(), together)
		})
	})
	refused, served := 0, 0
	for _, g := range all {
		for n := 0; n < 12; n++ {
			text := g.answer()
			if text == "" { // small ones may exceed the limit, too
				break
			}
			if strings.Contains(text, together) {
				refused++
			} else {
				served++
			}
		}
	}
	require.NotZero(t, refused)
	require.NotZero(t, served, "clients within the limit are served when they read")
	s.Bounded(crampedMemory)
}

func TestManyClientsThatDoNotReadOverHTTPAreBoundedTogether(t *testing.T) {
	t.Parallel()
	for name, stateless := range map[string]bool{"sessions": false, "stateless": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := cramped(t)
			conns := make([]net.Conn, many())
			answers := make([]*bufio.Reader, many())
			asks := make([]string, many())
			for i := range conns {
				meta, header := "", map[string]string(nil)
				if i%2 == 1 { // its answer arrives as an event
					meta = `"progressToken":1,`
				}
				if stateless {
					header = map[string]string{"MCP-Protocol-Version": e2e.ModernRevision, "Mcp-Method": "tools/call", "Mcp-Name": "wide_huge"}
					meta += fmt.Sprintf(`"%[1]sprotocolVersion":%[2]q,"%[1]sclientCapabilities":{},`, e2e.ProtocolPrefix, e2e.ModernRevision)
				} else {
					header = s.Session()
				}
				body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"wide_huge","_meta":{` + strings.TrimSuffix(meta, ",") + `}}}`
				asks[i] = s.Head(len(body), header) + body
				conns[i] = s.Dial()
				// The system buffers up to 4 MiB of an answer for its client, or more if
				// configured.
				require.NoError(t, conns[i].(*net.TCPConn).SetReadBuffer(256<<10))
			}
			meanwhile(s, func(i int) {
				_, err := io.WriteString(conns[i], asks[i])
				require.NoError(t, err)
				require.NoError(t, conns[i].SetDeadline(time.Now().Add(2*e2e.Patience)))
				answers[i] = bufio.NewReader(conns[i])
				_, err = answers[i].Peek(1)
				require.NoError(t, err)
			})
			cut, served := 0, 0
			for _, answer := range answers {
				resp, err := http.ReadResponse(answer, nil)
				n := int64(0)
				if err == nil {
					n, err = io.Copy(io.Discard, resp.Body)
				}
				if err == nil && n > large/2 {
					served++
				} else {
					cut++
				}
			}
			require.NotZero(t, cut)
			require.NotZero(t, served, "clients within the limit are served when they read")
			s.Bounded(crampedMemory)
		})
	}
}

func TestLargeRequestsInFlightAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w, s := cramped(t)
	all := strangers(w, many())
	part := strings.Repeat("x", large)
	refused := refusalsOf(many() - bound/12)
	meanwhile(s, func(i int) {
		g := all[i]
		g.send(`{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"bad_fault","arguments":{"x":"` + part + "\"}}}\n")
		defer context.AfterFunc(refused.enough, func() {
			g.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"mine"}}` + "\n" + `{"jsonrpc":"2.0","id":"next","method":"ping"}` + "\n")
		})()
		for line := g.answer(); !strings.Contains(line, `"next"`); line = g.answer() {
			require.Contains(t, line, `"mine"`)
			if strings.Contains(line, "for all clients and servers") {
				refused.add()
			}
		}
	})
}

func TestLargeBodiesOfManyClientsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	for name, session := range map[string]bool{"sessions": true, "no sessions": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, s := cramped(t)
			part := bytes.Repeat([]byte("x"), large)
			var mu sync.Mutex
			statuses := map[int]int{}
			headers := make([]map[string]string, many())
			for i := range headers {
				if session {
					headers[i] = s.Session()
				}
			}
			refused := refusalsOf(many() - bound/12)
			meanwhile(s, func(i int) {
				conn := s.Dial()
				_ = conn.SetDeadline(time.Now().Add(e2e.Patience))
				defer context.AfterFunc(refused.enough, func() { _ = conn.Close() })()
				_, _ = io.WriteString(conn, s.Head(2*large, headers[i]))
				sent := make(chan struct{})
				go func() { defer close(sent); _, _ = conn.Write(part) }()
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err == nil {
					mu.Lock()
					statuses[resp.StatusCode]++
					mu.Unlock()
					if resp.StatusCode == http.StatusServiceUnavailable {
						refused.add()
					}
				}
				_ = conn.Close()
				<-sent
			})
			require.Error(t, refused.enough.Err(), "of %d were refused: %v", many(), statuses)
		})
	}
}

func TestUnfinishedAnswersOfManyServersAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Env = append(w.Env, crampedLimit)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	servers := min(20, many())
	for i := range servers {
		mode := []string{"half-result", "http-half-result"}[i%2]
		w.FaultyServer(fmt.Sprintf("bad%d", i), mode, false, e2e.Obj{"timeout": "10m"})
	}
	s := w.Serve()
	callers := s.Client(false)
	ids := make([]string, servers)
	for i := range ids {
		ids[i] = callers.Begin("tools/call", e2e.Obj{"name": fmt.Sprintf("bad%d_fault", i)})
	}
	meanwhile(s, func(i int) {
		if i > 0 {
			return
		}
		callers.Wait("some answers are refused", func() bool {
			refused := 0
			for _, id := range ids {
				for _, m := range callers.Replies[id] {
					require.Contains(t, m.Raw, "for all clients and servers")
					refused++
				}
			}
			return refused >= servers-bound/24
		})
	})
	for _, id := range ids {
		callers.Notify("notifications/cancelled", e2e.Obj{"requestId": json.RawMessage(id)})
	}
}
