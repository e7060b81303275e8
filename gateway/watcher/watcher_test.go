//go:build unix

package watcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/jsonrpc"
	"goblin/gateway/mcpclient"
	"goblin/gateway/watcher"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gateway answers the requests of a watcher.
type gateway struct {
	t         *testing.T
	mu        sync.Mutex
	content   map[string]string // by URI: members of the content, or ""
	refuses   bool              // subscriptions
	requests  []string
	conns     []net.Conn
	out       []*jsonrpc.SendQueue
	serving   sync.WaitGroup
	subscribe chan struct{} // receives a value for each subscription
}

func newGateway(t *testing.T) *gateway {
	g := &gateway{t: t, content: map[string]string{"x:1": `"text":"a\n"`}, subscribe: make(chan struct{}, 100)}
	t.Cleanup(g.serving.Wait)
	return g
}

func (g *gateway) open(ctx context.Context, notify func(string, json.RawMessage)) (*mcpclient.Client, func(), error) {
	near, far := net.Pipe()
	out := jsonrpc.NewStream(far)
	g.mu.Lock()
	g.conns, g.out = append(g.conns, far), append(g.out, out)
	g.mu.Unlock()
	g.serving.Go(func() { _ = out.Run() })
	g.serving.Go(func() { g.serve(far, out) })
	c, err := mcpclient.Open(ctx, near, mcpclient.Options{Name: "test", Version: "1", Revision: "2025-06-18", MaxMessage: 1 << 20, Notify: notify})
	if err != nil {
		return nil, nil, err
	}
	return c, func() { _ = c.Close() }, nil
}

func (g *gateway) serve(conn net.Conn, out *jsonrpc.SendQueue) {
	defer out.Finish()
	in := jsonrpc.NewReader(conn, 1<<20)
	for {
		frame, err := in.Read()
		if err != nil {
			return
		}
		m, err := jsonrpc.Parse(frame)
		if err != nil || !m.IsRequest() {
			continue
		}
		out.Send(g.answer(&m))
	}
}

func (g *gateway) answer(m *jsonrpc.Message) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	var p struct{ URI string }
	_ = json.Unmarshal(m.Params, &p)
	g.requests = append(g.requests, strings.TrimSpace(m.Method+" "+p.URI))
	switch {
	case m.Method == "resources/subscribe" && g.refuses:
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "Server 's' does not support subscriptions").Frame(m.ID)
	case m.Method == "resources/subscribe":
		g.subscribe <- struct{}{}
	case m.Method == "resources/read" && g.content[p.URI] == "":
		return jsonrpc.Errorf(-32002, "not found").Frame(m.ID)
	case m.Method == "resources/read":
		return jsonrpc.ResultFrame(m.ID, fmt.Appendf(nil, `{"contents":[{"uri":%q,%s}]}`, p.URI, g.content[p.URI]))
	}
	return jsonrpc.ResultFrame(m.ID, []byte(`{}`))
}

// set changes a content and notifies all sessions.
func (g *gateway) set(uri, content string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.content[uri] = content
	for _, out := range g.out {
		out.Send(jsonrpc.NotificationFrame("notifications/resources/updated", fmt.Appendf(nil, `{"uri":%q}`, uri)))
	}
}

func (g *gateway) closeConns() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns, g.out = nil, nil
}

// start runs a watcher until the test ends and returns its updates.
func start(t *testing.T, g *gateway, o watcher.Options) (updates <-chan watcher.Update, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	delivered := make(chan watcher.Update, 100)
	o.Open, o.Warn = g.open, func(string, ...any) {}
	if o.Deliver == nil {
		o.Deliver = func(_ context.Context, u *watcher.Update) error { delivered <- *u; return nil }
	}
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx, o) }()
	stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	return delivered, stop
}

