package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a party may cause in the log: so many lines at once, and a second.
const (
	logBurst = 100
	logRate  = 10
)

var leftOut = regexp.MustCompile(`msg="Lines were left out: too many at a time" more=(\d+) (server|session)=(\S+)`)

// logged reads a log: the lines that hold a text, and how many more there were of
// a party.
func logged(t *testing.T, path, text, party string) (lines, more int) {
	t.Helper()
	all, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(all)) {
		require.Less(t, len(line), 16<<10)
		if m := leftOut.FindStringSubmatch(line); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil && (m[3] == party || m[2] == party) {
				more += n
			}
			continue
		}
		if strings.Contains(line, text) {
			lines++
		}
	}
	return lines, more
}

func TestWhatOthersMakeGoblinLogIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60<<10)
	const n = 5_000
	notices := func(method string, params obj) func(b *backend, c *client) {
		return func(b *backend, _ *client) { b.do(do("notify", obj{"n": n, "method": method, "params": params})) }
	}
	requests := func(n int, method string, params obj) func(b *backend, c *client) {
		return func(_ *backend, c *client) {
			id := ""
			for range n {
				id = c.begin(method, params)
			}
			c.end(id)
		}
	}
	for name, row := range map[string]struct {
		level, text, party string
		do                 func(b *backend, c *client)
	}{
		"updates without a URI":           {"info", "Update without a URI", "loud", notices("notifications/resources/updated", obj{})},
		"notifications of no known cause": {"debug", "unknown cause", "loud", notices("notifications/vendor", obj{})},
		"completions of nobody's":         {"debug", "elicitation of nobody", "loud", notices("notifications/elicitation/complete", obj{"elicitationId": "x"})},
		"reads that fail":                 {"info", "Resource read failed", "loud", requests(n, "resources/read", obj{"uri": "mcp://loud/x:fails"})},
		"long reasons":                    {"info", "Resource read failed", "loud", requests(n/10, "resources/read", obj{"uri": "mcp://loud/x:long"})},
		"questions of no call": {"info", "Elicitation cancelled", "loud", func(b *backend, _ *client) {
			b.do(do("requests", obj{"actions": actions(do("request", obj{"method": "elicitation/create", "params": obj{"message": "?"}}))}))
			for range n / 50 {
				b.do(do("write", obj{"n": 50, "text": `{"jsonrpc":"2.0","id":"again","method":"elicitation/create","params":{"message":"?"}}`}))
			}
		}},
		"messages that are none": {"debug", "malformed message", "session", func(_ *backend, c *client) {
			for i := range n {
				c.write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":7}`, 1_000_000+i))
			}
			c.ok("ping", nil)
		}},
		"notifications of a client": {"debug", "Notification ignored", "session", func(_ *backend, c *client) {
			for range n {
				c.notify("notifications/vendor", obj{"x": 1})
			}
			c.ok("ping", nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			path := filepath.Join(w.dir, "log")
			w.log = obj{"level": row.level, "file": path}
			fails := actions(do("error", obj{"error": obj{"code": -32000, "message": "no"}}))
			loud := w.backend("loud", obj{
				"resources": []obj{resource("x:fails"), resource("x:long")}, "tools": []obj{tool("t")},
				"on": obj{"resources/read x:fails": fails, "resources/read x:long": actions(do("error", obj{"error": obj{"code": -32000, "message": long}}))},
			})
			calm := w.backend("calm", obj{"resources": []obj{resource("x:1")}, "on": obj{"resources/read x:1": fails}})
			s := w.serve()
			c := s.client(true)
			if row.party == "session" {
				c = w.bridgeTo() // over stdio a client says what it likes
			}
			c.waitListed("tools", "loud_t", true)
			began := time.Now()
			row.do(loud, c)
			lines := 0
			eventually(t, "the lines that may be logged", func() bool {
				lines, _ = logged(t, path, row.text, row.party)
				return lines >= logBurst/2 // other lines about it count, too
			})
			require.LessOrEqual(t, lines, logBurst+logRate*int(1+time.Since(began).Seconds()))
			// Others are logged as ever.
			calm.do(do("notify", obj{"method": "notifications/resources/updated", "params": obj{}}))
			c.fault("resources/read", obj{"uri": "mcp://calm/x:1"})
			for _, text := range []string{`ignored" server=calm`, `failed" server=calm`} {
				eventually(t, text, func() bool { n, _ := logged(t, path, text, ""); return n == 1 })
			}
			s.signal(syscall.SIGTERM)
			require.Zero(t, s.ends(patience))
			lines, more := logged(t, path, row.text, row.party)
			require.NotZero(t, more)
			require.GreaterOrEqual(t, lines+more, n/10)
			fi, err := os.Stat(path)
			require.NoError(t, err)
			require.Less(t, fi.Size(), int64(2<<20))
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(text), `msg="Host ended"`)
		})
	}
}

