package downstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	"goblin/gateway/jsonrpc"
)

func TestEveryLineGetsTheAnswerItDeserves(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	cases := []struct{ name, line, want string }{
		{"a request", request("1", "echo", `{"a":1}`), `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{"carriage return", request("1", "echo", `{"a":1}`) + "\r", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
		{"large id", request("9007199254740993", "echo", ""), `{"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
		{"string id", request(`"a\u00e9/"`, "echo", ""), `{"jsonrpc":"2.0","id":"a\u00e9/","result":{}}`},
		{"precision", request("1", "echo", `{"n":1.000000000000000000001e400}`), `{"jsonrpc":"2.0","id":1,"result":{"n":1.000000000000000000001e400}}`},
		{"unknown method", request("1", "nope", ""), `-32601`},
		{"no JSON", `{nonsense`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700`},
		{"broken after the id", `{"jsonrpc":"2.0","id":7,"method":"echo","params":{]}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32700`},
		{"not UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"\xff\"}", `-32700`},
		{"too deep", request("7", "echo", deep), `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`},
		{"batch", `[` + request("1", "echo", "") + `]`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600`},
		{"a number", `7`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{"no version", `{"id":7,"method":"echo"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`},
		{"object id", request("{}", "echo", ""), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{"null id", request("null", "echo", ""), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600`},
		{"method is a number", `{"jsonrpc":"2.0","id":7,"method":5}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`},
		{"params is a list", request("7", "echo", `[]`), `{"jsonrpc":"2.0","id":7,"error":{"code":-32602`},
		{"neither request nor answer", `{"jsonrpc":"2.0","id":7}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`},
		{"too large", request("7", "echo", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), `{"jsonrpc":"2.0","id":7,"error":{"code":-32600`},
		{"handler panics", request("7", "panic", ""), `{"jsonrpc":"2.0","id":7,"error":{"code":-32603`},
		{"handler forgets", request("7", "nothing", ""), `{"jsonrpc":"2.0","id":7,"error":{"code":-32603`},
	}
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		c := dial(downstream.Options{Handler: newScript(), Limits: downstream.Limits{Frame: 1 << 20}})
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				c.send("", tc.line, request(`"after"`, "echo", ""))
				// The connection stays open. Both requests are answered, in any order.
				both := []string{c.line(), c.line()}
				if strings.Contains(both[0], `"after"`) {
					both[0], both[1] = both[1], both[0]
				}
				require.Contains(t, both[0], tc.want)
				require.Equal(t, `{"jsonrpc":"2.0","id":"after","result":{}}`, both[1])
			})
		}
	})
}

func TestAlienAndBrokenAnswersOfTheClientAreIgnored(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		c := dial(downstream.Options{Handler: newScript()})
		c.send(`{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{}}`, request("1", "echo", ""))
		require.Equal(t, "1", string(c.message().ID))
		// A malformed answer to a request from the gateway stops the wait. The gateway
		// does not reply to it.
		c.send(request("2", "ask", ""))
		ask := c.message()
		require.Equal(t, "elicitation/create", ask.Method)
		c.send(`{"jsonrpc":"2.0","id":` + string(ask.ID) + `}`)
		got := c.message()
		require.Equal(t, "2", string(got.ID))
		require.Equal(t, -32603, got.Error.Code)
		// A malformed request is not an answer, even with the ID of one.
		c.send(request("3", "ask", ""))
		ask = c.message()
		for _, broken := range []string{`"method":"echo"`, `"jsonrpc":"1.0","method":"echo"`, `"jsonrpc":"2.0","method":"echo","method":"x"`, `"jsonrpc":"2.0","method":7`} {
			c.send(`{"id":` + string(ask.ID) + `,` + broken + `}`)
			got = c.message()
			require.Equal(t, string(ask.ID), string(got.ID), broken)
			require.Equal(t, -32600, got.Error.Code, broken)
		}
		c.send(`{"jsonrpc":"2.0","id":` + string(ask.ID) + `,"result":{}}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":3,"result":{}}`, c.line())
	})
}

func TestSessionKnowsItsClient(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	s := <-h.opened
	require.Equal(t, "socket", s.Transport())
	require.Regexp(t, `^[0-9a-f]{32}$`, s.ID())
	require.Equal(t, s.ID(), s.Unit())
	require.Equal(t, "", s.Protocol())
	require.False(t, s.HasCapability("elicitation"))

	c.send(initialize)
	c.line()
	require.Equal(t, "2025-11-25", s.Protocol())
	info := s.Client()
	require.Equal(t, [3]string{"tester", "1.2", "T"}, [3]string{info.Name, info.Version, info.Title})
	require.True(t, s.HasCapability("elicitation"))
	require.True(t, s.HasCapability("roots"))
	require.False(t, s.HasCapability("roots", "listChanged"))
	require.False(t, s.HasCapability("sampling"))
	require.False(t, s.HasCapability("nothing"))

	require.False(t, s.Ready())
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	<-s.Initialized()
	require.True(t, s.Ready())
}

func TestARequestAfterTheHandshakeMakesASessionReady(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	s := <-h.opened
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, request("1", "echo", ""))
	c.line()
	require.False(t, s.Ready(), "before initialize")
	c.send(initialize)
	c.line()
	require.False(t, s.Ready())
	c.send(request("2", "echo", ""))
	c.line()
	require.True(t, s.Ready())
}

func TestInitializeIsAnsweredFirst(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		c := dial(downstream.Options{Handler: newScript()})
		lines := []string{initialize}
		for i := range 50 {
			lines = append(lines, request(number(i), "echo", ""))
		}
		c.send(lines...)
		require.Equal(t, `"init"`, string(c.message().ID))
		for range 50 {
			c.line()
		}
	})
}

func TestAnIdInFlightMayNotBeUsedTwice(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h, Drain: time.Millisecond}, transports["pipe"])
	c.send(request(`"a/b"`, "block", ""))
	<-h.begun
	c.send(request(`"a\/b"`, "echo", ""))
	got := c.message()
	require.Equal(t, `"a\/b"`, string(got.ID))
	require.Equal(t, -32600, got.Error.Code)

	// A number and a string of the same digits are different IDs.
	c.send(request(`1`, "block", ""))
	<-h.begun
	c.send(request(`"1"`, "echo", ""))
	require.Nil(t, c.message().Error)

	// The ID is free again after the answer.
	for range 100 {
		c.send(request(`2`, "echo", ""))
		require.Nil(t, c.message().Error)
	}
}

func TestACancelledRequestIsNotAnsweredAndItsIdIsFree(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		h := newScript()
		c := dial(downstream.Options{Handler: h})
		c.send(request("5", "block", ""))
		x := <-h.begun
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"5"}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			request("6", "echo", ""))
		require.Equal(t, "6", string(c.message().ID))
		require.NoError(t, x.Context().Err(), "other requests were cancelled")

		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"bored"}}`)
		require.ErrorIs(t, <-h.causes, downstream.ErrCancelled)
		require.Equal(t, "bored", x.CancelReason())
		c.send(request("5", "echo", `{"again":1}`))
		require.Equal(t, `{"jsonrpc":"2.0","id":5,"result":{"again":1}}`, c.line())
		require.Empty(t, h.noted())
	})
}

func TestContextMadeAfterTheEndIsOver(t *testing.T) {
	h := newScript()
	got := make(chan error, 1)
	h.handle = func(x *downstream.Request) {
		x.Reply([]byte(`{}`))
		got <- context.Cause(x.Context())
	}
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	c.send(request("1", "any", ""))
	require.ErrorIs(t, <-got, downstream.ErrAnswered)
	c.line()
}

func TestNotificationsArriveInOrderAndSurvivePanics(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	var want []string
	for i := range 100 {
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":{"i":%d}}`, i))
		want = append(want, fmt.Sprintf(`n{"i":%d}`, i))
	}
	c.send(`{"jsonrpc":"2.0","method":"notifications/panic"}`, request("1", "echo", ""))
	c.line()
	require.Equal(t, want, h.noted())
}

