//go:build e2e

package limits

import (
	"fmt"
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

// The maximum number of log lines that a server or client may cause, at once and per
// second.
const (
	logBurst = 100
	logRate  = 10
)

var leftOut = regexp.MustCompile(`msg="log lines dropped: too many at once" more=(\d+) (server|session)=(\S+)`)

// logged reads a log. It returns the number of lines with a text, and how many more a
// party had.
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
	const n = 1_000
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
	type row struct {
		name, level, text, party string
		do                       func(b *e2e.Backend, c *e2e.Client)
	}
	for _, row := range e2e.Variants(1,
		row{"updates without a URI", "info", "resource update without a valid URI", "loud", notices("notifications/resources/updated", e2e.Obj{})},
		row{"notifications of no known cause", "debug", "unknown cause", "loud", notices("notifications/vendor", e2e.Obj{})},
		row{"completions of no session", "debug", "elicitation has no open session", "loud", notices("notifications/elicitation/complete", e2e.Obj{"elicitationId": "x"})},
		row{"reads that fail", "info", "resource read failed", "loud", requests(n, "resources/read", e2e.Obj{"uri": "mcp://loud/x:fails"})},
		row{"long reasons", "info", "resource read failed", "loud", requests(n/5, "resources/read", e2e.Obj{"uri": "mcp://loud/x:long"})},
		row{"questions of no call", "info", "elicitation cancelled", "loud", func(b *e2e.Backend, _ *e2e.Client) {
			b.Do(e2e.Do("requests", e2e.Obj{"actions": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Obj{"message": "?"}}))}))
			for range n / 50 {
				b.Do(e2e.Do("write", e2e.Obj{"n": 50, "text": `{"jsonrpc":"2.0","id":"again","method":"elicitation/create","params":{"message":"?"}}`}))
			}
		}},
		row{"messages that are none", "debug", "malformed message", "session", func(_ *e2e.Backend, c *e2e.Client) {
			for i := range n {
				c.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":7}`, 1_000_000+i))
			}
			c.Ok("ping", nil)
		}},
		row{"notifications of a client", "debug", "notification ignored", "session", func(_ *e2e.Backend, c *e2e.Client) {
			for range n {
				c.Notify("notifications/vendor", e2e.Obj{"x": 1})
			}
			c.Ok("ping", nil)
		}},
	) {
		t.Run(row.name, func(t *testing.T) {
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
				c = w.BridgeToRunning() // over stdio a client chooses its name
			}
			c.WaitListed("tools", "loud_t", true)
			began := time.Now()
			row.do(loud, c)
			loud.Do(e2e.Do("request", e2e.Obj{"method": "ping"})) // which is answered after all earlier messages
			lines := 0
			e2e.Eventually(t, "the lines within the limit", func() bool {
				lines, _ = logged(t, path, row.text, row.party)
				return lines >= logBurst/2 // other lines about it count, too
			})
			require.LessOrEqual(t, lines, logBurst+logRate*int(1+time.Since(began).Seconds()))
			// Other servers are logged as usual.
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
			require.Contains(t, string(text), `msg="daemon stopped"`)
		})
	}
}
