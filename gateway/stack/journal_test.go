package stack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/daemon"
	"goblin/gateway/jsonrpc"
	"goblin/gateway/servers"
	"goblin/registry"
)

// peer is a client on a stream inside this process. It receives every message.
type peer struct {
	t     *testing.T
	conn  net.Conn
	got   chan jsonrpc.Message // notifications
	back  chan jsonrpc.Message // answers
	heard []jsonrpc.Message    // notifications that no test waited for
}

func join(t *testing.T, i *Stack) *peer {
	t.Helper()
	return joinAs(t, i, "editor", "{}")
}

// joinAs is join with a name and capabilities.
func joinAs(t *testing.T, i *Stack, name, capabilities string) *peer {
	t.Helper()
	p := &peer{t: t, conn: i.Connect(context.Background(), AllEntries), got: make(chan jsonrpc.Message, 1000), back: make(chan jsonrpc.Message, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		frames := jsonrpc.NewReader(p.conn, 1<<20)
		for {
			frame, err := frames.Read()
			if err != nil {
				return
			}
			m, err := jsonrpc.Parse(frame)
			switch {
			case err != nil:
				t.Error(err)
			case m.IsResponse():
				p.back <- m
			default:
				p.got <- m
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.conn.Close()
		<-read
	})
	p.ask("initialize", `{"protocolVersion":"2025-06-18","capabilities":`+capabilities+`,"clientInfo":{"name":"`+name+`","title":"The Editor","version":"7"}}`)
	p.send(jsonrpc.NotificationFrame("notifications/initialized", nil))
	return p
}

func (p *peer) send(frame []byte) {
	p.t.Helper()
	require.NoError(p.t, p.conn.SetWriteDeadline(time.Now().Add(patience)))
	_, err := p.conn.Write(frame)
	require.NoError(p.t, err)
}

func (p *peer) ask(method, params string) jsonrpc.Message {
	p.t.Helper()
	p.send(jsonrpc.RequestFrame([]byte("1"), method, []byte(params)))
	return p.answer()
}

func (p *peer) answer() jsonrpc.Message {
	p.t.Helper()
	select {
	case m := <-p.back:
		return m
	case <-time.After(patience):
		require.FailNow(p.t, "no answer")
		return jsonrpc.Message{}
	}
}

// hears waits for a notification. Each counts once.
func (p *peer) hears(method string) {
	p.t.Helper()
	limit := time.After(patience)
	for {
		if n := slices.IndexFunc(p.heard, func(m jsonrpc.Message) bool { return m.Method == method }); n >= 0 {
			p.heard = slices.Delete(p.heard, n, n+1)
			return
		}
		select {
		case m := <-p.got:
			p.heard = append(p.heard, m)
		case <-limit:
			require.FailNow(p.t, "not received", method)
		}
	}
}

// traffic waits until the journal has n matching records, and returns the first ones with
// their bodies.
func traffic(t *testing.T, i *Stack, n int, fits func(registry.TrafficRecord) bool) []registry.TrafficRecord {
	t.Helper()
	var found []registry.TrafficRecord
	require.Eventually(t, func() bool {
		found = nil
		for _, r := range i.Registry().Traffic().Window(0, -1) {
			if fits(r) {
				whole, ok := i.Registry().Traffic().Record(r.Seq)
				require.True(t, ok)
				found = append(found, whole)
			}
		}
		return len(found) >= n
	}, patience, 2*time.Millisecond)
	return found
}

func method(name string) func(registry.TrafficRecord) bool {
	return func(r registry.TrafficRecord) bool { return r.Method == name }
}

func TestRegistryKnowsTheSessions(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: tools})
	screen := open(t, i, nil)
	p := join(t, i)
	p.ask("tools/call", `{"name":"s_t"}`)
	all := i.Registry().Sessions()
	require.Len(t, all, 2)
	require.Equal(t, screen.Session(), all[0].ID)
	require.True(t, all[0].Screen)
	editor := all[1]
	status, err := i.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, status.Sessions[1].ID, editor.ID)
	require.False(t, editor.Since.IsZero())
	editor.Since = time.Time{}
	require.Equal(t, registry.Session{
		ID: editor.ID, Transport: "stdio", Client: "editor", ClientTitle: "The Editor", Version: "7", Protocol: "2025-06-18",
	}, editor)
	for _, r := range traffic(t, i, 1, method("tools/call")) {
		require.Equal(t, editor.ID, r.Session)
		require.Equal(t, "editor", r.Client)
	}
	require.NoError(t, p.conn.Close())
	require.Eventually(t, func() bool { return len(i.Registry().Sessions()) == 1 }, patience, time.Millisecond)
	require.NoError(t, screen.Close())
	require.Empty(t, i.Registry().Sessions())
}