func TestWhatBelongsToARequestComesBeforeItsAnswer(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		const requests, each = 200, 50
		c := dial(downstream.Options{Handler: newScript()})
		go func() {
			for i := range requests {
				io.WriteString(c.conn, request(number(i), "progress", `{"n":50}`)+"\n")
			}
		}()
		next := make(map[string]int)
		answered := make(map[string]bool)
		for len(answered) < requests {
			m := c.message()
			if m.Method == "" {
				id := string(m.ID)
				require.False(t, answered[id], "answered twice")
				require.Equal(t, each, next[id], "answered before its progress")
				answered[id] = true
				continue
			}
			id := strings.TrimPrefix(strings.SplitN(string(m.Params), ",", 2)[0], `{"progressToken":`)
			require.False(t, answered[id], "progress after the answer")
			require.Contains(t, string(m.Params), fmt.Sprintf(`"progress":%d}`, next[id]))
			next[id]++
		}
	})
}

func TestNothingFollowsAnAnswerThatOthersRaceWith(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		h := newScript()
		h.handle = func(x *downstream.Request) {
			var all sync.WaitGroup
			token := []byte(`{"progressToken":` + string(x.ID()) + `}`)
			for range 4 {
				all.Go(func() {
					for range 100 {
						x.Notify("", "notifications/progress", token)
					}
				})
			}
			x.Reply([]byte(`{}`))
			all.Wait()
		}
		c := dial(downstream.Options{Handler: h})
		for i := range 500 {
			c.send(request(number(i), "any", ""))
			for {
				line := c.line()
				if strings.Contains(line, `"result"`) {
					break
				}
				require.Contains(t, line, fmt.Sprintf(`"progressToken":%d}`, i), "came after its answer")
			}
		}
	})
}

