package downstream_test

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// useHTTP2 makes a client use HTTP/2 without TLS.
func useHTTP2(c *site) {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	c.client.Transport.(*http.Transport).Protocols = p
}

func TestHTTP2RequestsShareOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{MaxConnections: 4})
		defer stop()
		answer := make(chan struct{})
		c.h.handle = func(x *downstream.Request) {
			c.h.begun <- x
			<-answer
			x.Reply([]byte(`{}`))
		}
		useHTTP2(c)
		id := c.open()
		require.Equal(t, 403, c.do("POST", id, request("1", "echo", ""), "Host", "example.com").StatusCode)
		stream := c.get(id)
		answered := make(chan int, 3)
		for i := range 3 {
			go func() {
				if res, err := c.try(t.Context(), "POST", id, request(number(i), "echo", "")); err == nil {
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
					answered <- res.ProtoMajor * res.StatusCode
				}
			}()
			<-c.h.begun
		}
		require.Equal(t, 503, c.do("POST", id, request("9", "echo", "")).StatusCode, "the limit of connections")
		time.Sleep(10 * time.Minute) // no timeout runs while an answer is awaited
		close(answer)
		for range 3 {
			require.Equal(t, 2*200, <-answered)
		}
		(<-c.h.opened).Notify("alive", nil)
		require.Contains(t, stream.must(), "alive")
	})
}

func TestStalledHTTP2ReadersAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		useHTTP2(c)
		id := c.open()
		s := <-c.h.opened
		for _, accept := range []string{"application/json", "text/event-stream"} {
			// The client reads the connection, but not this answer.
			res := c.do("POST", id, request("1", "big", `{"n":`+number(12<<20)+`}`), "Accept", accept)
			synctest.Wait()
			require.Positive(t, s.UnsentBytes())
			time.Sleep(65 * time.Second)
			require.Zero(t, s.UnsentBytes(), accept)
			_, err := io.Copy(io.Discard, res.Body)
			require.Error(t, err)
			require.Equal(t, 200, c.do("POST", id, request("2", "echo", "")).StatusCode)
		}
	})
}

func TestHTTP2RequestsFinishBeforeADrainedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newScript()
		answer := make(chan struct{})
		h.handle = func(x *downstream.Request) {
			h.begun <- x
			<-answer
			x.Reply([]byte(`{}`))
		}
		l := newMemory()
		e := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: h, Drain: time.Millisecond}})
		ctx, end := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Serve(ctx, l) }()
		c := &site{t: t, h: h, http: e, url: "http://localhost", client: &http.Client{Transport: &http.Transport{DialContext: l.dial}}}
		defer c.client.CloseIdleConnections()
		useHTTP2(c)
		id := c.open()
		stream := c.do("GET", id, "") // it does not count as a request to wait for
		defer stream.Body.Close()
		answered := make(chan int, 1)
		go func() {
			res, err := c.try(t.Context(), "POST", id, request("1", "slow", ""))
			if err != nil {
				answered <- 0
				return
			}
			res.Body.Close()
			answered <- res.StatusCode
		}()
		<-h.begun
		end(downstream.ErrDrain)
		time.Sleep(5 * time.Second)
		close(answer)
		require.Equal(t, 200, <-answered)
		require.NoError(t, <-ended)
	})
}
