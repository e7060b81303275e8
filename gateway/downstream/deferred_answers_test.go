package downstream_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
)

// starting handles requests in the reading goroutine. "start" is answered later, "start
// now" at once.
type starting struct {
	*script
	taken chan *downstream.Request
	told  chan error
}

func newStarting() *starting {
	return &starting{script: newScript(), taken: make(chan *downstream.Request, 100), told: make(chan error, 100)}
}

type waiter chan error

func (w waiter) RequestEnded(cause error) { w <- cause }

func (h *starting) Start(x *downstream.Request, burst *jsonrpc.WriteBatch) bool {
	switch x.Method() {
	case "start":
		x.OnEnd(waiter(h.told))
		h.taken <- x
	case "start now":
		x.SetBatch(burst)
		x.Reply([]byte(`{"now":true}`))
		x.Finish()
	case "start panic":
		panic("on purpose")
	default:
		return false
	}
	return true
}

func TestARequestMayBeStartedAndAnsweredLater(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, dial func(o downstream.Options) *client) {
		h := newStarting()
		c := dial(downstream.Options{Handler: h})
		c.send(request("1", "start", ""), request("2", "echo", ""), request("3", "start now", ""))
		answers := []string{c.line(), c.line()}
		require.ElementsMatch(t, []string{`{"jsonrpc":"2.0","id":2,"result":{}}`, `{"jsonrpc":"2.0","id":3,"result":{"now":true}}`}, answers,
			"other requests go to Handle without waiting")
		x := <-h.taken
		x.Reply([]byte(`{"later":true}`))
		x.Finish()
		x.Finish()
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"later":true}}`, c.line())
		require.Empty(t, h.told, "an answer is not a cancellation")
	})
}

func TestAStartedRequestHearsThatNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, dial func(o downstream.Options) *client) {
		h := newStarting()
		c := dial(downstream.Options{Handler: h})
		c.send(request("1", "start", ""))
		x := <-h.taken
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		require.ErrorIs(t, <-h.told, downstream.ErrCancelled)
		x.OnEnd(waiter(h.told))
		require.ErrorIs(t, <-h.told, downstream.ErrCancelled, "late waiters, too")
		x.Finish()

		c.send(request("2", "start", ""))
		x = <-h.taken
		x.Session().Close(downstream.ErrIdle)
		require.ErrorIs(t, <-h.told, downstream.ErrIdle)
		x.OnEnd(waiter(h.told))
		require.ErrorIs(t, <-h.told, downstream.ErrIdle)
		require.Empty(t, h.closed, "the session waits for it")
		x.Finish()
		<-h.closed
	})
}

func TestAStartedRequestThatIsNotAnsweredFails(t *testing.T) {
	t.Parallel()
	h := newStarting()
	c := dial(t, downstream.Options{Handler: h}, transports["socket"])
	c.send(request("1", "start", ""))
	(<-h.taken).Finish()
	require.Contains(t, c.line(), `"id":1,"error":{"code":-32603`)
	c.send(request("2", "start panic", ""))
	require.Contains(t, c.line(), `"id":2,"error":{"code":-32603`)
	c.send(request("3", "start", ""))
	func() {
		defer (<-h.taken).Recover()
		panic("on purpose")
	}()
	require.Contains(t, c.line(), `"id":3,"error":{"code":-32603`)
	c.send(request("4", "echo", ""))
	require.Contains(t, c.line(), `"id":4,"result"`)
}

func TestStartedRequestsAreDrained(t *testing.T) {
	t.Parallel()
	h := newStarting()
	c := dial(t, downstream.Options{Handler: h}, transports["socket"])
	c.send(request("1", "start", ""))
	x := <-h.taken
	c.stop()
	require.Empty(t, c.done)
	x.Reply([]byte(`{}`))
	x.Finish()
	require.Contains(t, c.line(), `"id":1,"result"`)
	require.NoError(t, <-c.done)
	require.Error(t, context.Cause(x.Session().Context()))
}
