package downstream_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// A replaced process answers all requests, even with a short time limit, and does not
// wait for streams.
func TestServeDrains(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := newScript()
	served := make(chan *downstream.Request)
	answer := make(chan struct{})
	h.handle = func(x *downstream.Request) {
		if x.Method() == "slow" {
			served <- x
			<-answer
		}
		x.Reply([]byte(`{}`))
	}
	e := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: h, Drain: time.Millisecond}})
	ctx, end := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Serve(ctx, l) }()
	c := &site{t: t, h: h, http: e, url: "http://" + l.Addr().String(), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(c.client.CloseIdleConnections)
	id := c.open()
	stream := c.do("GET", id, "")
	require.Equal(t, 200, stream.StatusCode)
	defer stream.Body.Close()
	// An accepted connection without a request.
	early, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer early.Close()
	answered := make(chan int, 1)
	go func() {
		res, err := c.try(context.Background(), "POST", id, request("1", "slow", ""))
		if err != nil {
			answered <- 0
			return
		}
		defer res.Body.Close()
		answered <- res.StatusCode
	}()
	<-served
	end(downstream.ErrDrain)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond, "new connections go elsewhere")
	select {
	case err := <-ended:
		t.Fatalf("returned with a request in flight: %v", err)
	default:
	}
	_, err = early.Write([]byte("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"))
	require.NoError(t, err)
	head := make([]byte, len("HTTP/1.1 404"))
	_, err = early.Read(head)
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 404", string(head))
	close(answer)
	require.Equal(t, 200, <-answered)
	require.NoError(t, <-ended)
}