func TestFramesAreOneLineWhateverTheHandlerGives(t *testing.T) {
	h := newScript()
	h.handle = func(x *downstream.Request) {
		x.Notify("", "n", []byte("{\n\"a\":\r\n1}"))
		x.Reply([]byte("{\n}"))
	}
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	c.send(request("1", "any", ""))
	require.Equal(t, `{"jsonrpc":"2.0","method":"n","params":{ "a":  1}}`, c.line())
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{ }}`, c.line())
}

func TestTenThousandRequestsAtOnceAreAnsweredOnce(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		const n = 10000
		c := dial(downstream.Options{Handler: newScript()})
		go func() {
			for i := range n {
				io.WriteString(c.conn, request(number(i), "echo", `{"i":`+number(i)+`}`)+"\n")
			}
		}()
		seen := make(map[string]bool, n)
		for range n {
			line := c.line()
			m := decode(t, line)
			require.Equal(t, `{"i":`+string(m.ID)+`}`, string(m.Result))
			require.False(t, seen[string(m.ID)])
			seen[string(m.ID)] = true
		}
	})
}

func TestRequestsBeyondTheLimitInFlightAreShed(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h, Drain: time.Millisecond, Limits: downstream.Limits{InFlight: 3}}, transports["pipe"])
	for i := range 3 {
		c.send(request(number(i), "block", ""))
		<-h.begun
	}
	c.send(request("3", "echo", ""))
	got := c.message()
	require.Equal(t, "3", string(got.ID))
	require.Equal(t, -32603, got.Error.Code)
	require.Contains(t, got.Error.Message, "limit 3")
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
	<-h.causes
	for {
		// The slot is free after the handler returns.
		c.send(request("4", "echo", ""))
		if c.message().Error == nil {
			break
		}
	}
}

func TestAskingTheClient(t *testing.T) {
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		c := dial(downstream.Options{Handler: newScript()})
		// Answers in reverse order reach the right callers. Errors stay raw.
		var asked [4]message
		for i := range asked {
			c.send(request(number(i), "ask", ""))
			asked[i] = c.message()
			require.Equal(t, "elicitation/create", asked[i].Method)
			require.JSONEq(t, `{"message":"?"}`, string(asked[i].Params))
		}
		for i := len(asked) - 1; i >= 0; i-- {
			if i == 2 {
				c.send(`{"jsonrpc":"2.0","id":` + string(asked[i].ID) + `,"error":{"code":-1,"message":"no","data":9007199254740993}}`)
				require.Equal(t, `{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no","data":9007199254740993}}`, c.line())
				continue
			}
			c.send(`{"jsonrpc":"2.0","id":` + string(asked[i].ID) + `,"result":{"i":` + number(i) + `}}`)
			require.Equal(t, `{"jsonrpc":"2.0","id":`+number(i)+`,"result":{"i":`+number(i)+`}}`, c.line())
		}
	})
}

