package downstream_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/downstream"
	account "goblin/gateway/memlimit"
)

func TestABodyIsServedWhenThereIsRoomForIt(t *testing.T) {
	t.Parallel()
	const size = 4 << 20
	large := `{"x":"` + strings.Repeat("x", size) + `"}`
	for name, test := range map[string]struct{ limit, status int }{
		"room": {size * 6, 200}, "none": {size / 2, 503},
	} {
		t.Run(name, func(t *testing.T) {
			h := newScript()
			h.handle = func(x *downstream.Request) { x.Reply([]byte(`{"served":true}`)) }
			c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Handler: h, Memory: account.New(int64(test.limit))}})
			id := c.open()
			for range 5 {
				res := c.do("POST", id, request("1", "any", large))
				text := body(t, res)
				require.Equal(t, test.status, res.StatusCode, text)
				require.Contains(t, text, map[int]string{200: `{"served":true}`, 503: `"code":-32603`}[test.status])
				require.Equal(t, 200, c.do("POST", id, request("2", "any", "{}")).StatusCode, "small ones always fit")
			}
		})
	}
}

// Answers count in every form until they are sent.
func TestAnswersThatAreNotReadAreBoundedTogether(t *testing.T) {
	for _, accept := range []string{"application/json", "text/event-stream"} {
		for name, stateless := range map[string]bool{" to sessions": false, " to sessions that end": false, " to stateless clients": true} {
			t.Run(accept+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const size, limit = 1 << 20, 8 << 20
					a := account.New(limit)
					c, l, stop := serve(t, downstream.HTTPOptions{Options: downstream.Options{Memory: a}})
					defer stop()
					conns := make([]net.Conn, 10)
					for i := range conns {
						head, params, id := "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: big\r\n", modern(`"n":`+number(size)), ""
						if !stateless {
							id = c.open()
							head, params = "Mcp-Session-Id: "+id+"\r\n", `{"n":`+number(size)+`}`
						}
						text := request("1", "big", params)
						conn, err := l.dial(t.Context(), "", "")
						require.NoError(t, err)
						defer conn.Close()
						_, err = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: "+accept+"\r\n"+
							"Content-Type: application/json\r\n"+head+"Content-Length: "+number(len(text))+"\r\n\r\n"+text)
						require.NoError(t, err)
						conns[i] = conn
						if strings.HasSuffix(name, "end") {
							synctest.Wait()                                                         // the answer is in flight
							require.Contains(t, []int{204, 404}, c.do("DELETE", id, "").StatusCode) // 404: closed to free memory
						}
					}
					time.Sleep(time.Second)
					var whole atomic.Int32
					var all sync.WaitGroup
					for _, conn := range conns {
						all.Go(func() {
							if n, _ := io.Copy(io.Discard, conn); n > size { // the complete part
								whole.Add(1)
							}
						})
					}
					all.Wait()
					require.LessOrEqual(t, int(whole.Load()), limit/size)
					require.GreaterOrEqual(t, int(whole.Load()), limit/size/2)
				})
			})
		}
	}
}

// Without a stream, the waiting messages of all sessions share a limit.
func TestWhatWaitsForStreamsIsBoundedTogether(t *testing.T) {
	const sessions, each, limit = 20, 900, 8 << 20
	a := account.New(limit)
	c := newSite(t, downstream.HTTPOptions{Options: downstream.Options{Memory: a}})
	pad := []byte(`{"x":"` + strings.Repeat("x", 1<<10) + `"}`)
	var all []*downstream.Session
	kept := 0
	for range sessions {
		c.open()
		s := <-c.h.opened
		for i := range each {
			s.NotifyLatest(number(i), "notifications/x", pad)
		}
		kept += int(downstream.BufferedBytes(s))
		all = append(all, s)
	}
	require.LessOrEqual(t, kept, limit+sessions*(account.FreeSize+2<<10))
	require.GreaterOrEqual(t, kept, limit/2)
	require.Greater(t, int(downstream.BufferedBytes(all[0])), each<<10, "the first one gets all")
	require.NotZero(t, downstream.BufferedBytes(all[sessions-1]), "the last one gets some")
}
