package downstream_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

func TestSessionWideNotificationsMergeWhileTheyWait(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	s := <-h.opened
	s.Notify("first", nil) // is being written until the client reads
	s.Notify("second", nil)
	for i := range 1000 {
		s.NotifyLatest("k", "state", fmt.Appendf(nil, `{"i":%d}`, i))
		s.NotifyLatest("other", "state", fmt.Appendf(nil, `{"o":%d}`, i))
	}
	s.Notify("last", nil)
	var got []string
	for {
		m := c.message()
		got = append(got, m.Method+string(m.Params))
		if m.Method == "last" {
			break
		}
	}
	require.LessOrEqual(t, len(got), 7, "merged")
	require.Contains(t, got, `state{"i":999}`)
	require.Contains(t, got, `state{"o":999}`)
}

func TestProgressMergesOnlyForAClientThatIsFarBehind(t *testing.T) {
	h := newScript()
	sent := make(chan struct{})
	pad := strings.Repeat("x", 1<<10)
	h.handle = func(x *downstream.Request) {
		defer close(sent)
		for i := range 5000 {
			x.Notify("p", "progress", fmt.Appendf(nil, `{"i":%d,"pad":%q}`, i, pad))
		}
		x.Reply([]byte(`{}`))
	}
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	c.send(request("1", "any", ""))
	<-sent
	count, last := 0, ""
	for {
		m := c.message()
		if m.Method == "" {
			break
		}
		count++
		last = string(m.Params)
	}
	require.Greater(t, count, 900, "1 MB of them is not merged")
	require.Less(t, count, 1500)
	require.Contains(t, last, `{"i":4999,`)
}

func TestAClientThatDoesNotReadIsNotReadFrom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each, total = 1 << 20, 24
		h := newScript()
		handled := make(chan struct{})
		h.handle = func(x *downstream.Request) {
			x.Reply([]byte(`{"text":"` + strings.Repeat("x", each) + `"}`))
			handled <- struct{}{}
		}
		c := dial(t, downstream.Options{Handler: h, Limits: downstream.Limits{Unsent: 8 << 20}}, transports["pipe"])
		var wrote atomic.Int64
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := range total {
				// As long as a read buffer, so that the server cannot read ahead.
				pad := strings.Repeat(" ", 64<<10)
				if _, err := io.WriteString(c.conn, request(number(i), "big", "")+pad+"\n"); err != nil {
					return
				}
				wrote.Add(1)
				<-handled
			}
		})
		for range 3 {
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Less(t, wrote.Load(), int64(12), "reading has paused")
		}
		seen := make(map[string]bool)
		for range total {
			line := c.line()
			require.Greater(t, len(line), each)
			seen[line[:40]] = true // the id is in it
		}
		require.Len(t, seen, total, "all is delivered afterwards")
		writer.Wait()
		c.conn.Close()
		require.NoError(t, <-c.done)
	})
}

func TestAClientThatNeverReadsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newScript()
		c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
		s := <-h.opened
		start := time.Now()
		s.Notify("n", nil)
		require.ErrorIs(t, <-c.done, downstream.ErrStalled)
		require.InDelta(t, 60, time.Since(start).Seconds(), 10)
		<-h.closed
	})
}

func TestASlowReaderIsNotAStalledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newScript()
		c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
		s := <-h.opened
		go s.Notify("n", []byte(`{"x":"`+strings.Repeat("x", 8<<20)+`"}`))
		buf := make([]byte, 256<<10)
		for got := 0; got < 8<<20; {
			time.Sleep(40 * time.Second)
			n, err := io.ReadFull(c.conn, buf)
			require.NoError(t, err)
			got += n
		}
	})
}

func TestTooMuchUnreadEndsASession(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h, Limits: downstream.Limits{Unsent: 1 << 10}}, transports["pipe"])
	s := <-h.opened
	for i := range 30 {
		s.NotifyLatest(number(i), "n", []byte(`{"x":"`+strings.Repeat("x", 1<<10)+`"}`))
	}
	require.ErrorIs(t, <-c.done, downstream.ErrOverflow)
	require.ErrorIs(t, context.Cause(s.Context()), downstream.ErrOverflow)
	require.Same(t, s, <-h.closed)
}
