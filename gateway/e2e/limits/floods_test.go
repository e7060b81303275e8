package limits

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
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
	notices := func(method string, params e2e.Obj) func(b *e2e.Backend, c *e2e.Client) {
		return func(b *e2e.Backend, _ *e2e.Client) {
			b.Do(e2e.Do("notify", e2e.Obj{"n": n, "method": method, "params": params}))
		}
	}
	requests := func(n int, method string, params e2e.Obj) func(b *e2e.Backend, c *e2e.Client) {
		return func(_ *e2e.Backend, c *e2e.Client) {
			id := ""
			for range n {
				id = c.Begin(method, params)
			}
			c.End(id)
		}
	}
	for name, row := range map[string]struct {
		level, text, party string
		do                 func(b *e2e.Backend, c *e2e.Client)
	}{
		"updates without a URI":           {"info", "Update without a URI", "loud", notices("notifications/resources/updated", e2e.Obj{})},
		"notifications of no known cause": {"debug", "unknown cause", "loud", notices("notifications/vendor", e2e.Obj{})},
		"completions of nobody's":         {"debug", "elicitation of nobody", "loud", notices("notifications/elicitation/complete", e2e.Obj{"elicitationId": "x"})},
		"reads that fail":                 {"info", "Resource read failed", "loud", requests(n, "resources/read", e2e.Obj{"uri": "mcp://loud/x:fails"})},
		"long reasons":                    {"info", "Resource read failed", "loud", requests(n/10, "resources/read", e2e.Obj{"uri": "mcp://loud/x:long"})},
		"questions of no call": {"info", "Elicitation cancelled", "loud", func(b *e2e.Backend, _ *e2e.Client) {
			b.Do(e2e.Do("requests", e2e.Obj{"actions": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "?"}}))}))
			for range n / 50 {
				b.Do(e2e.Do("write", e2e.Obj{"n": 50, "text": `{"jsonrpc":"2.0","id":"again","method":"elicitation/create","params":{"message":"?"}}`}))
			}
		}},
		"messages that are none": {"debug", "malformed message", "session", func(_ *e2e.Backend, c *e2e.Client) {
			for i := range n {
				c.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":7}`, 1_000_000+i))
			}
			c.Ok("ping", nil)
		}},
		"notifications of a client": {"debug", "Notification ignored", "session", func(_ *e2e.Backend, c *e2e.Client) {
			for range n {
				c.Notify("notifications/vendor", e2e.Obj{"x": 1})
			}
			c.Ok("ping", nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			path := filepath.Join(w.Dir, "log")
			w.Log = e2e.Obj{"level": row.level, "file": path}
			fails := e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32000, "message": "no"}}))
			loud := w.Backend("loud", e2e.Obj{
				"resources": []e2e.Obj{e2e.Resource("x:fails"), e2e.Resource("x:long")}, "tools": []e2e.Obj{e2e.Tool("t")},
				"on": e2e.Obj{"resources/read x:fails": fails, "resources/read x:long": e2e.Actions(e2e.Do("error", e2e.Obj{"error": e2e.Obj{"code": -32000, "message": long}}))},
			})
			calm := w.Backend("calm", e2e.Obj{"resources": []e2e.Obj{e2e.Resource("x:1")}, "on": e2e.Obj{"resources/read x:1": fails}})
			s := w.Serve()
			c := s.Client(true)
			if row.party == "session" {
				c = w.BridgeTo() // over stdio a client says what it likes
			}
			c.WaitListed("tools", "loud_t", true)
			began := time.Now()
			row.do(loud, c)
			lines := 0
			e2e.Eventually(t, "the lines that may be logged", func() bool {
				lines, _ = logged(t, path, row.text, row.party)
				return lines >= logBurst/2 // other lines about it count, too
			})
			require.LessOrEqual(t, lines, logBurst+logRate*int(1+time.Since(began).Seconds()))
			// Others are logged as ever.
			calm.Do(e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{}}))
			c.Fault("resources/read", e2e.Obj{"uri": "mcp://calm/x:1"})
			for _, text := range []string{`ignored" server=calm`, `failed" server=calm`} {
				e2e.Eventually(t, text, func() bool { n, _ := logged(t, path, text, ""); return n == 1 })
			}
			s.Signal(syscall.SIGTERM)
			require.Zero(t, s.Ends(e2e.Patience))
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

