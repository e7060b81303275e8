package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/bridge"
)

func TestBridgePassesFramesByteForByte(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	up := []string{
		`{"method":"tools/call","params":{"a":[1,{"id":7}],"n":9007199254740993.10},"id":"1\/2","jsonrpc":"2.0"}`,
		`{ "jsonrpc" : "2.0" , "id" : 9007199254740993 , "method" : "ping" }`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call"`, // the daemon answers malformed requests
		`nonsense`,
		`[]`,
		`{"jsonrpc":"2.0","id":"srv","result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}`,
	}
	down := []string{
		`{"jsonrpc":"2.0","id":"1\/2","result":{"é":"\u00e9","n":1e400}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
		`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}`,
	}
	r.send(up...)
	h.expect(up...)
	h.send(down...)
	r.expect(down...)
}

func TestBridgeRepeatsTheSessionToTheNextDaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	level, a, b, bad, gone := `{"level":"debug"}`, `{"uri":"mcp://s/a","x":1}`, `{"uri":"mcp://s/b"}`, `{"uri":"mcp://s/bad"}`, `{"uri":"mcp://s/gone"}`
	steps := []struct{ method, params, end string }{
		{"logging/setLevel", level, `"result":{}`},
		{"resources/subscribe", b, `"result":{}`},
		{"resources/subscribe", gone, `"result":{}`},
		{"resources/subscribe", a, `"result":{}`},
		{"resources/subscribe", bad, `"error":{"code":-32002,"message":"no"}`},
		{"logging/setLevel", `{"level":"nonsense"}`, `"error":{"code":-32602,"message":"no"}`},
		{"resources/unsubscribe", gone, `"result":{}`},
	}
	for i, s := range steps {
		id := fmt.Sprint(i + 1)
		r.send(request(id, s.method, s.params))
		h.expect(request(id, s.method, s.params))
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, id, s.end)
		h.send(answer)
		r.expect(answer)
	}
	for range 2 { // a repeated request can be repeated again
		require.NoError(t, h.c.Close())
		h = r.daemon()
		h.repeated("initialize", initPar, `"result":{}`)
		h.expect(initNote)
		h.repeated("logging/setLevel", level, `"result":{}`)
		h.repeated("resources/subscribe", b, `"result":{}`)
		h.repeated("resources/subscribe", a, `"result":{}`)
		r.expect(changed...)
		r.send(request("9", "ping", "{}"))
		h.expect(request("9", "ping", "{}"))
		h.send(result("9", "{}"))
		r.expect(result("9", "{}")) // without the repeated answers
	}
}

func TestBridgeRepeatsARefusedSubscriptionWhenResourcesChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	sub := `{"uri":"mcp://slow/a"}`
	r.send(request("1", "resources/subscribe", sub))
	h.expect(request("1", "resources/subscribe", sub))
	h.send(result("1", "{}"))
	r.expect(result("1", "{}"))
	require.NoError(t, h.c.Close())
	h = r.daemon()
	h.repeated("initialize", initPar, `"result":{}`)
	h.expect(initNote)
	h.repeated("resources/subscribe", sub, `"error":{"code":-32002,"message":"pending"}`)
	r.expect(changed...)
	h.send(changed[2], changed[2])
	r.expect(changed[2], changed[2])
	r.send(request("2", "ping", "{}"))
	again := h.read()
	h.expect(request("2", "ping", "{}")) // no second request before the answer
	h.answer(again, `"error":{"code":-32002,"message":"pending"}`)
	require.NoError(t, h.c.Close())
	require.Contains(t, r.read(), `"id":2,"error"`)
	h = r.daemon()
	h.repeated("initialize", initPar, `"result":{}`)
	h.expect(initNote)
	r.expect(changed...)
	h.send(changed[2])
	r.expect(changed[2])
	r.send(request("3", "ping", "{}"))
	again = h.read()
	h.expect(request("3", "ping", "{}")) // and none at the next daemon, regardless of the last answer
	h.answer(again, `"error":{"code":-32002,"message":"pending"}`)
	h.send(changed[2])
	r.expect(changed[2])
	h.repeated("resources/subscribe", sub, `"result":{}`)
	h.send(changed[2])
	r.expect(changed[2])
	r.send(request("4", "ping", "{}"))
	h.expect(request("4", "ping", "{}")) // no request once the feature is enabled
}

func TestBridgeFailsWhatWasInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	r.send(request("1", "tools/call", `{"name":"x"}`), request(`"two"`, "resources/read", `{}`), request("3", "odd/method", `{}`),
		request("4", "tools/call", `{}`), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`,
		request("5", "tools/list", `{}`), request("5", "tools/list", `{}`))
	for range 7 {
		h.read()
	}
	h.send(result("5", "{}"))
	r.expect(result("5", "{}"))
	require.NoError(t, h.c.Close())
	failure := func(id, text string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"the Goblin daemon stopped before ` + text + `","data":{"code":"CONNECTION_ERROR","server":"goblin"}}}`
	}
	told := func(id, text string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"text","text":"the Goblin daemon stopped before ` + text + `"}],"isError":true,` +
			`"_meta":{"goblin/error":{"code":"CONNECTION_ERROR","server":"goblin"}}}}`
	}
	const unsafe = "; it may have run, so check before retrying"
	r.expect(
		told("1", "tools/call was answered"+unsafe),
		failure(`"two"`, "resources/read was answered; it is safe to retry"),
		failure("3", "odd/method was answered"+unsafe),
		failure("5", "tools/list was answered; it is safe to retry"), // the second call
	)
	h = r.reopen()
	r.send(request("6", "tools/call", `{}`))
	h.expect(request("6", "tools/call", `{}`))
	h.send(result("6", "{}"))
	r.expect(result("6", "{}"))
}