func TestEachNewContentIsDelivered(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	updates, stop := start(t, g, watcher.Options{URIs: []string{"x:1"}})
	first := <-updates
	require.Equal(t, "x:1 a\n true", fmt.Sprintf("%s %s %v", first.URI, first.Content, first.First))
	g.set("x:1", `"text":"a\n"`) // an update without a change
	g.set("x:1", `"text":"b\n"`)
	second := <-updates
	require.Equal(t, "b\n", string(second.Content))
	require.Equal(t, "--- x:1\n+++ x:1\n@@ -1 +1 @@\n-a\n+b\n", second.Difference())
	g.set("x:1", `"blob":"AAEC"`)
	third := <-updates
	require.True(t, third.Binary)
	require.Equal(t, "\x00\x01\x02", string(third.Content))
	require.Equal(t, "binary content changed: 2 B to 3 B\n", third.Difference())
	hostile := watcher.Update{URI: "x\n+++ /etc/passwd\x1b[2J", Content: []byte("a")}
	require.True(t, strings.HasPrefix(hostile.Difference(), "--- x\\n+++ /etc/passwd\\x1b[2J\n+++ x"), hostile.Difference())
	require.NoError(t, stop())
	require.Equal(t, "resources/unsubscribe x:1", g.requests[len(g.requests)-1])
}

func TestUpdatesDuringADeliveryAreMerged(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	var running, most atomic.Int32
	entered, proceed := make(chan string), make(chan struct{})
	_, stop := start(t, g, watcher.Options{URIs: []string{"x:1"}, Deliver: func(_ context.Context, u *watcher.Update) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		entered <- string(u.Content)
		<-proceed
		return nil
	}})
	require.Equal(t, "a\n", <-entered)
	for i := range 20 {
		g.set("x:1", fmt.Sprintf(`"text":"%d"`, i))
	}
	proceed <- struct{}{}
	got := <-entered
	for got != "19" { // an earlier one may have been read before
		proceed <- struct{}{}
		got = <-entered
	}
	close(proceed)
	require.NoError(t, stop())
	require.EqualValues(t, 1, most.Load())
}

func TestSessionsAreOpenedAgain(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	updates, _ := start(t, g, watcher.Options{URIs: []string{"x:1"}})
	<-updates
	g.closeConns()
	g.mu.Lock()
	g.content["x:1"] = `"text":"after"`
	g.mu.Unlock()
	require.Equal(t, "after", string((<-updates).Content))
}

func TestServersWithoutSubscriptionsAreRead(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	g.refuses = true
	err := watcher.Run(t.Context(), watcher.Options{URIs: []string{"x:1"}, Open: g.open})
	var refused *watcher.NoSubscriptionsError
	require.ErrorAs(t, err, &refused)
	updates, _ := start(t, g, watcher.Options{URIs: []string{"x:1"}, Every: time.Millisecond})
	<-updates
	g.mu.Lock()
	g.content["x:1"] = `"text":"polled"`
	g.mu.Unlock()
	require.Equal(t, "polled", string((<-updates).Content))
}

func TestAMissingResourceFailsOnlyAtTheBeginning(t *testing.T) {
	t.Parallel()
	g := newGateway(t)
	var unread *watcher.ReadError
	require.ErrorAs(t, watcher.Run(t.Context(), watcher.Options{URIs: []string{"x:2"}, Open: g.open}), &unread)
	updates, _ := start(t, g, watcher.Options{URIs: []string{"x:1"}})
	<-updates
	g.set("x:1", "")
	g.set("x:1", `"text":"back"`)
	require.Equal(t, "back", string((<-updates).Content))
}

func TestExecRunsALineInTheShell(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	require.NoError(t, watcher.Exec(t.Context(), `cat; echo " of $GOBLIN_URI"; echo bad >&2`, "x:$(id)", []byte("content"), &out, &errs))
	require.Equal(t, "content of x:$(id)\nbad\n", out.String()+errs.String())
	require.ErrorContains(t, watcher.Exec(t.Context(), "exit 3", "x", nil, &out, &errs), "exit status 3")
	require.NoError(t, watcher.Exec(t.Context(), "true", "x", bytes.Repeat([]byte("x"), 1<<20), &out, &errs), "a command need not read its input")
}

func TestTheEndStopsACommandWithItsChildren(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	fifo := filepath.Join(t.TempDir(), "started")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	ended := make(chan error, 1)
	var out bytes.Buffer
	go func() {
		ended <- watcher.Exec(ctx, `(trap "" TERM; echo up > "$GOBLIN_URI"; while :; do sleep 1; done) & wait`, fifo, nil, &out, &out)
	}()
	_, err := os.ReadFile(fifo) // waits for the child
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}