func TestNobodyWaitsForAClientInVain(t *testing.T) {
	h := newScript()
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	s := <-h.opened

	// The caller gives up, so the client receives a cancellation.
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := s.Ask(ctx, "roots/list", nil)
		result <- err
	}()
	ask := c.message()
	require.Equal(t, "roots/list", ask.Method)
	cancel(errors.New("no longer needed"))
	require.EqualError(t, <-result, "no longer needed")
	told := c.message()
	require.Equal(t, "notifications/cancelled", told.Method)
	require.JSONEq(t, `{"requestId":`+string(ask.ID)+`,"reason":"no longer needed"}`, string(told.Params))
	c.send(`{"jsonrpc":"2.0","id":` + string(ask.ID) + `,"result":{}}`) // too late, ignored

	// The client cancels the request that the handler's own request belongs to.
	c.send(request("1", "ask", ""))
	ask = c.message()
	c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	told = c.message()
	require.Equal(t, "notifications/cancelled", told.Method)
	require.Contains(t, string(told.Params), `"requestId":`+string(ask.ID))

	// The client's input ends. No answer can arrive, so the handler is notified at once.
	over := dial(t, downstream.Options{Handler: h, Drain: time.Hour}, halfClosable)
	over.send(request("1", "ask", ""))
	require.Equal(t, "elicitation/create", over.message().Method)
	over.conn.(*net.UnixConn).CloseWrite()
	got := over.message()
	require.Equal(t, "1", string(got.ID))
	require.Equal(t, -32603, got.Error.Code)
	require.NoError(t, <-over.done)
	_, err := s.Ask(ctx, "roots/list", nil)
	require.Error(t, err)
}

func halfClosable(t testing.TB) (net.Conn, net.Conn) { return transports["socket"](t) }