func TestBridgePassesNoHalfMessageOfADaemonThatDied(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]string{
		"an answer":      `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"xx`,
		"a notification": `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"xx`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			h := r.open()
			r.send(request("1", "resources/read", "{}"))
			h.expect(request("1", "resources/read", "{}"))
			_, err := io.WriteString(h.c, half)
			require.NoError(t, err)
			require.NoError(t, h.c.Close())
			r.expect(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the Goblin daemon stopped before resources/read was answered; it is safe to retry","data":{"code":"CONNECTION_ERROR","server":"goblin"}}}`)
			h = r.reopen()
			r.send(request("2", "ping", "{}"))
			h.expect(request("2", "ping", "{}"))
			h.send(result("2", "{}"))
			r.expect(result("2", "{}"))
		})
	}
}

func TestBridgeNeedsNoSessionForStatelessClients(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.daemon()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	discover, listen := request("1", "server/discover", `{`+meta+`}`), request("2", "subscriptions/listen", `{"notifications":{},`+meta+`}`)
	r.send(discover, listen)
	h.expect(discover, listen)
	h.send(result("1", "{}"))
	r.expect(result("1", "{}"))
	require.NoError(t, h.c.Close())
	// A listen request ends with its daemon. The client can open another at once.
	require.Contains(t, r.read(), `"id":2,"error":{"code":-32603,"message":"the Goblin daemon stopped before subscriptions/listen was answered; it is safe to retry"`)
	h = r.daemon()
	listen = request("3", "subscriptions/listen", `{"notifications":{},`+meta+`}`)
	r.send(listen)
	h.expect(listen) // and nothing before it
}

func TestBridgeSendsAnUnansweredInitializeToTheNextDaemon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ ahead, behind []string }{
		"alone":                                  {behind: []string{initNote}},
		"with what was sent ahead of its answer": {ahead: []string{initNote}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			sent := append([]string{initReq}, c.ahead...)
			r.send(sent...)
			h := r.daemon()
			for range 2 {
				h.expect(sent...)
				require.NoError(t, h.c.Close())
				h = r.daemon()
			}
			h.expect(sent...)
			h.send(initAns)
			r.expect(initAns)
			r.send(append(c.behind, request("1", "ping", "{}"))...)
			h.expect(append(c.behind, request("1", "ping", "{}"))...)
			require.NoError(t, h.c.Close())
			require.Contains(t, r.read(), `"id":1,"error"`)
			r.reopen()
		})
	}
}

