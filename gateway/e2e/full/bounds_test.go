//go:build faults

package full

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

	"goblin/gateway/e2e"
)

// Each test here takes as long as the limit that it tests.

func TestFull_H12_SlowConnectionsAreCut(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	s := w.Serve()
	h := s.Session()
	starts := []string{
		"", "P", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		s.Head(1000000, h), s.Head(1000000, nil) + "{", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
	}
	const n, limit = 300, 35 * time.Second
	var all sync.WaitGroup
	var cut atomic.Int64
	end := time.Now().Add(limit)
	for i := range n {
		conn := s.Dial()
		all.Go(func() {
			if drips(conn, starts[i%len(starts)], end) {
				cut.Add(1)
			}
		})
	}
	for time.Now().Before(end.Add(-5 * time.Second)) {
		s.Works()
		time.Sleep(time.Second)
	}
	all.Wait()
	require.GreaterOrEqual(t, cut.Load(), int64(290))
	s.Bounded(300)
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
	w := e2e.NewWorld(t)
	w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("slow")}, "on": e2e.Obj{"tools/call slow": e2e.Actions(e2e.Do("delay", e2e.Obj{"ms": 500}))}})
	w.HealthyServer()
	c := w.Standalone()
	c.Names("tools")
	const n = 10_000
	ids := make([]string, n)
	for i := range n {
		ids[i] = c.Begin("tools/call", e2e.Obj{"name": "b_slow", "arguments": e2e.Obj{"i": i}})
	}
	c.CallHealthyServer() // others are not behind them
	require.True(t, c.Holds(120*time.Second, func() bool {
		for _, id := range ids {
			if len(c.Replies[id]) == 0 {
				return false
			}
		}
		return true
	}), "an answer to each")
	served := 0
	for i, id := range ids {
		if m := c.End(id); !m.Failed() {
			served++
			require.Equal(t, fmt.Sprintf(`b:slow:{"i":%s}`, strconv.Itoa(i)), e2e.Str(m.Result, "content", 0, "text"))
		} else {
			require.NotEmpty(t, e2e.ParseFailure(t, m).Kind(), m.Raw)
		}
	}
	t.Logf("%d of %d were served", served, n)
	require.GreaterOrEqual(t, served, 1000)
	require.Equal(t, "b:t:{}", c.CallText("b_t", e2e.Obj{}))
	c.Prog.Bounded(300)
}

func TestFull_CallsOfAServerThatAnEditReplacedHave30s(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow"), e2e.Tool("quick")}, "on": e2e.Obj{"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "never"}))}}, e2e.Obj{"timeout": "5m"})
	c := w.Bridged()
	c.WaitListed("tools", "b_slow", true)
	slow := c.Begin("tools/call", e2e.Obj{"name": "b_slow", "arguments": e2e.Obj{}})
	b.WaitEvent("wait", "never")
	first := b.WaitStarts(1)
	edited := time.Now()
	w.Edit(func() { b.Conf["env"] = e2e.Obj{"WHICH": "second"} })
	b.WaitStarts(2)
	c.CallText("b_quick", e2e.Obj{})
	require.True(t, c.Holds(40*time.Second, func() bool { return len(c.Replies[slow]) > 0 }))
	require.Greater(t, time.Since(edited), 29*time.Second)
	require.Equal(t, "CONNECTION_ERROR", e2e.ParseFailure(t, c.End(slow)).Kind())
	b.Wait("the end of the old process", func() bool { return first.Gone })
	c.CallText("b_quick", e2e.Obj{})
}

func TestEntriesLeaveAfterTheGraceTime(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["remember"] = "off"
	script := e2e.Filesystem()
	script["on"] = e2e.Obj{"start": e2e.Actions(e2e.Do("crash", e2e.Obj{"code": 1, "after": 1}))}
	b := w.Backend("bad", script)
	w.HealthyServer()
	c := w.Standalone()
	require.Contains(t, c.Names("tools"), "bad_stat")
	c.Settle()
	b.DoAt(b.WaitStarts(1), e2e.Do("crash", e2e.Obj{"code": 1}))
	b.WaitStarts(2)
	require.Contains(t, c.Names("tools"), "bad_stat")
	require.True(t, c.Holds(2*e2e.Patience, func() bool {
		for _, m := range c.Notes {
			if m.Method == "notifications/tools/list_changed" {
				return true
			}
		}
		return false
	}), "the clients are notified")
	c.WaitListed("tools", "bad_stat", false)
	c.WaitListed("resources", e2e.In("bad", e2e.AppLog), false)
	require.Contains(t, c.Names("tools"), "fine_stat")
}
