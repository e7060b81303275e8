package downstream_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

func TestHTTPSessionWideStream(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	s := <-c.h.opened

	// Without a stream, merged notifications wait and others are dropped.
	s.Notify("dropped", nil)
	for i := range 3 {
		s.NotifyLatest("a", "state", fmt.Appendf(nil, `{"a":%d}`, i))
		s.NotifyLatest("b", "state", fmt.Appendf(nil, `{"b":%d}`, i))
	}
	first := c.get(id)
	require.Contains(t, first.must(), `{"a":2}`)
	require.Contains(t, first.must(), `{"b":2}`)
	s.Notify("one", nil)
	require.Contains(t, first.must(), `"one"`)

	// Only the newest stream receives messages.
	ctx, drop := context.WithCancel(t.Context())
	second := c.stream(c.doContext(ctx, "GET", id, ""))
	s.Notify("two", nil)
	require.Contains(t, second.must(), `"two"`)

	// If it breaks, the previous one receives them.
	drop()
	go func() {
		for s.Context().Err() == nil {
			s.Notify("three", nil)
			time.Sleep(time.Millisecond)
		}
	}()
	require.Contains(t, first.must(), `"three"`, "and not two")
}

func TestHTTPOldestOfTooManyStreamsEnds(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	oldest := c.get(id)
	for range 4 {
		c.get(id)
	}
	_, ok := oldest.next()
	require.False(t, ok)
}

func TestHTTPWhatWaitsForAStreamIsBounded(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	s := <-c.h.opened
	pad := []byte(`{"x":"` + strings.Repeat("x", 1<<10) + `"}`)
	for i := range 5000 {
		s.NotifyLatest(number(i), "state", pad)
	}
	in := c.get(id)
	s.Notify("last", nil)
	got := 0
	for !strings.Contains(in.must(), "last") {
		got++
	}
	require.InDelta(t, 1000, got, 30, "a MiB")
}

func TestHTTPRequestToTheClientWaitsForItsStream(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	s := <-c.h.opened
	answered := make(chan string, 1)
	go func() {
		r, err := s.Ask(t.Context(), "roots/list", nil)
		answered <- fmt.Sprint(string(r.Result), err)
	}()
	in := c.get(id)
	ask := decode(t, in.must())
	require.Equal(t, "roots/list", ask.Method)
	c.do("POST", id, `{"jsonrpc":"2.0","id":`+string(ask.ID)+`,"result":{"roots":[]}}`)
	require.Equal(t, `{"roots":[]}<nil>`, <-answered)
}

func TestHTTPGetNeedsAnEventStreamAndASession(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id := c.open()
	require.Equal(t, 406, c.do("GET", id, "", "Accept", "application/json").StatusCode)
	require.Equal(t, 400, c.do("GET", "", "").StatusCode)
	require.Equal(t, 404, c.do("GET", "nobody", "").StatusCode)
	require.Equal(t, 400, c.do("GET", id, "", "Mcp-Protocol-Version", "1999-01-01").StatusCode)
	require.Equal(t, 400, c.do("DELETE", "", "").StatusCode)
	require.Equal(t, 404, c.do("DELETE", "nobody", "").StatusCode)
	require.Equal(t, 400, c.do("DELETE", id, "", "Mcp-Protocol-Version", "1999-01-01").StatusCode)
}

func TestHTTPDeleteEndsASession(t *testing.T) {
	c := newSite(t, downstream.HTTPOptions{})
	id, other := c.open(), c.open()
	s := <-c.h.opened
	get := c.get(id)
	blocked := make(chan int, 1)
	go func() {
		res, err := c.try(t.Context(), "POST", id, request("1", "block", ""))
		if err != nil {
			t.Error(err)
			return
		}
		text, _ := io.ReadAll(res.Body) // the complete part
		res.Body.Close()
		if res.StatusCode == 404 && !strings.Contains(string(text), `"id":1`) {
			t.Errorf("the request is missing: %s", text)
		}
		blocked <- res.StatusCode
	}()
	<-c.h.begun
	require.Equal(t, 204, c.do("DELETE", id, "").StatusCode)
	require.Same(t, s, <-c.h.closed)
	require.ErrorIs(t, <-c.h.causes, downstream.ErrSessionEnded)
	_, ok := get.next()
	require.False(t, ok)
	// The handler may have answered first.
	require.Contains(t, []int{404, 200}, <-blocked)
	for _, method := range []string{"POST", "GET", "DELETE"} {
		require.Equal(t, 404, c.do(method, id, request("1", "echo", "")).StatusCode, method)
	}
	require.Equal(t, 200, c.do("POST", other, request("1", "echo", "")).StatusCode)
	require.Equal(t, 1, c.http.Sessions())
}
