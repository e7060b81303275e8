package notify

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/gateway/downstream"
	"goblin/gateway/telemetry"
	"goblin/gateway/view"
	"goblin/registry"
	"goblin/registry/rawjson"
)

// handler receives the messages of clients.
type handler struct{ session chan *downstream.Session }

func (h handler) SessionOpened(s *downstream.Session)                    { h.session <- s }
func (h handler) SessionClosed(*downstream.Session)                      {}
func (h handler) HandleNotification(*downstream.Session, string, []byte) {}
func (h handler) Handle(x *downstream.Request) {
	if x.Method() == "initialize" {
		x.Session().SetInitialized("2025-11-25", x.Params())
	}
	x.Reply([]byte("{}"))
}

// client is a client of a stream. It reads only when the test asks for its messages.
type client struct {
	*downstream.Session
	conn net.Conn

	once sync.Once
	mu   sync.Mutex
	got  []string
}

// connect starts the session of a client, in a bubble of synctest.
func connect(t *testing.T, profile string) *client {
	near, far := net.Pipe()
	h, ended := handler{make(chan *downstream.Session, 1)}, make(chan struct{})
	go func() {
		defer close(ended)
		_ = downstream.ServeStream(t.Context(), downstream.Options{Handler: h, Profile: profile}, "stdio", far, far)
	}()
	t.Cleanup(func() { near.Close(); <-ended })
	return &client{Session: <-h.session, conn: near}
}

func (c *client) send(line string) {
	_, _ = fmt.Fprintln(c.conn, line)
	synctest.Wait()
}

// heard returns the messages since its last call.
func (c *client) heard() (all []string) {
	c.once.Do(func() {
		go func() {
			lines := bufio.NewScanner(c.conn)
			for lines.Buffer(nil, 8<<20); lines.Scan(); {
				c.mu.Lock()
				c.got = append(c.got, lines.Text())
				c.mu.Unlock()
			}
		}()
	})
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.got = c.got, nil
	return all
}

// updates returns the URIs of the received updates.
func (c *client) updates() (uris []string) {
	for _, line := range c.heard() {
		if uri, ok := rawjson.String(rawjson.Path([]byte(line), "params", "uri")); ok {
			uris = append(uris, uri)
		}
	}
	return uris
}

// reporter returns a Notifier for clients of a config, without servers.
func reporter(t *testing.T, text string) *Notifier {
	cfg, err := config.Parse("goblin.yaml", []byte(text), func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	r := registry.New(registry.Options{Servers: []string{"s"}})
	return New(Options{
		Registry: r, Journal: &telemetry.Journal{Registry: r}, Logger: slog.New(slog.DiscardHandler), Visibility: view.New(r, nil, cfg),
	})
}

const profiles = `
servers: {s: {command: c}}
profiles: {some: {resources: {deny: ["*secret*"]}}}
`

// A watched resource may contain resources that the profile hides.
func TestUpdatesOfWhatAProfileHidesAreNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := reporter(t, profiles)
		all, some := connect(t, ""), connect(t, "some")
		for _, c := range []*client{all, some} {
			require.NoError(t, n.subscriptions.subscribeOne(subscriber{session: c.Session}, "file:///dir", "mcp://s/file:///dir"))
		}
		for _, uri := range []string{"file:///dir/secret", "file:///dir/public"} {
			n.notifySubscribers(subscriptionKey{server: "s", uri: "file:///dir"}, uri, rawjson.Object("uri", uri), make(map[subscriber]bool))
		}
		require.Equal(t, []string{"mcp://s/file:///dir/secret", "mcp://s/file:///dir/public"}, all.updates())
		require.Equal(t, []string{"mcp://s/file:///dir/public"}, some.updates())
	})
}

// A server may report any number of changed URIs below a watched one.
func TestAClientThatDoesNotReadIsToldOfWhatItWatchesOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := reporter(t, profiles)
		c := connect(t, "")
		require.NoError(t, n.subscriptions.subscribeOne(subscriber{session: c.Session}, "file:///dir", "mcp://s/file:///dir"))
		tell := func(uri, more string) {
			params := rawjson.SetMember(rawjson.Object("uri", uri), "more", rawjson.Quote(more))
			n.notifySubscribers(subscriptionKey{server: "s", uri: "file:///dir"}, uri, params, make(map[subscriber]bool))
			synctest.Wait()
		}
		tell("file:///dir/a", strings.Repeat("x", maxUpdates*3/4))
		tell("file:///dir/b", strings.Repeat("x", maxUpdates/2))
		require.Greater(t, c.UnsentBytes(), int64(maxUpdates))
		unsent := c.UnsentBytes()
		for i := range 100 {
			tell(fmt.Sprint("file:///dir/", i), strings.Repeat("x", 1<<10))
		}
		require.Less(t, c.UnsentBytes(), unsent+200)
		require.Equal(t, []string{"mcp://s/file:///dir/a", "mcp://s/file:///dir/b", "mcp://s/file:///dir"}, c.updates())
		tell("file:///dir/c", "")
		require.Equal(t, []string{"mcp://s/file:///dir/c"}, c.updates(), "it reads again")
	})
}

// The notice is a log line of level warning. Clients receive none before they are
// initialized.
func TestNoticesThatWereLeftOutAreToldByLevel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := reporter(t, profiles)
		c := connect(t, "")
		n.NotifyMissed(c.Session, "s", 3)
		require.Empty(t, c.heard(), "not initialized")
		c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		require.Len(t, c.heard(), 1)
		for _, level := range []downstream.Level{downstream.LevelUnset, downstream.LevelWarning - 1, downstream.LevelWarning} {
			c.SetLevel(level)
			n.NotifyMissed(c.Session, "s", 3)
			require.Equal(t, []string{`{"jsonrpc":"2.0","method":"notifications/message","params":` +
				`{"level":"warning","logger":"goblin","data":"3 notifications of server s were dropped because the client reads too slowly"}}`}, c.heard())
		}
		c.SetLevel(downstream.LevelWarning + 1)
		n.NotifyMissed(c.Session, "s", 3)
		require.Empty(t, c.heard(), "only errors are subscribed")
	})
}

// Stateless clients over HTTP share a session and do not know each other.
func TestAStatelessClientLeavesRoomForTheSubscriptionsOfOthers(t *testing.T) {
	t.Parallel()
	h := handler{make(chan *downstream.Session, 1)}
	e := downstream.NewHTTP(downstream.HTTPOptions{Options: downstream.Options{Handler: h}})
	t.Cleanup(e.Close)
	req := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	for name, value := range map[string]string{
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "m", "Content-Type": "application/json", "Accept": "application/json",
	} {
		req.Header.Set(name, value)
	}
	req.Host = "localhost"
	rec := httptest.NewRecorder()
	e.Handler().ServeHTTP(rec, req)
	require.Equal(t, 200, rec.Code, rec.Body)
	s := <-h.session
	require.True(t, s.Stateless())

	var all subscriptionTable
	all.init()
	one, other := subscriber{s, &listen{}}, subscriber{s, &listen{}}
	long, err := strings.Repeat("x", 60<<10), error(nil)
	for i := 0; err == nil; i++ {
		err = all.subscribeOne(one, fmt.Sprint(i, long), long)
	}
	require.ErrorIs(t, err, errTooLarge)
	require.NoError(t, all.subscribeOne(other, long, long))
}
