package upstream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/jsonrpc"
)

// outcome contains the results that a Caller received.
type outcome struct {
	reply jsonrpc.Reply
	err   error
}

type caller chan outcome

func (c caller) CallEnded(reply jsonrpc.Reply, err error, _ *jsonrpc.WriteBatch) {
	c <- outcome{reply, err}
}

func TestStartedCallsEndLikeOthers(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil)
	conn := r.up()
	told := make(caller, 10)
	begin := func(c *Call) *Call {
		require.True(t, conn.CallAsync(c, told))
		return c
	}

	begin(&Call{Method: "tools/call", Params: toolParams("echo", "")})
	got := <-told
	require.NoError(t, got.err)
	require.Contains(t, string(got.reply.Result), "args")

	begin(&Call{Method: "tools/call", Params: toolParams("hang", ""), Timeout: 30 * time.Millisecond})
	got = <-told
	requireCode(t, got.err, RequestTimeout, "no answer to tools/call within 30ms")
	require.Equal(t, jsonrpc.Reply{}, got.reply)
	r.until("the notice", func() bool { return strings.Contains(r.received(), `"reason":"timed out"`) })

	gone := errors.New("the client has gone")
	c := begin(&Call{Method: "tools/call", Params: toolParams("hang", "")})
	conn.Cancel(c, gone)
	conn.Cancel(c, gone)
	require.ErrorIs(t, (<-told).err, gone)
	r.until("the notice", func() bool { return strings.Contains(r.received(), `"reason":"cancelled by the client"`) })

	c = begin(&Call{Method: "tools/call", Params: toolParams("hang", "")})
	conn.Close()
	requireCode(t, (<-told).err, ConnectionError, "closed")
	conn.Cancel(c, gone)
	require.False(t, conn.CallAsync(&Call{Method: "ping"}, told), "the connection is closed")
	require.Empty(t, told, "each caller gets one reply")
}

// A call may get its turn after the server has become idle again.
func TestWaitingForAServerWakesIt(t *testing.T) {
	t.Parallel()
	r := startFake(t, "", nil).whole()
	old := r.up()
	for _, ended := range []bool{true, false} {
		uses, idle := r.Idle()
		require.True(t, idle)
		r.Sleep(uses)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if ended {
			cancel()
		}
		conn, err := r.Await(ctx)
		if ended {
			requireCode(t, err, ConnectionError, "is idle")
			r.Wake()
			r.up()
			r.whole()
			continue
		}
		require.NoError(t, err)
		require.NotSame(t, old, conn)
		_, err = r.call(conn, "echo")
		require.NoError(t, err)
	}
}
