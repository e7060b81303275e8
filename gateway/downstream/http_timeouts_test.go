package downstream_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
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

func lower(s string) string { return strings.ToLower(s) }

func isLoopbackIP(s string) bool {
	ip, err := netip.ParseAddr(s)
	return err == nil && ip.Unmap().IsLoopback()
}

// memory is a listener without a network, for simulated time.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemory() *memory { return &memory{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7331} }

func (m *memory) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case m.conns <- far:
		return near, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

// serve runs an endpoint in simulated time. stop closes it and returns the result of
// Serve.
func serve(t *testing.T, o downstream.HTTPOptions) (c *site, l *memory, stop func() error) {
	h := newScript()
	o.Handler = h
	l = newMemory()
	e := downstream.NewHTTP(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx, l) }()
	tr := &http.Transport{DialContext: l.dial, DisableCompression: true}
	c = &site{t: t, h: h, http: e, url: "http://localhost", client: &http.Client{Transport: tr}}
	var once sync.Once
	var err error
	stop = func() error {
		once.Do(func() {
			cancel()
			err = <-done
			tr.CloseIdleConnections()
		})
		return err
	}
	return c, l, stop
}

func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		idle, used, streaming, busy := c.open(), c.open(), c.open(), c.open()
		for _, id := range []string{idle, used, streaming} {
			c.do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		ctx, hangUp := context.WithCancel(t.Context())
		get := c.doContext(ctx, "GET", streaming, "")
		ctx2, hangUp2 := context.WithCancel(t.Context())
		go func() {
			if res, err := c.try(ctx2, "POST", busy, request("1", "block", "")); err == nil {
				res.Body.Close()
			}
		}()
		<-c.h.begun
		hangUp2() // the request keeps running
		alive := func(id string) bool {
			res := c.do("POST", id, request(`"?"`, "echo", ""))
			io.Copy(io.Discard, res.Body)
			return res.StatusCode == 200
		}
		go io.Copy(io.Discard, get.Body)
		for range 4 {
			time.Sleep(20 * time.Minute)
			require.True(t, alive(used))
		}
		require.Equal(t, 3, c.http.Sessions())
		require.False(t, alive(idle))
		hangUp()
		time.Sleep(29 * time.Minute)
		require.Equal(t, 3, c.http.Sessions())
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, c.http.Sessions(), "the busy one is kept")
		require.NoError(t, stop())
	})
}

func TestNoStreamBeginsDuringAShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		id := c.open()
		go func() {
			if res, err := c.try(t.Context(), "POST", id, request("1", "block", "")); err == nil {
				res.Body.Close()
			}
		}()
		<-c.h.begun
		closed := make(chan struct{})
		go func() { defer close(closed); c.http.Close() }()
		synctest.Wait() // for the request in flight
		require.Equal(t, 503, c.do("GET", id, "").StatusCode)
		<-closed
	})
}

func TestQuietStreamsShowThatTheyLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		id := c.open()
		for _, method := range []string{"GET", "POST"} {
			res := c.do(method, id, request("1", "block", ""), "Accept", "text/event-stream")
			in := bufio.NewReader(res.Body)
			for range 10 {
				start := time.Now()
				line, err := in.ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, ": keep-alive\n", line)
				require.InDelta(t, 20, time.Since(start).Seconds(), 5)
				in.ReadString('\n')
			}
			res.Body.Close()
		}
	})
}

func TestNoStreamMeansNoQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		c.open()
		s := <-c.h.opened
		start := time.Now()
		_, err := s.Ask(t.Context(), "roots/list", nil)
		require.ErrorIs(t, err, downstream.ErrNoStream)
		require.Less(t, time.Since(start), 10*time.Second)
	})
}

