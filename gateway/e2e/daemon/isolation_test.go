//go:build e2e

package daemon

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// A server with state in each of its processes: with isolation: session each session has
// its own process.

// stateful adds that server.
func stateful(w *e2e.World) *e2e.Backend {
	w.T.Helper()
	return w.Backend("own", e2e.CountingServer(), e2e.Obj{"isolation": "session"})
}

// ended waits until one process of the server exits and checks the others.
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
			w.AllowDaemon = true
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
			unit.gone(c1) // the catalog used its lists
			ended(b, pid1)
			require.Equal(t, pid3, c3.CountsTo(2, 4))
			require.Equal(t, []string{"own_count"}, c3.Names("tools"))
			c4 := unit.connect(w)
			pid4 := c4.CountsTo(1, 1)
			require.NotContains(t, []int{pid1, pid2, pid3}, pid4, "no client inherits a state")
		})
	}
}

func TestCrashOfOneUnitsProcessIsItsOwn(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := stateful(w)
	c1, c2, c3 := w.Join(), w.Join(), w.Join()
	all := []*e2e.Client{c1, c2, c3}
	pids := map[*e2e.Client]int{}
	for _, c := range all {
		pids[c] = c.CountsTo(1, 1)
		c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("own", "x:1")})
		c.Settle()
	}
	for _, victim := range []*e2e.Client{c2, c1} { // c1 uses the catalog's connection
		starts := b.Starts()
		require.NoError(t, e2e.Kill(pids[victim]))
		b.WaitStarts(starts + 1)
		b.WaitReceived("resources/subscribe", starts+1) // three at first, and one more after each crash
		e2e.Eventually(t, "the server of the client whose process crashed", func() bool {
			return victim.Works(e2e.Obj{"name": "own_count"})
		})
		old := pids[victim]
		var n int
		pids[victim], n = victim.Counts()
		require.NotEqual(t, old, pids[victim])
		require.Equal(t, 2, n, "a new state")
		victim.WaitUpdates(1) // one may have been missed meanwhile
		victim.Forget()
	}
	require.Equal(t, pids[c3], c3.CountsTo(2, 2), "its process is unchanged")

	// Updates reach only the session of the process that sends them, also after a crash.
	for _, p := range b.Live() {
		b.DoAt(p, e2e.Do("notify", e2e.Obj{"method": "notifications/resources/updated", "params": e2e.Obj{"uri": "x:1"}}))
	}
	for _, c := range all {
		require.Len(t, c.WaitUpdates(1), 1)
		c.Ok("ping", nil)
		require.Len(t, c.Updates(), 1)
	}
	require.Equal(t, []string{"own_count"}, c1.Names("tools"))
}

func TestRestartIsOfAllUnits(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := stateful(w)
	c1, c2 := w.Join(), w.Join()
	pid1, pid2 := c1.CountsTo(1, 2), c2.CountsTo(1, 2)
	w.Succeeds("restart", "own")
	ended(b, pid1)
	ended(b, pid2)
	for _, c := range []*e2e.Client{c1, c2} {
		e2e.Eventually(t, "its new process", func() bool {
			return c.Works(e2e.Obj{"name": "own_count"})
		})
		pid, n := c.Counts()
		require.NotContains(t, []int{pid1, pid2}, pid)
		require.Equal(t, 2, n)
	}
	b.WaitLive(2)
	require.Equal(t, 2, strings.Count(strings.Join(w.Processes("b0.json"), "\n"), "b0.json"))
}

func TestAbandonedHTTPSessionLeavesItsProcessToOthers(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["limits"] = e2e.Obj{"sessions": 2}
	b := stateful(w)
	s := w.Serve()
	c1 := s.Client(true)
	pid1 := c1.CountsTo(1, 2)
	c1.Close() // its connections close; the session exists until its slot is needed
	c2 := s.Client(true)
	pid2 := c2.CountsTo(1, 2)
	c3 := s.Client(true)
	ended(b, pid1)
	pid3 := c3.CountsTo(1, 1)
	require.Len(t, map[int]bool{pid1: true, pid2: true, pid3: true}, 3)
	require.Equal(t, pid2, c2.CountsTo(3, 3))
}