const watched = tools + `,"resources":[{"uri":"x:a","name":"a"}],"on":{"tools/call t":[` +
	`{"do":"notify","method":"notifications/resources/updated","params":{"uri":"x:a"}}]}`

func TestSubscriptionsNameTheirHolders(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: watched})
	row := func() registry.SubscriptionState {
		rows := i.Registry().Subscriptions()
		require.Len(t, rows, 1)
		return rows[0]
	}
	var ids []string
	var clients []*Client
	for n := range 25 {
		c := open(t, i, nil)
		_, err := c.Request(within(t), "resources/subscribe", json.RawMessage(`{"uri":"mcp://s/x:a"}`), nil)
		require.NoError(t, err)
		clients, ids = append(clients, c), append(ids, c.Session())
		if n == 1 {
			require.ElementsMatch(t, ids, row().Sessions)
		}
	}
	require.Equal(t, 25, row().Holders)
	require.Len(t, row().Sessions, 20)
	require.Subset(t, ids, row().Sessions)

	_, err := clients[0].Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return row().Updates == 1 }, patience, time.Millisecond)
	// All of them share one record.
	updates := method("notifications/resources/updated")
	shared := traffic(t, i, 1, updates)
	require.Len(t, shared, 1)
	require.Equal(t, []any{25, "", "", "mcp://s/x:a"}, []any{shared[0].Receivers, shared[0].Session, shared[0].Client, shared[0].Name})
	require.JSONEq(t, `{"uri":"x:a"}`, string(shared[0].Request))

	for _, c := range clients[20:] {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return row().Holders == 20 }, patience, time.Millisecond)
	_, err = clients[0].Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
	require.NoError(t, err)
	var told []string
	for _, r := range traffic(t, i, 21, updates)[1:] {
		require.Equal(t, []any{registry.ToClient, "s", "mcp://s/x:a", "screen", registry.StatusNotification, time.Duration(0), 0},
			[]any{r.Direction, r.Server, r.Name, r.Client, r.Status, r.Duration, r.Receivers})
		require.JSONEq(t, `{"uri":"x:a"}`, string(r.Request))
		told = append(told, r.Session)
	}
	require.ElementsMatch(t, ids[:20], told)

	for _, c := range clients[1:20] {
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return slices.Equal(row().Sessions, ids[:1]) }, patience, time.Millisecond)
	require.Equal(t, 1, row().Holders)
}

