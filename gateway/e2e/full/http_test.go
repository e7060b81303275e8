//go:build faults

package full

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestH10_BodyOf200MBIsRefused(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	h := s.Session()
	for _, chunked := range []bool{false, true} {
		for _, header := range []map[string]string{h, nil} {
			require.Equal(t, http.StatusRequestEntityTooLarge, s.Upload(200, chunked, header))
			s.Works()
		}
	}
	s.Bounded(450)
}

func TestH16_SessionsAreBounded(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	ready := s.Session()
	opened := s.Do("POST", "/mcp", nil, e2e.InitBody)
	first := map[string]string{"Mcp-Session-Id": opened.Header.Get("Mcp-Session-Id")}
	const n, limit = 3000, 2048
	// Several at a time, because an unused one is closed after a while.
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
	// Evicted sessions end after the answer to the new one.
	e2e.Eventually(t, "the end of evicted sessions", func() bool {
		return s.Metric(`mcp_sessions_active{transport="http"}`) == fmt.Sprint(limit)
	})
	require.Equal(t, http.StatusNotFound, s.Do("POST", "/mcp", first, e2e.PingBody).Status, "the oldest without a handshake was evicted")
	require.Equal(t, http.StatusOK, s.Do("POST", "/mcp", ready, e2e.PingBody).Status, "a client that completed the handshake stays")
	s.Works()
	s.Bounded(300)
}

func TestH17_ClientsThatDoNotReadTheirAnswersDelayNobody(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	const n, size = 20, 4 << 20
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("big")}, "on": e2e.Obj{"tools/call big": e2e.Actions(e2e.Do("big", e2e.Obj{"bytes": size}))}})
	s := w.Serve()
	c := s.Client(false)
	for i := range n {
		conn := s.Dial()
		body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"b_big"}}`
		if i%2 == 1 { // its answers arrive as events
			body = strings.Replace(body, `"b_big"`, `"b_big","_meta":{"progressToken":1}`, 1)
		}
		_, err := io.WriteString(conn, s.Head(len(body), s.Session())+body)
		require.NoError(t, err)
	}
	b.Wait("the calls of all of them", func() bool { return e2e.Count(called(b), "big") == n })
	for range 200 {
		c.CallText("b_t", e2e.Obj{})
	}
	s.Bounded(300)
}

// called returns the names in the calls so far. The lock is held.
func called(b *e2e.Backend) (names []string) {
	for _, m := range b.Pick("tools/call") {
		names = append(names, e2e.Str(m.Msg, "params", "name"))
	}
	return names
}