func TestSlowConnectionsAreCut(t *testing.T) {
	drips := map[string]string{
		"nothing": "",
		"header":  "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
		"body": "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
			"Accept: */*\r\nContent-Length: 1000000\r\n\r\n",
		"body of a refused request":       "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
		"chunks of a refused request":     "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
		"body of a request without a use": "GET /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
	}
	synctest.Test(t, func(t *testing.T) {
		c, l, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		start := time.Now()
		var all sync.WaitGroup
		var cut atomic.Int64
		for name, head := range drips {
			for range 10 {
				conn, err := l.dial(t.Context(), "", "")
				require.NoError(t, err)
				all.Go(func() { io.Copy(io.Discard, conn) })
				all.Go(func() {
					defer conn.Close()
					if _, err := io.WriteString(conn, head); err != nil {
						t.Errorf("%s: %v", name, err)
					}
					for {
						time.Sleep(time.Second)
						if _, err := conn.Write([]byte("x")); err != nil {
							cut.Add(1)
							return
						}
					}
				})
			}
		}
		time.Sleep(5 * time.Second)
		c.open() // other clients are served
		all.Wait()
		require.EqualValues(t, 10*len(drips), cut.Load())
		require.LessOrEqual(t, time.Since(start), 35*time.Second)
	})
}

func TestIdleConnectionsEndTwoMinutesAfterTheLastRequest(t *testing.T) {
	get := "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" // with empty settings
	synctest.Test(t, func(t *testing.T) {
		_, l, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		for _, sent := range [][]string{{get, get, get}, {preface}} {
			conn, err := l.dial(t.Context(), "", "")
			require.NoError(t, err)
			var received strings.Builder
			ended := make(chan time.Time, 1)
			go func() {
				io.Copy(&received, conn)
				ended <- time.Now()
			}()
			var last time.Time
			for _, text := range sent {
				time.Sleep(time.Until(last.Add(110 * time.Second)))
				_, err := io.WriteString(conn, text)
				require.NoError(t, err)
				last = time.Now()
			}
			require.InDelta(t, 120, (<-ended).Sub(last).Seconds(), 2)
			require.Equal(t, strings.Count(strings.Join(sent, ""), "GET"), strings.Count(received.String(), "404"))
			conn.Close()
		}
	})
}

func TestALargeBodyMayTakeTheTimeItsSizeAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		id := c.open()
		in, feed := io.Pipe()
		go func() {
			io.WriteString(feed, `{"jsonrpc":"2.0","id":1,"method":"echo","params":{}`)
			blank := strings.Repeat(" ", 64<<10)
			for range 60 {
				time.Sleep(2 * time.Second)
				io.WriteString(feed, blank)
			}
			io.WriteString(feed, "}")
			feed.Close()
		}()
		req, err := http.NewRequestWithContext(t.Context(), "POST", c.url+"/mcp", in)
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Mcp-Session-Id", id)
		res, err := c.client.Do(req)
		require.NoError(t, err)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, body(t, res))
		res.Body.Close()
	})
}

func TestStalledReadersAreCutAndTheSessionLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l, stop := serve(t, downstream.HTTPOptions{Options: downstream.Options{Limits: downstream.Limits{Unsent: 1 << 20}}})
		defer stop()
		id := c.open()
		s := <-c.h.opened
		got := make(chan string, 1)
		get := c.get(id)
		go func() { got <- get.must() }()
		for _, accept := range []string{"application/json", "text/event-stream"} {
			conn, err := l.dial(t.Context(), "", "")
			require.NoError(t, err)
			text := request("1", "big", `{"n":`+number(3<<20)+`}`)
			_, err = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: "+accept+
				"\r\nMcp-Session-Id: "+id+"\r\nContent-Length: "+number(len(text))+"\r\n\r\n"+text)
			require.NoError(t, err)
			synctest.Wait()
			require.Greater(t, s.UnsentBytes(), int64(2<<20))

			// While too much data waits, further requests of this session wait, too.
			start := time.Now()
			res := c.do("POST", id, request("2", "echo", ""))
			require.InDelta(t, 60, time.Since(start).Seconds(), 2)
			require.Contains(t, []int{200, 503}, res.StatusCode)
			io.Copy(io.Discard, res.Body)
			time.Sleep(5 * time.Second)
			_, err = conn.Write([]byte("x"))
			require.Error(t, err, "the connection was cut")
			require.Zero(t, s.UnsentBytes())
			require.Equal(t, 200, c.do("POST", id, request("3", "echo", "")).StatusCode)
		}
		s.Notify("alive", nil)
		require.Contains(t, <-got, "alive")
	})
}

func TestASessionThatLeavesTooMuchUnreadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{Options: downstream.Options{Limits: downstream.Limits{Unsent: 64 << 10}}})
		defer stop()
		id := c.open()
		s := <-c.h.opened
		c.do("GET", id, "") // never read
		pad := []byte(`{"x":"` + strings.Repeat("x", 64<<10) + `"}`)
		for i := range 25 {
			s.NotifyLatest(number(i), "n", pad)
		}
		require.ErrorIs(t, context.Cause(s.Context()), downstream.ErrOverflow)
		<-c.h.closed
		require.Equal(t, 404, c.do("POST", id, request("1", "echo", "")).StatusCode)
	})
}

func TestSessionsOfClientsThatNeverCameBackEndSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		c.open() // and its client has disconnected
		said, asked, hears := c.open(), c.open(), c.open()
		c.do("POST", said, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		c.do("POST", asked, request("1", "echo", ""))
		ctx, hangUp := context.WithCancel(t.Context())
		get := c.doContext(ctx, "GET", hears, "")
		go io.Copy(io.Discard, get.Body)
		time.Sleep(50 * time.Second)
		require.Equal(t, 4, c.http.Sessions())
		time.Sleep(20 * time.Second)
		require.Equal(t, 3, c.http.Sessions(), "an abandoned one")
		hangUp()
		time.Sleep(2 * time.Minute)
		require.Equal(t, 2, c.http.Sessions(), "another one")
		time.Sleep(25 * time.Minute)
		require.Equal(t, 2, c.http.Sessions())
		time.Sleep(5 * time.Minute)
		require.Zero(t, c.http.Sessions())
	})
}

func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{MaxConnections: 2})
		defer stop()
		id := c.open()
		ctx, hangUp := context.WithCancel(t.Context())
		for range 2 {
			res := c.doContext(ctx, "GET", id, "")
			go io.Copy(io.Discard, res.Body)
		}
		start := time.Now()
		time.AfterFunc(5*time.Second, hangUp)
		c.open()
		require.Equal(t, 5*time.Second, time.Since(start), "waited for a slot")
	})
}

func TestQuietConnectionsMakeRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l, stop := serve(t, downstream.HTTPOptions{MaxConnections: 3})
		defer stop()
		id := c.open()
		ctx, hangUp := context.WithCancel(t.Context())
		defer hangUp()
		res := c.doContext(ctx, "GET", id, "") // in use all the time
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			io.Copy(io.Discard, res.Body)
		}()
		start := time.Now()
		for range 20 {
			conn, err := l.dial(t.Context(), "", "") // as an attacker that holds connections
			require.NoError(t, err)
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"); err == nil {
				_, _ = conn.Read(make([]byte, 4096))
			}
		}
		c.open()
		require.Zero(t, time.Since(start), "no goroutine waits")
		select {
		case <-closed:
			t.Fatal("a stream was cut")
		default:
		}
	})
}

func TestServeEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l, stop := serve(t, downstream.HTTPOptions{})
		id := c.open()
		c.do("GET", id, "") // never read
		go func() {
			if res, err := c.try(t.Context(), "POST", id, request("1", "block", "")); err == nil {
				res.Body.Close()
			}
		}()
		<-c.h.begun
		idle, err := l.dial(t.Context(), "", "")
		require.NoError(t, err)
		defer idle.Close()
		start := time.Now()
		require.NoError(t, stop())
		require.LessOrEqual(t, time.Since(start), 8*time.Second)
		require.ErrorIs(t, <-c.h.causes, downstream.ErrShutdown)
		<-c.h.closed
		_, err = l.dial(t.Context(), "", "")
		require.Error(t, err)
	})
}

func TestServeNeedsATokenBeyondLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: newScript()}, Listen: "0.0.0.0:1"})
	require.ErrorContains(t, h.Serve(t.Context(), l), "auth_token")
	_, err = l.Accept() // another process may have its port
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestServeReportsALostListener(t *testing.T) {
	l := newMemory()
	h := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: newScript()}})
	l.Close()
	require.ErrorIs(t, h.Serve(t.Context(), l), net.ErrClosed)
}

func TestLargeBodiesShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frame = 1 << 20
		c, l, stop := serve(t, downstream.HTTPOptions{Options: downstream.Options{
			Limits: downstream.Limits{Frame: frame}, Memory: account.New(16 * frame),
		}})
		defer stop()
		id := c.open()
		var all sync.WaitGroup
		var mu sync.Mutex
		statuses := make(map[string]int)
		part := strings.Repeat(" ", frame-10)
		for range 20 {
			conn, err := l.dial(t.Context(), "", "")
			require.NoError(t, err)
			all.Go(func() {
				io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
					"Mcp-Session-Id: "+id+"\r\nContent-Length: "+number(frame)+"\r\n\r\n"+part)
			})
			all.Go(func() {
				defer conn.Close()
				line, _ := bufio.NewReader(conn).ReadString('\r')
				_, status, _ := strings.Cut(line, " ")
				status, _, _ = strings.Cut(status, " ")
				mu.Lock()
				defer mu.Unlock()
				statuses[status]++
			})
		}
		all.Wait()
		// Requests within the budget waited until their time limit.
		require.Equal(t, 20, statuses["503"]+statuses["408"], statuses)
		require.GreaterOrEqual(t, statuses["503"], 10)
		require.NotZero(t, statuses["408"])
		res := c.do("POST", id, request("1", "echo", strings.Repeat(" ", frame/2)+"{}"))
		require.Equal(t, 200, res.StatusCode, "it is free again")
	})
}

func TestLateCancellationsEndTheirRequestsProperly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		id := c.open()
		var told sync.WaitGroup
		told.Go(func() {
			time.Sleep(10 * time.Minute) // longer than the limit of a write
			res, err := c.try(t.Context(), "POST", id, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			if err != nil {
				t.Error(err)
				return
			}
			res.Body.Close()
		})
		require.Equal(t, 202, c.do("POST", id, request("1", "block", "")).StatusCode)
		told.Wait()
	})
}

// The requests arrive in quick succession, as from a server that sends several in
// parallel.
func TestQuestionsAskedSideBySideAreOneDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		c.h.handle = func(x *downstream.Request) {
			var all sync.WaitGroup
			for i := range 3 {
				all.Go(func() {
					time.Sleep(time.Duration(i) * time.Millisecond)
					_, _ = x.Ask(x.Context(), "sampling/createMessage", []byte(`{"n":`+number(i)+`}`)) // never answered
				})
			}
			all.Wait()
		}
		res := c.do("POST", "", request("1", "tools/call", modern(`"name":"t"`)), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "t")
		text := body(t, res)
		require.Equal(t, 3, strings.Count(text, `"sampling/createMessage"`), text)
	})
}

func TestLeastRecentlyUsedSessionMakesRoomAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{Options: downstream.Options{Limits: downstream.Limits{Sessions: 2}}})
		defer stop()
		use := func(id string) int {
			time.Sleep(time.Second) // later than the last use of the others, which are idle again
			res := c.do("POST", id, request("1", "echo", ""))
			body(t, res)
			return res.StatusCode
		}
		one, two := c.open(), c.open()
		require.Equal(t, 200, use(one))
		time.Sleep(time.Second)
		three := c.open()
		require.Equal(t, 404, use(two))
		require.Equal(t, 200, use(one))
		require.Equal(t, 200, use(three))
	})
}

// A client without DELETE is quiet. A client with a stream or a request is not.
func TestASessionWithoutAStreamIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, stop := serve(t, downstream.HTTPOptions{})
		defer stop()
		id := c.open()
		c.do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		s := <-c.h.opened
		ctx, hangUp := context.WithCancel(t.Context())
		get := c.doContext(ctx, "GET", id, "")
		go io.Copy(io.Discard, get.Body)
		time.Sleep(10 * time.Minute)
		require.Zero(t, s.IdleTime())
		hangUp()
		synctest.Wait()
		time.Sleep(14 * time.Minute)
		require.Equal(t, 14*time.Minute, s.IdleTime())
	})
}