func TestTrafficShowsWhatServersSendByThemselves(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: tools + `,"resources":[],"on":{"tools/call t":[{"do":"progress","n":2},` +
		`{"do":"notify","method":"notifications/message","params":{"level":"info","data":"hello"}},` +
		`{"do":"notify","method":"notifications/resources/updated","params":{"uri":"x:unwatched"}},` +
		`{"do":"request","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}},` +
		`{"do":"add","kind":"tools","entry":{"name":"t2","inputSchema":{"type":"object"}}},` +
		`{"do":"notify","method":"notifications/tools/list_changed"},{"do":"hang"}]}`})
	c := open(t, i, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"action":"decline"}`), nil
	})
	ctx, cancel := context.WithCancel(within(t))
	ended := make(chan error, 1)
	go func() {
		_, err := c.Request(ctx, "tools/call", json.RawMessage(`{"name":"s_t"}`), func(json.RawMessage) {})
		ended <- err
	}()
	one := func(name string) registry.TrafficRecord { return traffic(t, i, 1, method(name))[0] }

	progress := traffic(t, i, 2, method("notifications/progress"))
	require.Len(t, progress, 2)
	require.Equal(t, []any{c.Session(), "screen", registry.ToClient, "s", "s_t", registry.StatusNotification},
		[]any{progress[1].Session, progress[1].Client, progress[1].Direction, progress[1].Server, progress[1].Name, progress[1].Status})

	message := one("notifications/message")
	require.Equal(t, []any{c.Session(), "s"}, []any{message.Session, message.Server})
	require.Contains(t, string(message.Request), "hello")

	update := one("notifications/resources/updated")
	require.Equal(t, []any{"", "s", "x:unwatched"}, []any{update.Session, update.Server, update.Name})

	asked := one("elicitation/create")
	require.Equal(t, []any{c.Session(), registry.ToClient, "s", "success"}, []any{asked.Session, asked.Direction, asked.Server, asked.Status})
	require.Contains(t, string(asked.Request), "who?")
	require.JSONEq(t, `{"action":"decline"}`, string(asked.Response))

	require.Equal(t, c.Session(), one("notifications/tools/list_changed").Session)

	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	cancelled := one("notifications/cancelled")
	require.Equal(t, []any{c.Session(), registry.ToServer, "s", "s_t", registry.StatusNotification},
		[]any{cancelled.Session, cancelled.Direction, cancelled.Server, cancelled.Name, cancelled.Status})
	require.Contains(t, string(cancelled.Request), "context canceled")
}

// The time a user needs does not count for the server.
func TestLatencyIsWithoutWaitsForTheClient(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: `"tools":[{"name":"t","inputSchema":{"type":"object"}},{"name":"fast","inputSchema":{"type":"object"}}],"on":{"tools/call t":[` +
		`{"do":"request","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}},{"do":"echo"}]}`})
	const thought = 50 * time.Millisecond
	c := open(t, i, func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		time.Sleep(thought)
		return json.RawMessage(`{"action":"decline"}`), nil
	})
	call := func(name string) registry.TrafficRecord {
		t.Helper()
		_, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_`+name+`"}`), nil)
		require.NoError(t, err)
		all := traffic(t, i, 1, func(r registry.TrafficRecord) bool { return r.Name == "s_"+name })
		return all[len(all)-1]
	}
	var before registry.ServerState
	require.Eventually(t, func() bool {
		before, _ = i.Registry().State("s")
		return before.Listed
	}, patience, time.Millisecond)
	for range 3 {
		rec := call("t")
		require.True(t, rec.UserAsked)
		require.GreaterOrEqual(t, rec.Duration, thought)
	}
	after, _ := i.Registry().State("s")
	require.Equal(t, before.Latency, after.Latency)
	require.False(t, call("fast").UserAsked)
}

// Names keep everything that is not a configured secret, because requests can use them.
func TestNamesInTrafficKeepWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	const root, secret = "/srv/some/files", `pass/"word"`
	i, _ := start(t, "", fake{
		name: "s", extra: `, env: {ROOT: ` + root + `, PASSWORD: '` + secret + `'}`,
		script: `"resources":[{"uri":"file://` + root + `/a","name":"a"}]`,
	})
	c := open(t, i, nil)
	uri := "mcp://s/file://" + root + "/a"
	_, err := c.Request(within(t), "resources/read", json.RawMessage(`{"uri":"`+uri+`","k":["pass\/\"word\"","pass/\u0022word\u0022"]}`), nil)
	require.NoError(t, err)
	rec := traffic(t, i, 1, method("resources/read"))[0]
	require.Equal(t, uri, rec.Name)
	require.Contains(t, string(rec.Request), uri)
	require.NotContains(t, string(rec.Request), "word")
	_, _ = c.Request(within(t), "resources/read", json.RawMessage(`{"uri":"mcp://s/pass/\"word\""}`), nil)
	rec = traffic(t, i, 2, method("resources/read"))[1]
	require.Equal(t, "mcp://s/[hidden]", rec.Name)
}