func TestAnswersInFlightAreDeliveredAtTheEndOfInput(t *testing.T) {
	for _, how := range []string{"end of input", "shutdown"} {
		t.Run(how, func(t *testing.T) {
			h := newScript()
			release := make(chan struct{})
			h.handle = func(x *downstream.Request) {
				h.begun <- x
				select {
				case <-release:
					x.Reply([]byte(`{"done":true}`))
				case <-x.Context().Done():
				}
			}
			c := dial(t, downstream.Options{Handler: h, Drain: time.Hour}, halfClosable)
			s := <-h.opened
			c.send(request("1", "any", ""))
			<-h.begun
			if how == "shutdown" {
				c.stop()
			} else {
				require.NoError(t, c.conn.(*net.UnixConn).CloseWrite())
			}
			require.NoError(t, s.Context().Err())
			close(release)
			require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"done":true}}`, c.line())
			require.NoError(t, <-c.done)
			require.Same(t, s, <-h.closed)
			require.Error(t, s.Context().Err())
			_, err := c.in.ReadByte()
			require.ErrorIs(t, err, io.EOF, "closers are closed")
		})
	}
}

func TestDrainingEndsAtItsDeadline(t *testing.T) {
	for _, what := range []string{"requests never end", "client never reads"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newScript()
				// Input and output are separate: the input can end alone.
				in, feed := io.Pipe()
				near, far := net.Pipe()
				done := make(chan error, 1)
				go func() {
					done <- downstream.ServeStream(t.Context(), downstream.Options{Handler: h, Closers: []io.Closer{far}}, "stdio", in, far)
				}()
				method := "block"
				if what == "client never reads" {
					method = "echo"
				}
				_, err := io.WriteString(feed, request("1", method, "")+"\n")
				require.NoError(t, err)
				start := time.Now()
				feed.Close()
				require.NoError(t, <-done)
				require.InDelta(t, 5, time.Since(start).Seconds(), 2)
				<-h.closed
				near.Close()
			})
		})
	}
}

func TestAReadThatCannotBeEndedDoesNotHoldUpTheEnd(t *testing.T) {
	t.Parallel()
	h := newScript()
	in, feed := io.Pipe() // has no deadlines
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- downstream.ServeStream(ctx, downstream.Options{Handler: h}, "stdio", in, io.Discard)
	}()
	<-h.opened
	cancel()
	require.NoError(t, <-done)
	<-h.closed
	// Later messages have no effect.
	_, err := io.WriteString(feed, `{"jsonrpc":"2.0","method":"n"}`+"\n")
	require.NoError(t, err)
	feed.Close()
	require.Empty(t, h.noted())
}

func TestClosingASessionEndsItsExchangesFirst(t *testing.T) {
	t.Parallel()
	overEach(t, func(t *testing.T, dial func(downstream.Options) *client) {
		h := newScript()
		c := dial(downstream.Options{Handler: h})
		s := <-h.opened
		for i := range 10 {
			c.send(request(number(i), "block", ""))
			<-h.begun
		}
		why := errors.New("because")
		s.Close(why)
		s.Close(errors.New("too late"))
		<-h.closed
		require.Len(t, h.causes, 10, "all requests finished before Closed")
		for range 10 {
			require.ErrorIs(t, <-h.causes, why)
		}
		require.ErrorIs(t, <-c.done, why)
		// Later calls cannot fail.
		s.Notify("n", nil)
		s.NotifyLatest("k", "n", nil)
		_, err := s.Ask(t.Context(), "n", nil)
		require.Error(t, err)
	})
}

func TestABrokenStreamEndsItsSession(t *testing.T) {
	h := newScript()
	broken := errors.New("broken")
	err := downstream.ServeStream(t.Context(), downstream.Options{Handler: h}, "stdio", failing{broken}, io.Discard)
	require.ErrorIs(t, err, broken)
	<-h.closed

	in, feed := io.Pipe()
	defer feed.Close()
	go io.WriteString(feed, request("1", "echo", "")+"\n")
	err = downstream.ServeStream(t.Context(), downstream.Options{Handler: h, Closers: []io.Closer{in}}, "stdio", in, failing{broken})
	require.ErrorIs(t, err, broken)
	<-h.closed
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestAPanicBeforeTheFirstMessageIsSurvived(t *testing.T) {
	h := &rude{newScript()}
	c := dial(t, downstream.Options{Handler: h}, transports["pipe"])
	c.send(request("1", "echo", ""))
	require.Nil(t, c.message().Error)
}

type rude struct{ *script }

func (r *rude) SessionOpened(*downstream.Session) { panic("on purpose") }
func (r *rude) SessionClosed(*downstream.Session) { panic("on purpose") }

func TestSessionsWithEqualIdsDoNotMix(t *testing.T) {
	h := newScript()
	var all sync.WaitGroup
	for n := range 20 {
		c := dial(t, downstream.Options{Handler: h}, transports["socket"])
		all.Go(func() {
			for i := range 100 {
				io.WriteString(c.conn, request(number(i), "echo", `{"from":`+number(n)+`}`)+"\n")
				line, err := c.in.ReadString('\n')
				if err != nil || line != `{"jsonrpc":"2.0","id":`+number(i)+`,"result":{"from":`+number(n)+"}}\n" {
					t.Errorf("session %d got %q, %v", n, line, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// FuzzServeStream checks that a client receives one valid message per line for any input.
// The session ends with its input.
func FuzzServeStream(f *testing.F) {
	f.Add([]byte(initialize + "\n" + request("1", "echo", `{"a":1}`)))
	f.Add([]byte(request("1", "ask", "") + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte("[]\n{}\n\n\r\nnull\n{\"id\":1"))
	f.Add([]byte(request("1", "progress", `{"n":3}`) + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		var out lockedBuffer
		h := newScript()
		h.handle = func(x *downstream.Request) {
			if x.Method() == "echo" && x.Params() != nil {
				x.Reply(x.Params())
			} else {
				x.Fail(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no"))
			}
		}
		err := downstream.ServeStream(t.Context(), downstream.Options{Handler: h, Limits: downstream.Limits{Frame: 1 << 16}},
			"stdio", strings.NewReader(string(input)), &out)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if _, err := jsonrpc.Parse([]byte(line)); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
		}
	})
}

type lockedBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}