// bridgeTo is an initialised client of goblin stdio at a host that runs already.
func (w *world) bridgeTo() *client {
	w.t.Helper()
	w.hosted = true // it starts another one when that ends
	c := w.pipe("stdio")
	c.init()
	return c
}

func TestTheLogFileIsRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	path := filepath.Join(w.dir, "log")
	w.log = obj{"file": path}
	old := strings.Repeat(strings.Repeat("o", 99)+"\n", 40<<20/100) + "the last line\n"
	require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
	w.backend("b", obj{})
	s := w.serve()
	s.signal(syscall.SIGTERM)
	require.Zero(t, s.ends(patience))
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, fi.Size(), int64(64<<10))
	before, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	require.Len(t, before, 32<<20)
	require.True(t, strings.HasSuffix(string(before), "the last line\n"))
}

// A long list of words that nothing else has, which changes again and again.
func TestALongListThatChangesAllTheTimeIsIndexedWithinBounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["meta_tools"] = true
	r := rand.New(rand.NewPCG(1, 2))
	const entries, changes = 6_000, 8
	list := func(name string) (tools []obj) {
		for i := range entries {
			var text strings.Builder
			for text.Len() < 4000 {
				fmt.Fprintf(&text, "w%06x ", r.Uint32()>>8)
			}
			tools = append(tools, tool(fmt.Sprintf("%s%05d", name, i), obj{"description": text.String()}))
		}
		return tools
	}
	lists := map[string][]obj{"wordy": list("wordy"), "gossip": list("gossip")}
	b := w.backend("b", obj{"tools": lists["wordy"]}, obj{"startup_timeout": "60s"})
	w.backend("small", obj{"tools": []obj{tool("invoices", obj{"description": "of suppliers"})}})
	c := w.standalone()
	find := func(words string) string {
		return string(c.ok("tools/call", obj{"name": "search_tools", "arguments": obj{"query": words}}))
	}
	// What was listed at first is found by name, however much text there is.
	for _, name := range []string{"wordy00000", "wordy03000", "wordy05999"} {
		eventually(t, name+" to be found", func() bool { return strings.Contains(find(name), "b_"+name) })
	}
	for i := range changes {
		now, before := "gossip", "wordy"
		if i%2 == 1 {
			now, before = before, now
		}
		c.forget()
		b.do(do("set", obj{"kind": "tools", "entries": lists[now]}))
		b.listChanged("tools")
		c.noted("notifications/tools/list_changed", nil)
		require.NotContains(t, find(before+"00007"), "b_"+before+"00007", "what is gone is not found")
		require.Contains(t, find("suppliers"), "small_invoices", "nor do others wait")
	}
	c.prog.bounded(500)
}

// What subscriptions may have in URIs, of one client and of all, and such a URI.
const (
	subscribed    = 8 << 20
	subscribedAll = 64 << 20
	longURI       = 60 << 10
)

func longSubscription(client, i int) string {
	return fmt.Sprintf("mcp://b/file:///%d/%d/%s", client, i, strings.Repeat("x", longURI))
}

func TestSubscriptionsToLongURIsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("b", watchable(), obj{"open_resources": true})
	s := w.serve()
	const fit = subscribed / (2 * longURI) // the client's spelling and the server's
	fill := func(c *client, n int) (held int, why rpcError) {
		for ; held <= fit; held++ {
			if m := c.request("resources/subscribe", obj{"uri": longSubscription(n, held)}); m.Error != nil {
				return held, parseError(t, m)
			}
		}
		t.Fatal("no subscription was refused")
		return held, why
	}
	c := w.bridgeTo()
	n, e := fill(c, 0)
	require.Equal(t, -32602, e.Code)
	require.Contains(t, e.Message, "8 MiB")
	require.GreaterOrEqual(t, n, fit-1)
	// What is given back makes room.
	c.ok("resources/unsubscribe", obj{"uri": longSubscription(0, 0)})
	c.ok("resources/subscribe", obj{"uri": longSubscription(0, 1000)})
	all := n
	for client := 1; !strings.Contains(e.Message, "64 MiB"); client++ {
		require.LessOrEqual(t, client, subscribedAll/subscribed)
		n, e = fill(w.bridgeTo(), client)
		all += n
	}
	require.GreaterOrEqual(t, all, subscribedAll/(2*longURI)-10)
	b.updated("file:///0/1/" + strings.Repeat("x", longURI))
	c.noted("notifications/resources/updated", func(p json.RawMessage) bool { return str(p, "uri") == longSubscription(0, 1) })
	s.bounded(450)
}