func TestTheLogFileIsRotated(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	path := filepath.Join(w.Dir, "log")
	w.Log = e2e.Obj{"file": path}
	old := strings.Repeat(strings.Repeat("o", 99)+"\n", 40<<20/100) + "the last line\n"
	require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
	w.Backend("b", e2e.Obj{})
	s := w.Serve()
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Ends(e2e.Patience))
	fi, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, fi.Size(), int64(64<<10))
	before, err := os.ReadFile(path + ".1")
	require.NoError(t, err)
	require.Len(t, before, 32<<20)
	require.True(t, strings.HasSuffix(string(before), "the last line\n"))
}

// A client that does not read what servers say unasked finds its answers before it.
func TestAnswersOvertakeLogLines(t *testing.T) {
	t.Parallel()
	for mode, args := range map[string][]string{"standalone": {"stdio", "--standalone"}, "bridge": {"stdio"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Hosted = mode == "bridge"
			const lines, size = 16_000, 100
			w.Gateway["limits"] = e2e.Obj{"unsent": "64MiB"} // all of it waits
			text := strings.Repeat("x", size)
			loud := w.Backend("loud", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
			w.Backend("calm", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t"), e2e.Tool("says")}, "on": e2e.Obj{"tools/call says": e2e.Actions(
				e2e.Do("notify", e2e.Obj{"n": 3, "method": "notifications/message", "params": e2e.Obj{"level": "error", "data": "calm $n"}}),
				e2e.Do("text", e2e.Obj{"text": "said"}))}})
			m := w.Mute(args...)
			m.Call(2, "loud_t")
			m.Call(3, "calm_t")
			m.Take(3) // with the answer to initialize
			loud.Do(e2e.Do("notify", e2e.Obj{"n": lines, "method": "notifications/message", "params": e2e.Obj{"level": "error", "data": "loud $n " + text}}))
			loud.Received("") // all of it has been sent
			m.Call(4, "loud_t")
			m.Call(5, "calm_t")
			m.Call(6, "calm_says")
			_, err := io.WriteString(m.In, `{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n")
			require.NoError(t, err)
			loud.WaitReceived("tools/call", 2)
			e2e.Eventually(t, "all calls to be answered", func() bool { return asked(w, "calm", 3) })

			require.NoError(t, m.Out.SetReadDeadline(time.Now().Add(e2e.Patience)))
			r := bufio.NewReader(m.Out)
			before, said, seen := map[string]int{}, 0, 0
			for len(before) < 4 {
				line, err := r.ReadString('\n')
				require.NoError(t, err, "%v", before)
				var got e2e.Message
				require.NoError(t, json.Unmarshal([]byte(line), &got))
				switch {
				case got.ID != nil:
					before[string(got.ID)] = seen
					if string(got.ID) == "6" {
						require.Equal(t, 3, said, "its own lines go before an answer")
					}
				case strings.HasPrefix(e2e.Str(got.Params, "data"), "calm"):
					require.Equal(t, fmt.Sprint("calm ", said), e2e.Str(got.Params, "data"))
					said++
				case strings.HasPrefix(e2e.Str(got.Params, "data"), "loud"):
					require.Equal(t, fmt.Sprint("loud ", seen, " ", text), e2e.Str(got.Params, "data"), "in their order")
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
func asked(w *e2e.World, name string, n int) bool {
	for _, b := range w.Backends {
		if b.Name == name {
			return b.Count("tools/call") >= n
		}
	}
	return false
}
