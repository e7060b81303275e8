package downstream_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
)

// A server that sends faster than a client reads must not close the client's session.
func TestAClientThatDoesNotReadIsSparedChatter(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"of the session", "of a request"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const unsent, sent = 64 << 10, 20_000
				h := newScript()
				begun, answer := make(chan *downstream.Request), make(chan struct{})
				h.handle = func(x *downstream.Request) {
					begun <- x
					<-answer
					x.Reply([]byte(`{}`))
				}
				spared := uint64(0)
				c := dial(t, downstream.Options{Handler: h, Limits: downstream.Limits{Unsent: unsent}, OnMissed: func(_ *downstream.Session, _ string, n uint64) {
					spared += n
				}}, transports["pipe"])
				s := <-h.opened
				c.send(request("1", "any", ""))
				x := <-begun
				say := func(params []byte) {
					if way == "of a request" {
						require.True(t, x.Notify("", "said", params))
					} else {
						s.Notify("said", params)
					}
				}
				pad := strings.Repeat("x", 1<<10)
				for i := range sent {
					say(fmt.Appendf(nil, `{"i":%d,"pad":%q}`, i, pad))
				}
				require.Less(t, s.UnsentBytes(), int64(unsent/2))
				close(answer)
				got := uint64(0)
				for c.message().Method != "" {
					got++
				}
				require.Greater(t, got, uint64(10))
				require.Zero(t, spared, "not reported while the client does not read")
				time.Sleep(2 * time.Second)
				s.Notify("said", nil)
				require.Equal(t, "said", c.message().Method)
				require.Equal(t, uint64(sent), got+spared)
			})
		})
	}
}

// The messages of one server delay no messages of other servers. They delay an answer
// only if they may belong to its request.
func TestAnswersOvertakeChatter(t *testing.T) {
	const lines = 3_000
	h := newScript()
	begun, over, echoed := make(chan *downstream.Request), make(chan struct{}), make(chan struct{})
	h.handle = func(x *downstream.Request) {
		if x.Method() != "wait" {
			x.Reply([]byte(`{}`))
			close(echoed)
			return
		}
		begun <- x
		<-over
	}
	spared := make(chan string, 10)
	c := dial(t, downstream.Options{Handler: h, OnMissed: func(_ *downstream.Session, server string, n uint64) {
		spared <- server
	}}, transports["pipe"])
	s := <-h.opened
	take := func(id string) *downstream.Request {
		c.send(request(id, "wait", ""))
		return <-begun
	}
	one, other, third, nested := take("1"), take("2"), take("3"), take("4")
	inner := nested.Nested(t.Context(), "x", []byte(`{}`))
	line := func(of string) []byte { return fmt.Appendf(nil, `{"of":%q,"pad":%q}`, of, strings.Repeat("x", 100)) }
	for i := range lines {
		s.Relay("loud", "said", line("session"))
		one.Relay("loud", "", "said", line("one"))
		if i == lines-1 {
			m, sent := one.Relay("loud", "", "said", line("one or third"))
			require.True(t, sent)
			third.AnswerAfter(m)
		}
	}
	inner.Relay("calm", "", "said", line("inner"))
	inner.Relay("loud", "", "said", line("inner, last"))
	for _, x := range []*downstream.Request{one, other, third} {
		x.Reply([]byte(`{}`))
	}
	c.send(request("5", "echo", ""))
	<-echoed
	nested.Reply([]byte(`{}`))
	close(over)
	var order []string
	last := map[string]string{} // messages before each answer, by request
	seen := map[string]int{}
	for len(order) < 5 {
		m := c.message()
		if m.Method == "" {
			order = append(order, string(m.ID))
			last[string(m.ID)] = fmt.Sprint(seen["session"], seen["one"], seen["one or third"], seen["inner"], seen["inner, last"])
			continue
		}
		for _, of := range []string{"session", "one", "one or third", "inner", "inner, last"} {
			if strings.Contains(string(m.Params), fmt.Sprintf(`"of":%q`, of)) {
				seen[of]++
			}
		}
	}
	require.Equal(t, []string{"2", "5"}, sorted(order[:2]), "none of their messages wait; got %v %v", order, last)
	n := 0
	for _, id := range []string{"2", "5"} {
		var session, one int
		_, err := fmt.Sscan(last[id], &session, &one)
		require.NoError(t, err)
		n = max(n, session+one)
	}
	require.Less(t, n, lines/5, "%v", last)
	require.Regexp(t, `^\d+ 3000 1 `, last["1"])
	require.Regexp(t, `^3000 3000 1 `, last["3"])
	require.Regexp(t, ` 1 1$`, last["4"])
	require.Empty(t, spared)
}

func TestRequestsWaitForAClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unsent, asked = 64 << 10, 100
		h := newScript()
		c := dial(t, downstream.Options{Handler: h, Limits: downstream.Limits{Unsent: unsent}}, transports["pipe"])
		s := <-h.opened
		results := make(chan error, asked)
		for range asked {
			go func() {
				_, err := s.Ask(t.Context(), "sampling/createMessage", []byte(`{"x":"`+strings.Repeat("x", unsent/2)+`"}`))
				results <- err
			}()
			synctest.Wait()
			require.LessOrEqual(t, s.UnsentBytes(), int64(2*unsent))
		}
		var ids []string
		for range asked {
			m := c.message()
			require.Equal(t, "sampling/createMessage", m.Method)
			ids = append(ids, string(m.ID))
		}
		for _, id := range ids {
			c.send(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
		}
		for range asked {
			require.NoError(t, <-results)
		}
	})
}

func TestARequestThatWaitsForRoomEndsWithItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newScript()
		c := dial(t, downstream.Options{Handler: h, Limits: downstream.Limits{Unsent: 1 << 10}}, transports["pipe"])
		s := <-h.opened
		s.NotifyLatest("k", "n", []byte(`{"x":"`+strings.Repeat("x", 8<<10)+`"}`))
		result := make(chan error, 1)
		go func() {
			_, err := s.Ask(t.Context(), "roots/list", nil)
			result <- err
		}()
		synctest.Wait()
		gone := errors.New("gone")
		s.Close(gone)
		require.ErrorIs(t, <-result, gone)
		require.ErrorIs(t, <-c.done, gone)
	})
}

// The same for requests of Goblin's own tools, for a client without a session.
func TestNestedRequestsSpareTheirClient(t *testing.T) {
	h := newScript()
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h, Limits: downstream.Limits{Unsent: 64 << 10}}})
	line := []byte(`{"data":"` + strings.Repeat("x", 64<<10) + `"}`)
	h.handle = func(x *downstream.Request) {
		x.Notify("", "notifications/first", nil)
		n := x.Nested(t.Context(), "tools/call", []byte(`{}`))
		for range 1000 {
			n.Notify("", "notifications/message", line)
		}
		n.Reply([]byte(`{}`))
		x.Reply([]byte(`{"over":true}`))
	}
	s := c.postModern(t.Context(), "1", "any", "")
	for {
		m := s.message()
		if m.Method == "" {
			require.JSONEq(t, `{"over":true}`, string(m.Result))
			return
		}
	}
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}
