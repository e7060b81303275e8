//go:build faults

package e2e

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests here take the time of the bounds that they show.

func TestFull_H12_SlowConnectionsAreCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t")}})
	s := w.serve()
	h := s.session()
	starts := []string{
		"", "P", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		s.head(1000000, h), s.head(1000000, nil) + "{", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
	}
	const n, limit = 300, 35 * time.Second
	var all sync.WaitGroup
	var cut atomic.Int64
	end := time.Now().Add(limit)
	for i := range n {
		conn := s.dial()
		all.Go(func() {
			if drips(conn, starts[i%len(starts)], end) {
				cut.Add(1)
			}
		})
	}
	for time.Now().Before(end.Add(-5 * time.Second)) {
		s.works()
		time.Sleep(time.Second)
	}
	all.Wait()
	require.GreaterOrEqual(t, cut.Load(), int64(290))
	s.bounded(300)
}

// drips sends a byte each second and reports whether the connection was cut
// before the end.
func drips(conn net.Conn, start string, end time.Time) bool {
	defer conn.Close()
	if _, err := io.WriteString(conn, start); err != nil {
		return true
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = conn.SetReadDeadline(end)
		_, _ = io.Copy(io.Discard, conn) // the last answer, if there is one
	}()
	for time.Now().Before(end) {
		select {
		case <-closed:
			return time.Now().Before(end)
		case <-time.After(time.Second):
		}
		if _, err := conn.Write([]byte("x")); err != nil {
			return true
		}
	}
	return false
}

func TestFull_C13_ManySlowCallsAtOnceAreAnsweredOrShed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("b", obj{"tools": []obj{tool("t"), tool("slow")}, "on": obj{"tools/call slow": actions(do("delay", obj{"ms": 2000}))}})
	w.beside()
	c := w.standalone()
	c.names("tools")
	const n = 10_000
	ids := make([]string, n)
	for i := range n {
		ids[i] = c.begin("tools/call", obj{"name": "b_slow", "arguments": obj{"i": i}})
	}
	c.fine() // others are not behind them
	require.True(t, c.holds(120*time.Second, func() bool {
		for _, id := range ids {
			if len(c.replies[id]) == 0 {
				return false
			}
		}
		return true
	}), "an answer to each")
	served := 0
	for i, id := range ids {
		if m := c.end(id); m.Error == nil {
			served++
			require.Equal(t, fmt.Sprintf(`b:slow:{"i":%s}`, strconv.Itoa(i)), str(m.Result, "content", 0, "text"))
		} else {
			require.NotEmpty(t, parseError(t, m).kind(), m.raw)
		}
	}
	t.Logf("%d of %d were served", served, n)
	require.GreaterOrEqual(t, served, 1000)
	require.Equal(t, "b:t:{}", c.callText("b_t", obj{}))
	c.prog.bounded(300)
}

func TestFull_CallsOfAServerThatAnEditReplacedHave30s(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", obj{"tools": []obj{tool("slow"), tool("quick")}, "on": obj{"tools/call slow": actions(do("wait", obj{"name": "never"}))}}, obj{"timeout": "5m"})
	c := w.bridged()
	c.waitListed("tools", "b_slow", true)
	slow := c.begin("tools/call", obj{"name": "b_slow", "arguments": obj{}})
	b.waitEvent("wait", "never")
	first := b.waitStarts(1)
	edited := time.Now()
	w.edit(func() { b.conf["env"] = obj{"WHICH": "second"} })
	b.waitStarts(2)
	c.callText("b_quick", obj{})
	require.True(t, c.holds(40*time.Second, func() bool { return len(c.replies[slow]) > 0 }))
	require.Greater(t, time.Since(edited), 29*time.Second)
	require.Equal(t, "CONNECTION_ERROR", parseError(t, c.end(slow)).kind())
	b.wait("the end of the old process", func() bool { return first.gone })
	c.callText("b_quick", obj{})
}