func TestListensToLongURIsAreBounded(t *testing.T) {
	overEveryTransport(t, func(t *testing.T, w *world, connect func() *client) {
		w.backend("b", watchable(), obj{"open_resources": true})
		c := connect()
		c.ok("tools/list", obj{})
		uris := func(n int) (all []string) {
			for i := range n {
				all = append(all, longSubscription(0, i))
			}
			return all
		}
		e := c.fault("subscriptions/listen", obj{"notifications": obj{"resourceSubscriptions": uris(subscribed/longURI + 1)}})
		require.Contains(t, e.Message, "8 MiB")
		_, honoured := c.hears(obj{"resourceSubscriptions": uris(subscribed / longURI)})
		n := len(each(honoured, "resourceSubscriptions"))
		require.LessOrEqual(t, n, subscribed/(2*longURI))
		require.GreaterOrEqual(t, n, subscribed/(2*longURI)-8, "those that fit are honoured") // eight are asked for at a time
		if c.web == nil {
			_, honoured = c.hears(obj{"resourceSubscriptions": []string{longSubscription(1, 0)}})
			require.Empty(t, each(honoured, "resourceSubscriptions"), "all listens of a client count together")
		}
	})
}

// A client that does not read what servers say unasked finds its answers before it.
func TestAnswersOvertakeLogLines(t *testing.T) {
	t.Parallel()
	for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.hosted = mode == "bridge"
			const lines, size = 16_000, 100
			w.gateway["limits"] = obj{"unsent": "64MiB"} // all of it waits
			text := strings.Repeat("x", size)
			loud := w.backend("loud", obj{"tools": []obj{tool("t")}})
			w.backend("calm", obj{"tools": []obj{tool("t"), tool("says")}, "on": obj{"tools/call says": actions(
				do("notify", obj{"n": 3, "method": "notifications/message", "params": obj{"level": "error", "data": "calm $n"}}),
				do("text", obj{"text": "said"}))}})
			m := w.mute(args...)
			m.call(2, "loud_t")
			m.call(3, "calm_t")
			m.take(3) // with the answer to initialize
			loud.do(do("notify", obj{"n": lines, "method": "notifications/message", "params": obj{"level": "error", "data": "loud $n " + text}}))
			loud.received("") // all of it has been sent
			m.call(4, "loud_t")
			m.call(5, "calm_t")
			m.call(6, "calm_says")
			_, err := io.WriteString(m.in, `{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n")
			require.NoError(t, err)
			loud.waitReceived("tools/call", 2)
			eventually(t, "all calls to be answered", func() bool { return w.asked("calm", 3) })

			require.NoError(t, m.out.SetReadDeadline(time.Now().Add(patience)))
			r := bufio.NewReader(m.out)
			before, said, seen := map[string]int{}, 0, 0
			for len(before) < 4 {
				line, err := r.ReadString('\n')
				require.NoError(t, err, "%v", before)
				var got message
				require.NoError(t, json.Unmarshal([]byte(line), &got))
				switch {
				case got.ID != nil:
					before[string(got.ID)] = seen
					if string(got.ID) == "6" {
						require.Equal(t, 3, said, "its own lines go before an answer")
					}
				case strings.HasPrefix(str(got.Params, "data"), "calm"):
					require.Equal(t, fmt.Sprint("calm ", said), str(got.Params, "data"))
					said++
				case strings.HasPrefix(str(got.Params, "data"), "loud"):
					require.Equal(t, fmt.Sprint("loud ", seen, " ", text), str(got.Params, "data"), "in their order")
					seen++
				}
			}
			for id, n := range before {
				// What pipes and sockets hold, and what was on its way into them.
				require.Less(t, n, lines/3, "before the answer to %s: %v", id, before)
			}
			for seen < lines {
				line, err := r.ReadString('\n')
				require.NoError(t, err)
				require.Contains(t, line, fmt.Sprint("loud ", seen, " "), "nothing is lost")
				seen++
			}
		})
	}
}

// asked reports whether a backend has had so many calls.
func (w *world) asked(name string, n int) bool {
	for _, b := range w.backends {
		if b.name == name {
			return b.count("tools/call") >= n
		}
	}
	return false
}