func TestTrafficAndLogHoldNoSecrets(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-of-the-config"
	i, _ := start(t, "", fake{name: "s", extra: ", env: {KEY: " + secret + "}", script: tools + `,"resources":[],` +
		`"on":{"tools/call t":[{"do":"notify","method":"notifications/message","params":{"level":"info","data":"` + secret + `"}},{"do":"echo"}],` +
		`"prompts/get p":[{"do":"error","error":{"code":-5,"message":"bad ` + secret + `"}}]},"prompts":[{"name":"p"}]`})
	c := open(t, i, nil)
	result, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t","arguments":{"k":"`+secret+`"}}`), nil)
	require.NoError(t, err)
	require.Contains(t, string(result), secret, "clients receive the server's messages")
	_, err = c.Request(within(t), "prompts/get", json.RawMessage(`{"name":"s/p"}`), nil)
	require.ErrorContains(t, err, secret)
	_, err = c.Request(within(t), "resources/read", json.RawMessage(`{"uri":"mcp://s/`+secret+`"}`), nil)
	require.Error(t, err)
	i.Logger().Warn("told", "server", "s", "what", "the "+secret)

	seen := map[string]bool{}
	news := func(r registry.TrafficRecord) bool { return strings.HasSuffix(r.Method, "/list_changed") }
	for _, r := range traffic(t, i, 5, func(r registry.TrafficRecord) bool { return !news(r) }) {
		seen[r.Method] = true
		text := fmt.Sprintf("%s %s %s", r.Name, r.Request, r.Response)
		require.NotContains(t, text, secret)
		if r.Method != "initialize" {
			require.True(t, strings.Contains(text, "[hidden]"), text)
		}
	}
	require.Len(t, seen, 5, "%v", seen)
	for _, l := range i.Registry().Logs().Window(0, -1) {
		require.NotContains(t, l.Text, secret)
	}
}