func TestBridgeKeepsWhatComesWhileThereIsNoDaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	require.NoError(t, h.c.Close())
	h = r.daemon()
	// The next daemon has not answered the repeated initialize yet.
	waiting := []string{request("1", "tools/call", `{}`), request("2", "resources/unsubscribe", `{"uri":"x"}`), request("3", "ping", `{}`)}
	r.send(waiting...)
	h.repeated("initialize", initPar, `"result":{}`)
	h.expect(initNote)
	h.expect(waiting...)
	r.expect(changed...)
}

func TestBridgeSwallowsLateAnswersToADeadDaemon(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	ask := request("1", "elicitation/create", `{"message":"first"}`)
	h.send(ask)
	r.expect(ask)
	require.NoError(t, h.c.Close())
	r.expect(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the daemon that asked has stopped"}}`)
	h = r.reopen()

	// The next daemon numbers its requests from 1 again.
	h.send(request("1", "elicitation/create", `{"message":"second"}`), request("2", "roots/list", `{}`),
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	second := r.read()
	id, rest, ok := strings.Cut(strings.TrimPrefix(second, `{"jsonrpc":"2.0","id":`), ",")
	require.True(t, ok)
	require.NotEqual(t, "1", id)
	require.Equal(t, `"method":"elicitation/create","params":{"message":"second"}}`, rest)
	roots := strings.Replace(id, ":1\"", ":2\"", 1)
	r.expect(request(roots, "roots/list", `{}`), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+roots+`}}`)

	r.send(result("1", `{"to":"the dead"}`), result(id, `{"to":"the living"}`))
	h.expect(result("1", `{"to":"the living"}`))

	ask = request("3", "elicitation/create", `{}`)
	h.send(ask)
	third := r.read()
	require.NoError(t, h.c.Close())
	require.Equal(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+strings.Replace(id, ":1\"", ":3\"", 1)+`,"reason":"the daemon that asked has stopped"}}`, r.read(), third)
	require.NoError(t, r.reopen().c.Close())
	h = r.reopen() // a request is cancelled once
	r.send(result(id, `{"to":"the second, which died too"}`), request("7", "ping", "{}"))
	h.expect(request("7", "ping", "{}"))
}

func TestBridgeWithoutADaemonRefusesAndTriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newStillRig(t)
		h := r.open()
		ask := request("1", "roots/list", `{}`)
		h.send(ask)
		r.expect(ask)
		r.down.Store(true)
		require.NoError(t, h.c.Close())
		require.Contains(t, r.read(), "notifications/cancelled") // the loss was noticed
		r.send(request("1", "tools/call", `{}`))
		r.expect(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"cannot reach a Goblin daemon: start the daemon: exec \"goblin\"; tools/call did not run, so it is safe to retry"}],"isError":true,` +
			`"_meta":{"goblin/error":{"code":"CONNECTION_ERROR","server":"goblin"}}}}`)
		r.down.Store(false)
		r.send(request("2", "tools/call", `{}`))
		h = r.daemon()
		h.repeated("initialize", initPar, `"result":{}`)
		h.expect(initNote, request("2", "tools/call", `{}`))
	})
}

func TestBridgeTriesAgainWhenTheNextDaemonRefusesTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.NoError(t, r.open().c.Close())
	h := r.daemon()
	h.repeated("initialize", initPar, `"error":{"code":-32603,"message":"not today"}`)
	r.reopen()
}

func TestBridgeDeliversAnswersAfterTheClientHasHungUp(t *testing.T) {
	t.Parallel()
	ends := map[string]func(r *rig){
		"end of input":   func(r *rig) { r.in.Close() },
		"end of context": func(r *rig) { r.cancel() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			h := r.open()
			r.send(request("1", "tools/call", `{}`))
			h.expect(request("1", "tools/call", `{}`))
			end(r)
			_, err := h.r.ReadByte()
			require.ErrorIs(t, err, io.EOF) // half closed: the daemon may still answer
			h.send(result("1", "{}"))
			r.expect(result("1", "{}"))
			require.NoError(t, h.c.Close())
			require.NoError(t, r.end())
		})
	}
}

// The whole input may arrive before the daemon's connection.
func TestBridgeConnectsForAClientThatHasHungUpAlready(t *testing.T) {
	t.Parallel()
	wait := make(chan struct{})
	r := newRig(t, func(o *bridge.Options) {
		connect := o.Connect
		o.Connect = func(ctx context.Context) (net.Conn, error) { <-wait; return connect(ctx) }
	})
	r.send(request("1", "ping", `{}`))
	r.in.Close()
	close(wait)
	h := r.daemon()
	h.expect(request("1", "ping", `{}`))
	h.send(result("1", "{}"))
	h.c.Close()
	r.expect(result("1", "{}"))
	require.NoError(t, r.end())
}

func TestBridgeStartsNoDaemonForNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *bridge.Options) {
		o.Connect = func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	})
	r.in.Close()
	require.NoError(t, r.end())
}

func TestBridgePassesLargeFrames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	h := r.open()
	text := strings.Repeat("0123456789abcdef", 1<<17) // 2 MiB
	big := request("1", "tools/call", `{"text":"`+text+`"}`)
	go io.WriteString(r.in, big+"\n") //nolint:errcheck // the reader reports it
	require.True(t, big == h.read())
	answer := result("1", `{"text":"`+text+`"}`)
	go io.WriteString(h.c, answer+"\n") //nolint:errcheck // the reader reports it
	require.True(t, answer == r.read())
}

func TestBridgeAnswersForFramesOverTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *bridge.Options) { o.Frame = 1000 })
	h := r.open()
	long := `"` + strings.Repeat("x", 100000) + `"`
	r.send(request("1", "tools/call", long))
	require.Contains(t, r.read(), `"id":1,"error":{"code":-32600,"message":"message exceeds the limit of 1000 bytes`)

	h.send(request("7", "roots/list", `{}`))
	r.expect(request("7", "roots/list", `{}`))
	r.send(result("7", long))
	require.Contains(t, h.read(), `"id":7,"error":{"code":-32600`)

	r.send(request("2", "ping", `{}`))
	h.expect(request("2", "ping", `{}`))
	h.send(result("2", long))
	require.Contains(t, r.read(), `"id":2,"error":{"code":-32603,"message":"the response was dropped: message exceeds`)

	r.send(request("3", "ping", `{}`))
	h.expect(request("3", "ping", `{}`))

	level := request("4", "logging/setLevel", `{"level":"info"}`)
	r.send(level)
	h.expect(level)
	h.send(result("4", `{}`))
	r.expect(result("4", `{}`))
	require.NoError(t, h.c.Close())
	require.Contains(t, r.read(), `"id":3,"error"`) // and request 2 is not answered again
	h = r.daemon()
	h.repeated("initialize", initPar, `"result":{}`)
	h.expect(initNote)
	h.repeated("logging/setLevel", `{"level":"info"}`, `"result":`+long)
	r.expect(changed...)
	h.send(changed[0])
	r.expect(changed[0]) // the client did not send the dropped request
}

