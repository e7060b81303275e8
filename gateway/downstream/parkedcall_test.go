package downstream_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
	account "goblin/gateway/memlimit"
	"goblin/registry/rawjson"
)

// demanded reads an answer that demands input. It returns the demanded inputs and the
// state.
func demanded(t *testing.T, m message) (inputs, state string) {
	t.Helper()
	require.JSONEq(t, `"input_required"`, string(rawjson.Get(m.Result, "resultType")), "%+v", m)
	return string(rawjson.Get(m.Result, "inputRequests")), string(rawjson.Get(m.Result, "requestState"))
}

func refusal(t *testing.T, m message) string {
	t.Helper()
	require.NotNil(t, m.Error, "%.200s", m.Result)
	return m.Error.Message
}

// calls sends a stateless call, with a state unless it is "".
func (c *client) calls(id int, state string) {
	params := `"name":"t"`
	if state != "" {
		params += `,"inputResponses":{"input-1":{"action":"accept"}},"requestState":` + state
	}
	c.send(request(number(id), "tools/call", modern(params)))
}

func refuse(x *downstream.Request, err error) {
	_ = x.Fail(jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err))
}

// asking answers a call with the client's answer to a request.
func asking(x *downstream.Request) {
	answer, err := x.Ask(x.Context(), "elicitation/create", []byte(`{"message":"?"}`))
	if err != nil {
		refuse(x, err)
		return
	}
	_ = x.Reply(answer.Result)
}

// overAPipe runs a test over a pipe in simulated time.
func overAPipe(t *testing.T, o downstream.Options, handle func(*downstream.Request), test func(t *testing.T, c *client)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newScript()
		h.handle = handle
		o.Handler = h
		test(t, dial(t, o, transports["pipe"]))
	})
}

func TestASessionHasAShareOfTheCallsThatWaitForTheirClients(t *testing.T) {
	overAPipe(t, downstream.Options{}, asking, func(t *testing.T, c *client) {
		const most = 256
		var state string
		for i := range most {
			c.calls(i, "")
			_, state = demanded(t, c.message())
		}
		c.calls(most, "")
		require.Equal(t, "too many calls wait for their client", refusal(t, c.message()))
		c.calls(most+1, state)
		require.JSONEq(t, `{"action":"accept"}`, string(c.message().Result))
		c.calls(most+2, "")
		demanded(t, c.message())
	})
}

// The gateway keeps nothing of a call that must start again, so the state contains its
// own expiry.
func TestADemandToBeginAnewExpires(t *testing.T) {
	handle := func(x *downstream.Request) {
		switch state, err := x.State(); {
		case err != nil:
			refuse(x, err)
		case state.IsOwn:
			_ = x.Reply([]byte(`{"done":true}`))
		default:
			_ = x.Reply(x.InputRequired("elicitation/create", [][]byte{[]byte(`{"message":"?"}`)}))
		}
	}
	overAPipe(t, downstream.Options{Parked: downstream.NewParkedCalls(time.Minute, nil)}, handle, func(t *testing.T, c *client) {
		c.calls(1, "")
		_, state := demanded(t, c.message())
		time.Sleep(59 * time.Second)
		c.calls(2, state)
		require.JSONEq(t, `{"done":true}`, string(c.message().Result))
		time.Sleep(2 * time.Second)
		c.calls(3, state)
		require.Contains(t, refusal(t, c.message()), "requestState has expired")
	})
}

func TestADemandIsBounded(t *testing.T) {
	handle := func(x *downstream.Request) {
		inputs := make([][]byte, 65)
		for i := range inputs {
			inputs[i] = fmt.Appendf(nil, `{"message":"%d"}`, i+1)
		}
		_ = x.Reply(x.InputRequired("elicitation/create", inputs))
	}
	overAPipe(t, downstream.Options{}, handle, func(t *testing.T, c *client) {
		c.calls(1, "")
		inputs, _ := demanded(t, c.message())
		require.Equal(t, 64, strings.Count(inputs, "elicitation/create"))
		require.JSONEq(t, `{"method":"elicitation/create","params":{"message":"64"}}`, string(rawjson.Get([]byte(inputs), "input-64")))
	})
}

// A client may stay away for long, and the memory of its answer is used as long.
func TestAnAnswerForWhichThereIsNoRoomWaitsForNobody(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		kept bool
	}{"small": {1 << 10, true}, "large": {2 << 20, false}} {
		t.Run(name, func(t *testing.T) {
			result := []byte(`{"text":"` + strings.Repeat("x", c.size) + `"}`)
			var ended atomic.Bool
			handle := func(x *downstream.Request) {
				if _, err := x.State(); err != nil {
					refuse(x, err)
					return
				}
				ctx, enough := context.WithCancel(x.Context())
				go func() {
					time.Sleep(time.Second) // the client is away
					enough()
				}()
				_, _ = x.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`))
				_ = x.Reply(result)
				ended.Store(true)
			}
			overAPipe(t, downstream.Options{Memory: account.New(1 << 20)}, handle, func(t *testing.T, client *client) {
				client.calls(1, "")
				_, state := demanded(t, client.message())
				time.Sleep(2 * time.Second)
				synctest.Wait()
				require.Equal(t, !c.kept, ended.Load())
				client.calls(2, state)
				m := client.message()
				if c.kept {
					require.Equal(t, len(result), len(m.Result))
				} else {
					require.Contains(t, refusal(t, m), "requestState has expired")
				}
			})
		})
	}
}

// parker is a handler that controls whether a client may return.
type parker struct{ returns func() bool }

func (parker) OnParked([]byte, []rawjson.Edit) {}
func (p parker) MayReturn() bool               { return p.returns() }

func TestACallThatTakesNobodyBackGoesOnWaiting(t *testing.T) {
	var open atomic.Bool
	handle := func(x *downstream.Request) {
		if _, err := x.State(); err != nil {
			refuse(x, err)
			return
		}
		x.ParkWith(parker{open.Load})
		asking(x)
	}
	overAPipe(t, downstream.Options{}, handle, func(t *testing.T, c *client) {
		c.calls(1, "")
		_, state := demanded(t, c.message())
		c.calls(2, state)
		require.Contains(t, refusal(t, c.message()), "requestState does not belong to this request")
		open.Store(true)
		c.calls(3, state)
		require.JSONEq(t, `{"action":"accept"}`, string(c.message().Result))
	})
}

// A client may cancel its second request before the gateway has found the call.
func TestAClientThatCancelsAsItComesBackCancelsTheCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		call, arrived, goOn := make(chan *downstream.Request, 1), make(chan struct{}), make(chan struct{})
		h := newScript()
		h.handle = func(x *downstream.Request) {
			x.ParkWith(parker{func() bool {
				close(arrived)
				<-goOn
				return true
			}})
			call <- x
			for range 2 { // it continues after the client's answer
				_, _ = x.Ask(x.Context(), "elicitation/create", []byte(`{"message":"?"}`))
			}
		}
		c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
		c.calls(1, "")
		_, state := demanded(t, c.message())
		c.calls(2, state)
		<-arrived
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		require.ErrorIs(t, context.Cause((<-call).Context()), downstream.ErrCancelled)
	})
}
