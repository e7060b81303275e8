package hosts

import (
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server with a state in each of its processes: with isolation: session every
// unit meets its own.

// stateful adds that server.
func stateful(w *e2e.World) *e2e.Backend {
	w.T.Helper()
	return w.Backend("own", e2e.Counting(), e2e.Obj{"isolation": "session"})
}

// ended waits for the end of one process of the server and looks at the others.
func ended(b *e2e.Backend, pid int) {
	b.T.Helper()
	b.Wait(fmt.Sprintf("the end of process %d", pid), func() bool {
		for _, p := range b.Procs {
			if p.Pid == pid {
				return p.Gone
			}
		}
		return false
	})
}

func TestEveryUnitHasItsOwnState(t *testing.T) {
	t.Parallel()
	type unit struct {
		name    string
		connect func(w *e2e.World) *e2e.Client
		gone    func(c *e2e.Client)
	}
	killed := func(c *e2e.Client) { c.Prog.Signal(syscall.SIGKILL) }
	for _, unit := range e2e.Variants(1,
		unit{"HTTP sessions", func(w *e2e.World) *e2e.Client { return w.Served().Client(true) }, func(c *e2e.Client) {
			got := c.Web.S.Do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c.Web.Id}, "")
			require.Less(c.T, got.Status, http.StatusMultipleChoices)
		}},
		unit{"bridges that close", (*e2e.World).Bridged, func(c *e2e.Client) { c.Close() }},
		unit{"bridges that are killed", (*e2e.World).Bridged, killed},
		unit{"stateless bridges that are killed", func(w *e2e.World) *e2e.Client {
			w.Hosted = true
			return w.Pipe("stdio").Stateless()
		}, killed},
	) {
		t.Run(unit.name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := stateful(w)
			c1, c2, c3 := unit.connect(w), unit.connect(w), unit.connect(w)
			pid1, pid2 := c1.CountsTo(1, 3), c2.CountsTo(1, 2)
			pid3 := c3.CountsTo(1, 1)
			require.Len(t, map[int]bool{pid1: true, pid2: true, pid3: true}, 3)
			for _, c := range []*e2e.Client{c1, c2, c3} {
				require.Equal(t, []string{"own_count"}, c.Names("tools"))
				require.Equal(t, []string{"own/p"}, c.Names("prompts"))
				require.Equal(t, []string{e2e.In("own", "x:1")}, c.Names("resources"))
				require.Equal(t, []string{e2e.In("own", "x:///{a}")}, c.Names("templates"))
			}
			unit.gone(c2)
			ended(b, pid2)
			unit.gone(c1) // its lists were the catalog
			ended(b, pid1)
			require.Equal(t, pid3, c3.CountsTo(2, 4))
			require.Equal(t, []string{"own_count"}, c3.Names("tools"))
			c4 := unit.connect(w)
			pid4 := c4.CountsTo(1, 1)
			require.NotContains(t, []int{pid1, pid2, pid3}, pid4, "nobody inherits a state")
		})
	}
}

// Stateless requests over HTTP tell nothing by which one client could be known
// from another: neither a connection, which a proxy shares out, nor an address,
// nor the token, of which there is one.
func TestServersThatIsolateSessionsAreRefusedToHTTPRequestsWithoutOne(t *testing.T) {
	t.Parallel()
	for n, script := range e2e.Variants(1, e2e.Obj{}, e2e.Obj{"era": "dual"}, e2e.Obj{"era": "modern"}) {
		t.Run(fmt.Sprint(script["era"]), func(t *testing.T) {
			t.Parallel()
			w := e2e.WithMeta(t)
			if n == 1 {
				w.Gateway["auth_token"] = "t0ken-of-the-test"
			}
			b := w.Backend("own", e2e.Merge(e2e.Counting(), []e2e.Obj{script}), e2e.Obj{"isolation": "session", "open_resources": true})
			shared := w.Backend("shared", e2e.Counting())
			s := w.Serve()
			connect := func(own bool) *e2e.Client {
				c := s.RawClient().Stateless()
				c.Web.Stateless = true
				if own { // a connection of its own
					other := *s
					other.Http = e2e.NewHTTP(t)
					c.Web.S = &other
				}
				return c
			}
			session := s.Client(true)
			pid, _ := session.Counts()
			for _, c := range []*e2e.Client{connect(false), connect(false), connect(true), connect(true)} {
				require.Contains(t, c.Names("tools"), "own_count", "lists are everybody's")
				for method, params := range map[string]e2e.Obj{
					"tools/call": {"name": "own_count"}, "prompts/get": {"name": "own/p"}, "resources/read": {"uri": e2e.In("own", "x:1")},
					"completion/complete": {"ref": e2e.Obj{"type": "ref/prompt", "name": "own/p"}, "argument": e2e.Obj{"name": "a", "value": ""}},
				} {
					e := c.Fault(method, params)
					require.Equal(t, -32603, e.Code, method)
					require.Equal(t, "SESSION_REQUIRED", e.Kind(), method)
					require.Equal(t, "own", e2e.Str(e.Data, "server"), method)
					require.Contains(t, e.Message, "isolation: shared", method)
					require.Contains(t, e.Message, "stdio", method)
				}
				require.Equal(t, "SESSION_REQUIRED", c.Fault("resources/read", e2e.Obj{"uri": e2e.In("own", "x:never-listed")}).Kind())
				require.Contains(t, string(c.Lua(`return own.count{}`)), "isolation: session")
				id, honoured := c.Hears(e2e.Obj{"resourceSubscriptions": []string{e2e.In("own", "x:1"), e2e.In("shared", "x:1")}})
				require.JSONEq(t, string(e2e.Marshal([]string{e2e.In("shared", "x:1")})), string(e2e.At(honoured, "resourceSubscriptions")))
				c.Stops(id)
				require.Nil(t, c.Request("tools/call", e2e.Obj{"name": "shared_count"}).Error)
			}
			again, n := session.Counts()
			require.Equal(t, pid, again)
			require.Equal(t, 2, n, "nobody else called")
			other := s.Client(false)
			elsewhere, n := other.Counts()
			require.NotEqual(t, pid, elsewhere, "a session is a unit of its own")
			require.Equal(t, 1, n)
			require.Empty(t, append(b.Received("resources/read"), b.Received("prompts/get")...))
			require.Len(t, b.Live(), 2)
			require.Len(t, shared.Live(), 1)
		})
	}
}