func TestBridgeSlowsADaemonDownForAClientThatReadsSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newStillRig(t)
		h := r.open()
		big := result("1", `"`+strings.Repeat("x", 1<<20)+`"`)
		const all = 32
		var written atomic.Int32
		go func() {
			for range all {
				if _, err := io.WriteString(h.c, big+"\n"); err != nil {
					return
				}
				written.Add(1)
			}
		}()
		time.Sleep(time.Second) // passes once all goroutines wait
		require.Less(t, written.Load(), int32(16), "most wait at the daemon until the client reads")
		for range all {
			require.True(t, big == r.read())
		}
		require.EqualValues(t, all, written.Load())
	})
}

func TestADaemonThatHangsWhileARequestWaitsIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		r := newStillRig(t, func(o *bridge.Options) {
			o.Alive = func(context.Context) error {
				if hangs.Load() {
					return errors.New("no answer")
				}
				return nil
			}
		})
		h := r.open()
		require.NoError(t, h.c.SetDeadline(time.Time{}))
		call := request("1", "tools/call", `{"name":"a"}`)
		r.send(call)
		h.expect(call)
		time.Sleep(time.Hour) // a slow handshake
		h.send(result("1", `{}`))
		r.expect(result("1", `{}`))

		hangs.Store(true)
		time.Sleep(time.Hour) // the bridge is idle
		call = request("2", "tools/call", `{"name":"a"}`)
		r.send(call)
		h.expect(call)
		began := time.Now()
		require.Contains(t, r.read(), "it may have run, so check before retrying")
		require.InDelta(t, 30, time.Since(began).Seconds(), 10)
		hangs.Store(false)
		h = r.reopen()
		call = request("3", "tools/call", `{"name":"a"}`)
		r.send(call)
		h.expect(call)
	})
}