func TestGoblinsOwnLogReachesTheRegistry(t *testing.T) {
	t.Parallel()
	i, err := New(Options{
		Config:  parse(t, "servers: {ok: {command: "+os.Args[0]+"-is-not-there}}"),
		Version: "v", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	log := i.Logger().With("server", "ok").WithGroup("g").With("a", 1)
	log.Info("message", "b", "two words", slog.Group("in", "c", true), "server", "other")
	log.Debug("not kept, as the log has none either")
	own := func() (found []registry.LogRecord) {
		for _, l := range i.Registry().Logs().Window(0, -1) {
			if l.Source == registry.SourceGoblin {
				found = append(found, l)
			}
		}
		return found
	}
	require.Len(t, own(), 1)
	require.Equal(t, []any{"ok", slog.LevelInfo, `message g.a=1 g.b="two words" g.in.c=true g.server=other`},
		[]any{own()[0].Server, own()[0].Level, own()[0].Text})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	require.Eventually(t, func() bool { return len(own()) > 1 }, patience, time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.Contains(t, own()[1].Text, "is-not-there")
	for _, l := range own()[1:] {
		require.NotContains(t, l.Text, "not connected", "sent once")
	}
}

func TestServerIsTurnedOffAndOn(t *testing.T) {
	t.Parallel()
	i, logs := start(t, "", fake{name: "s", script: watched}, fake{name: "o", script: tools})
	c, p := open(t, i, nil), join(t, i)
	require.Contains(t, string(p.ask("tools/list", "{}").Result), `"s_t"`)
	p.ask("resources/subscribe", `{"uri":"mcp://s/x:a"}`)

	require.NoError(t, c.SetEnabled("s", false))
	require.NoError(t, c.SetEnabled("s", false))
	p.hears("notifications/tools/list_changed")
	state := func() registry.State { st, _ := i.Registry().State("s"); return st.State }
	require.Eventually(t, func() bool { return state() == registry.StateDisabled }, patience, time.Millisecond)
	require.NotContains(t, string(p.ask("tools/list", "{}").Result), `"s_t"`)
	require.Contains(t, string(p.ask("tools/call", `{"name":"s_t"}`).Error), "TOOL_NOT_FOUND")
	require.ErrorContains(t, c.Restart("s"), "disabled")

	require.NoError(t, c.SetEnabled("s", true))
	require.NoError(t, c.SetEnabled("s", true))
	p.hears("notifications/tools/list_changed")
	require.Contains(t, string(p.ask("tools/list", "{}").Result), `"s_t"`)
	p.hears("notifications/resources/updated") // it may have changed meanwhile
	p.ask("tools/call", `{"name":"s_t"}`)
	p.hears("notifications/resources/updated")
	text, err := os.ReadFile(logs["s"])
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(text, []byte("resources/subscribe")))
	st, _ := i.Registry().State("s")
	require.Zero(t, st.Restarts, "not restarted")

	var unknown *servers.UnknownError
	require.ErrorAs(t, c.SetEnabled("none", true), &unknown)
}

func TestServerThatTheConfigDisablesIsTurnedOn(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "",
		fake{name: "off", script: tools, extra: ", disabled: true"},
		fake{name: "unset", script: tools, extra: ", disabled: true, env: {A: '${NOT_SET_ANYWHERE}'}"},
	)
	c := open(t, i, nil)
	require.ErrorContains(t, c.SetEnabled("unset", true), "NOT_SET_ANYWHERE")
	require.NoError(t, c.SetEnabled("unset", false))
	require.NoError(t, c.SetEnabled("off", true))
	require.Eventually(t, func() bool {
		_, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"off_t"}`), nil)
		return err == nil
	}, patience, 5*time.Millisecond)
}

func TestServerIsTurnedOffAndOnByManyAtOnce(t *testing.T) {
	t.Parallel()
	i, _ := start(t, "", fake{name: "s", script: tools})
	c := open(t, i, nil)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			for k := range 25 {
				_ = c.SetEnabled("s", (n+k)%2 == 0)
				_ = c.Restart("s") // an error while it is disabled
			}
		})
	}
	all.Wait()
	require.NoError(t, c.SetEnabled("s", true))
	require.Eventually(t, func() bool {
		_, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
		return err == nil
	}, patience, 5*time.Millisecond)

	// Run may return between.
	for range 4 {
		all.Go(func() {
			for k := range 1000 {
				_ = i.SetEnabled("s", k%2 == 0)
			}
		})
	}
	_ = i.Stop(t.Context())
	all.Wait()
}

func TestScreensComeOverTheSocket(t *testing.T) {
	t.Parallel()
	place := newPlace(t)
	for name, screen := range map[string]func(context.Context, net.Conn, io.Reader){
		"none": nil,
		"echo": func(_ context.Context, c net.Conn, r io.Reader) { _, _ = io.CopyN(c, r, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			i, err := New(Options{
				Config: parse(t, "gateway: {}"), Version: "v", Logger: slog.New(slog.DiscardHandler), Endpoint: &place, Screen: screen,
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- i.Run(ctx) }()
			c, err := daemon.Dial(within(t), place, daemon.KindScreen)
			if screen == nil {
				require.ErrorContains(t, err, "does not support screen connections")
			} else {
				require.NoError(t, err)
				_, err = c.Write([]byte("hi"))
				require.NoError(t, err)
				text, err := io.ReadAll(c)
				require.NoError(t, err)
				require.Equal(t, "hi", string(text))
				require.NoError(t, c.Close())
			}
			cancel()
			require.NoError(t, <-ended)
		})
	}
}

// Records show both sides of a request as the client saw them. A tool result with an
// error is not a success.
func TestTrafficShowsWhatTheClientGot(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", strings.Repeat("x", 10_000)} { // the end of large values is known without reading them
		i, _ := start(t, "", fake{name: "s", script: tools + `,"resources":[],"on":{"tools/call t":[{"do":"result","result":{"content":[` +
			`{"type":"text","text":"` + text + `"},{"type":"resource_link","uri":"file:///a","name":"a"}],"isError":true}}]}`})
		c := open(t, i, nil)
		result, err := c.Request(within(t), "tools/call", json.RawMessage(`{"name":"s_t"}`), nil)
		require.NoError(t, err)
		rec := traffic(t, i, 1, method("tools/call"))[0]
		require.Equal(t, string(result), string(rec.Response))
		require.Contains(t, string(rec.Response), "mcp://s/file:///a")
		require.Equal(t, registry.StatusToolError, rec.Status)
	}
}