func TestAnEditThatIsolatesSessionsEndsWhatRequestsWithoutOneWatched(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("own", e2e.CountingServer())
	s := w.Serve()
	c, session := s.RawClient().Stateless(), s.Client(true)
	c.Web.Stateless = true
	uri := e2e.In("own", "x:1")
	c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{uri}})
	session.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	w.Edit(func() { b.Conf["isolation"] = "session" })
	session.WaitUpdates(1) // it may have been missed meanwhile
	b.WaitLive(1)
	session.Counts()
	require.Equal(t, "SESSION_REQUIRED", c.Fault("tools/call", e2e.Obj{"name": "own_count"}).Kind())
	c.Forget()
	b.Updated("x:1")
	session.WaitUpdates(2)
	require.Empty(t, c.Updates())
	require.Equal(t, 2, b.Starts(), "none was started for it")
}

func TestCallsOfOneClientLeavePlacesToOthers(t *testing.T) {
	for _, front := range []string{"socket", "http", "stateless"} {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["limits"] = e2e.Obj{"in_flight": 40}
			b := w.Backend("b", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("slow"), e2e.Tool("quick")}, "on": e2e.Obj{
				"tools/call slow": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"})),
			}})
			connect := func(string) *e2e.Client { return w.Join() }
			switch front {
			case "http":
				connect = func(string) *e2e.Client { return w.Served().Client(false) }
			case "stateless":
				connect = w.Served().Named
			}
			busy, other := connect("busy"), connect("other")
			var ids []string
			for range 100 {
				ids = append(ids, busy.Begin("tools/call", e2e.Obj{"name": "b_slow"}))
			}
			b.WaitEvents("wait", "go", 30)
			for range 20 { // it would have to wait for the other's timeout
				require.Equal(t, "b:quick:{}", other.CallText("b_quick", e2e.Obj{}))
			}
			require.Equal(t, 30, b.Count("tools/call")-20, "the slots of the busy client")
			b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
			for _, id := range ids {
				require.Nil(t, busy.End(id).Error)
			}
		})
	}
}

// Stateless requests over HTTP identify no client. A proxy may share a connection,
// address and name, and there is only one token.
func TestServersThatIsolateSessionsAreRefusedToHTTPRequestsWithoutOne(t *testing.T) {
	t.Parallel()
	for n, script := range []e2e.Obj{{}, {"era": "dual"}, {"era": "modern"}} {
		t.Run(fmt.Sprint(script["era"]), func(t *testing.T) {
			t.Parallel()
			w := e2e.WithMeta(t)
			if n == 1 {
				w.Gateway["auth_token"] = "t0ken-of-the-test"
			}
			b := w.Backend("own", e2e.Merge(e2e.CountingServer(), []e2e.Obj{script}), e2e.Obj{"isolation": "session", "open_resources": true, "era": "both"})
			shared := w.Backend("shared", e2e.CountingServer())
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
				require.Contains(t, c.Names("tools"), "own_count", "lists are shared")
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
				id, honoured := c.ListenTo(e2e.Obj{"resourceSubscriptions": []string{e2e.In("own", "x:1"), e2e.In("shared", "x:1")}})
				require.JSONEq(t, string(e2e.Marshal([]string{e2e.In("shared", "x:1")})), string(e2e.At(honoured, "resourceSubscriptions")))
				c.StopListening(id)
				require.Nil(t, c.Request("tools/call", e2e.Obj{"name": "shared_count"}).Error)
			}
			again, n := session.Counts()
			require.Equal(t, pid, again)
			require.Equal(t, 2, n, "no other client called")
			other := s.Client(false)
			elsewhere, n := other.Counts()
			require.NotEqual(t, pid, elsewhere, "a session has its own process")
			require.Equal(t, 1, n)
			require.Empty(t, append(b.Received("resources/read"), b.Received("prompts/get")...))
			require.Len(t, b.Live(), 2)
			require.Len(t, shared.Live(), 1)
		})
	}
}