func TestTheNextDaemonIsAskedForTheSubscriptionsThatWereWantedLast(t *testing.T) {
	t.Parallel()
	const params = `{"uri":"mcp://s/a"}`
	for name, c := range map[string]struct {
		sent, answered []string
		wanted         bool
	}{
		"unsubscribed before the answer":     {sent: []string{"subscribe", "unsubscribe"}, answered: []string{"1", "2"}},
		"subscribed again before the answer": {sent: []string{"unsubscribe", "subscribe"}, answered: []string{"2", "1"}, wanted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			h := r.open()
			for i, method := range c.sent {
				r.send(request(strconv.Itoa(i+1), "resources/"+method, params))
				h.expect(request(strconv.Itoa(i+1), "resources/"+method, params))
			}
			for _, id := range c.answered {
				h.send(result(id, `{}`))
				r.expect(result(id, `{}`))
			}
			require.NoError(t, h.c.Close())
			h = r.reopen()
			if c.wanted {
				h.repeated("resources/subscribe", params, `"result":{}`)
			}
			r.send(request("3", "ping", `{}`))
			h.expect(request("3", "ping", `{}`)) // and no subscription before it
		})
	}
}

func TestBridgeRemembersTheEndOfTheHandshakeThatNoDaemonHeardOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newStillRig(t)
		h := r.daemon()
		r.send(initReq)
		h.expect(initReq)
		h.send(initAns)
		r.expect(initAns)
		r.down.Store(true)
		require.NoError(t, h.c.Close())
		synctest.Wait()
		r.send(initNote, request("1", "ping", `{}`))
		require.Contains(t, r.read(), "ping did not run, so it is safe to retry")
		r.down.Store(false)
		r.send(request("2", "ping", `{}`))
		h = r.daemon()
		h.repeated("initialize", initPar, `"result":{}`)
		h.expect(initNote, request("2", "ping", `{}`))
	})
}

func TestOnlyDaemonsThatDieAtOnceAreReplacedEverMoreSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newStillRig(t)
		h := r.open()
		replaced := func() time.Duration {
			died := time.Now()
			require.NoError(t, h.c.Close())
			h = r.reopen()
			return time.Since(died)
		}
		require.Equal(t, 50*time.Millisecond, replaced())
		require.Equal(t, 100*time.Millisecond, replaced())
		time.Sleep(5*time.Second + 1)
		require.Zero(t, replaced())
		require.Equal(t, 50*time.Millisecond, replaced())
	})
}
