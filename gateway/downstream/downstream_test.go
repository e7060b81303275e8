package downstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/downstream"
	"goblin/gateway/e2e"
	"goblin/gateway/jsonrpc"
	"goblin/registry/rawjson"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // parallel tests wait
	goleak.VerifyTestMain(m)
}

// script is a handler with a method for each behavior.
type script struct {
	handle func(*downstream.Request) // replaces the methods below, if set
	begun  chan *downstream.Request  // running "block" requests
	causes chan error                // reasons for their end
	opened chan *downstream.Session
	closed chan *downstream.Session

	mu    sync.Mutex
	notes []string
}

func newScript() *script {
	return &script{
		begun:  make(chan *downstream.Request, 20000),
		causes: make(chan error, 20000),
		opened: make(chan *downstream.Session, 5000),
		closed: make(chan *downstream.Session, 5000),
	}
}

func (h *script) SessionOpened(s *downstream.Session) { h.opened <- s }
func (h *script) SessionClosed(s *downstream.Session) { h.closed <- s }

func (h *script) HandleNotification(s *downstream.Session, method string, params []byte) {
	if method == "notifications/panic" {
		panic("on purpose")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notes = append(h.notes, method+string(params))
}

func (h *script) noted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.notes...)
}

func (h *script) Handle(x *downstream.Request) {
	if h.handle != nil && x.Method() != "initialize" {
		h.handle(x)
		return
	}
	var n int64
	if v := rawjson.Get(x.Params(), "n"); v != nil {
		n, _ = rawjson.Int(v)
	}
	switch x.Method() {
	case "initialize":
		if rawjson.Get(x.Params(), "refuse") != nil {
			x.Fail(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "refused"))
			return
		}
		x.Session().SetInitialized("2025-11-25", x.Params())
		x.Reply([]byte(`{"protocolVersion":"2025-11-25"}`))
	case "echo":
		if x.Params() == nil {
			x.Reply([]byte(`{}`))
			return
		}
		x.Reply(x.Params())
	case "whoami":
		x.Reply([]byte(`{"id":"` + x.Session().ID() + `"}`))
	case "block":
		h.begun <- x
		<-x.Context().Done()
		h.causes <- context.Cause(x.Context())
		x.Reply([]byte(`{"late":true}`))
	case "progress":
		for i := range n {
			x.Notify("", "notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, x.ID(), i))
		}
		x.Reply([]byte(`{}`))
		x.Notify("", "notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":"late"}`, x.ID()))
		x.Reply([]byte(`{"second":true}`))
	case "ask":
		answer, err := x.Ask(x.Context(), "elicitation/create", []byte(`{"message":"?"}`))
		if err != nil {
			x.Fail(jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err))
			return
		}
		if answer.Error != nil {
			x.Error(answer.Error)
			return
		}
		x.Reply(answer.Result)
	case "big":
		x.Reply([]byte(`{"text":"` + strings.Repeat("x", int(n)) + `"}`))
	case "panic":
		panic("on purpose")
	case "nothing":
	default:
		x.Fail(jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Method not found: %s", x.Method()))
	}
}

// client reads and writes raw lines.
type client struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	done chan error // result of ServeStream
	stop context.CancelFunc
}

// transports are the connections of each stream test. net.Pipe has no descriptor, so the
// writer goroutine takes its frames; a socket is written directly.
var transports = map[string]func(testing.TB) (client, server net.Conn){
	"pipe": func(testing.TB) (net.Conn, net.Conn) { return net.Pipe() },
	"socket": func(t testing.TB) (net.Conn, net.Conn) {
		l, err := net.Listen("unix", filepath.Join(e2e.ShortDir(t), "s"))
		require.NoError(t, err)
		defer l.Close()
		a, err := net.Dial("unix", l.Addr().String())
		require.NoError(t, err)
		b, err := l.Accept()
		require.NoError(t, err)
		return a, b
	},
}

func overEach(t *testing.T, test func(t *testing.T, dial func(o downstream.Options) *client)) {
	for name, pair := range transports {
		t.Run(name, func(t *testing.T) {
			test(t, func(o downstream.Options) *client { return dial(t, o, pair) })
		})
	}
}

func dial(t testing.TB, o downstream.Options, pair func(testing.TB) (net.Conn, net.Conn)) *client {
	near, far := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := &client{t: t, conn: near, in: bufio.NewReaderSize(near, 1<<16), done: make(chan error, 1), stop: cancel}
	o.Closers = append(o.Closers, far)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		c.done <- downstream.ServeStream(ctx, o, "socket", far, far)
	}()
	t.Cleanup(func() {
		near.Close()
		cancel()
		<-finished
	})
	return c
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, strings.Join(lines, "\n")+"\n")
	require.NoError(c.t, err)
}

func (c *client) line() string {
	c.t.Helper()
	s, err := c.in.ReadString('\n')
	require.NoError(c.t, err)
	return strings.TrimSuffix(s, "\n")
}

func (c *client) message() message {
	c.t.Helper()
	return decode(c.t, c.line())
}

const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25",` +
	`"clientInfo":{"name":"tester","version":"1.2","title":"T","x":1},` +
	`"capabilities":{"elicitation":{},"sampling":null,"roots":{"listChanged":false}}}}`

type message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
	}
}

func decode(t testing.TB, line string) message {
	t.Helper()
	var m message
	require.NoError(t, json.Unmarshal([]byte(line), &m), line)
	return m
}

func request(id, method, params string) string {
	if params == "" {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `"}`
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func number(i int) string { return strconv.Itoa(i) }
