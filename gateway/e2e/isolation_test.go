package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server with a state in each of its processes: with isolation: session every
// unit meets its own.

func counting() obj {
	return obj{
		"tools": []obj{tool("count")}, "prompts": []obj{prompt("p")}, "resources": []obj{resource("x:1")}, "templates": []obj{template("x:///{a}")},
		"on": obj{"tools/call count": actions(do("count"))},
	}
}

// stateful adds that server.
func (w *world) stateful() *backend {
	w.t.Helper()
	return w.backend("own", counting(), obj{"isolation": "session"})
}

// counts calls the tool and gives the process that answered and its count.
func (c *client) counts() (pid, n int) {
	c.t.Helper()
	_, err := fmt.Sscan(c.callText("own_count", obj{}), &pid, &n)
	require.NoError(c.t, err)
	return pid, n
}

// countsTo calls until the count, which starts at from, is n: all in one process.
func (c *client) countsTo(from, n int) (pid int) {
	c.t.Helper()
	for want := from; want <= n; want++ {
		p, got := c.counts()
		require.Equal(c.t, want, got)
		require.True(c.t, pid == 0 || p == pid, "one process")
		pid = p
	}
	return pid
}

// ended waits for the end of one process of the server and looks at the others.
func (b *backend) ended(pid int) {
	b.t.Helper()
	b.wait(fmt.Sprintf("the end of process %d", pid), func() bool {
		for _, p := range b.procs {
			if p.pid == pid {
				return p.gone
			}
		}
		return false
	})
}

func TestEveryUnitHasItsOwnState(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]struct {
		connect func(w *world) func() *client
		gone    func(c *client)
	}{
		"bridges that close": {
			func(w *world) func() *client { return w.bridged },
			func(c *client) { c.close() },
		},
		"bridges that are killed": {
			func(w *world) func() *client { return w.bridged },
			func(c *client) { c.prog.signal(syscall.SIGKILL) },
		},
		"stateless bridges that are killed": {
			func(w *world) func() *client {
				w.hosted = true
				return func() *client { return w.pipe("stdio").stateless() }
			},
			func(c *client) { c.prog.signal(syscall.SIGKILL) },
		},
		"HTTP sessions": {
			func(w *world) func() *client {
				s := w.serve()
				return func() *client { return s.client(true) }
			},
			func(c *client) {
				got := c.web.s.do("DELETE", "/mcp", map[string]string{"Mcp-Session-Id": c.web.id}, "")
				require.Less(c.t, got.status, http.StatusMultipleChoices)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			b := w.stateful()
			connect := leave.connect(w)
			c1, c2, c3 := connect(), connect(), connect()
			pid1, pid2 := c1.countsTo(1, 3), c2.countsTo(1, 2)
			pid3 := c3.countsTo(1, 1)
			require.Len(t, map[int]bool{pid1: true, pid2: true, pid3: true}, 3)
			for _, c := range []*client{c1, c2, c3} {
				require.Equal(t, []string{"own_count"}, c.names("tools"))
				require.Equal(t, []string{"own/p"}, c.names("prompts"))
				require.Equal(t, []string{in("own", "x:1")}, c.names("resources"))
				require.Equal(t, []string{in("own", "x:///{a}")}, c.names("templates"))
			}
			leave.gone(c2)
			b.ended(pid2)
			leave.gone(c1) // its lists were the catalog
			b.ended(pid1)
			require.Equal(t, pid3, c3.countsTo(2, 4))
			require.Equal(t, []string{"own_count"}, c3.names("tools"))
			c4 := connect()
			pid4 := c4.countsTo(1, 1)
			require.NotContains(t, []int{pid1, pid2, pid3}, pid4, "nobody inherits a state")
		})
	}
}

// Stateless requests over HTTP tell nothing by which one client could be known
// from another: neither a connection, which a proxy shares out, nor an address,
// nor the token, of which there is one.
func TestServersThatIsolateSessionsAreRefusedToHTTPRequestsWithoutOne(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{"with a token": "t0ken-of-the-test", "without a token": ""} {
		for era, script := range map[string]obj{"": {}, "dual": {"era": "dual"}, "modern": {"era": "modern"}} {
			t.Run(name+" "+era, func(t *testing.T) {
				t.Parallel()
				w := withMeta(t)
				if token != "" {
					w.gateway["auth_token"] = token
				}
				b := w.backend("own", merge(counting(), []obj{script}), obj{"isolation": "session", "open_resources": true})
				shared := w.backend("shared", counting())
				s := w.serve()
				connect := func(own bool) *client {
					c := s.rawClient().stateless()
					c.web.stateless = true
					if own { // a connection of its own
						other := *s
						other.http = newHTTP(t)
						c.web.s = &other
					}
					return c
				}
				session := s.client(true)
				pid, _ := session.counts()
				for _, c := range []*client{connect(false), connect(false), connect(true), connect(true)} {
					require.Contains(t, c.names("tools"), "own_count", "lists are everybody's")
					for method, params := range map[string]obj{
						"tools/call": {"name": "own_count"}, "prompts/get": {"name": "own/p"}, "resources/read": {"uri": in("own", "x:1")},
						"completion/complete": {"ref": obj{"type": "ref/prompt", "name": "own/p"}, "argument": obj{"name": "a", "value": ""}},
					} {
						e := c.fault(method, params)
						require.Equal(t, -32603, e.Code, method)
						require.Equal(t, "SESSION_REQUIRED", e.kind(), method)
						require.Equal(t, "own", str(e.Data, "server"), method)
						require.Contains(t, e.Message, "isolation: shared", method)
						require.Contains(t, e.Message, "stdio", method)
					}
					require.Equal(t, "SESSION_REQUIRED", c.fault("resources/read", obj{"uri": in("own", "x:never-listed")}).kind())
					require.Contains(t, string(c.lua(`return own.count{}`)), "isolation: session")
					id, honoured := c.hears(obj{"resourceSubscriptions": []string{in("own", "x:1"), in("shared", "x:1")}})
					require.JSONEq(t, string(marshal([]string{in("shared", "x:1")})), string(at(honoured, "resourceSubscriptions")))
					c.stops(id)
					require.Nil(t, c.request("tools/call", obj{"name": "shared_count"}).Error)
				}
				again, n := session.counts()
				require.Equal(t, pid, again)
				require.Equal(t, 2, n, "nobody else called")
				other := s.client(false)
				elsewhere, n := other.counts()
				require.NotEqual(t, pid, elsewhere, "a session is a unit of its own")
				require.Equal(t, 1, n)
				require.Empty(t, append(b.received("resources/read"), b.received("prompts/get")...))
				require.Len(t, b.live(), 2)
				require.Len(t, shared.live(), 1)
			})
		}
	}
}

func TestAnEditThatIsolatesSessionsEndsWhatRequestsWithoutOneWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("own", counting())
	s := w.serve()
	c, session := s.rawClient().stateless(), s.client(true)
	c.web.stateless = true
	uri := in("own", "x:1")
	c.hears(obj{"resourceSubscriptions": []string{uri}})
	session.ok("resources/subscribe", obj{"uri": uri})
	w.edit(func() { b.conf["isolation"] = "session" })
	session.waitUpdates(1) // it may have been missed meanwhile
	b.waitLive(1)
	session.counts()
	require.Equal(t, "SESSION_REQUIRED", c.fault("tools/call", obj{"name": "own_count"}).kind())
	c.forget()
	b.updated("x:1")
	session.waitUpdates(2)
	require.Empty(t, c.updates())
	require.Equal(t, 2, b.starts(), "none was started for it")
}

func TestCrashOfOneUnitsProcessIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.stateful()
	c1, c2, c3 := w.bridged(), w.bridged(), w.bridged()
	all := []*client{c1, c2, c3}
	pids := map[*client]int{}
	for _, c := range all {
		pids[c] = c.countsTo(1, 1)
		c.ok("resources/subscribe", obj{"uri": in("own", "x:1")})
		c.settle()
	}
	for _, victim := range []*client{c2, c1} { // c1 has the connection of the catalog
		starts := b.starts()
		require.NoError(t, kill(pids[victim]))
		b.waitStarts(starts + 1)
		b.waitReceived("resources/subscribe", starts+1) // three at first, and one more after each crash
		eventually(t, "the server of the client whose process crashed", func() bool {
			return victim.request("tools/call", obj{"name": "own_count"}).Error == nil
		})
		old := pids[victim]
		var n int
		pids[victim], n = victim.counts()
		require.NotEqual(t, old, pids[victim])
		require.Equal(t, 2, n, "a new state")
		victim.waitUpdates(1) // one may have been missed meanwhile
		victim.forget()
	}
	require.Equal(t, pids[c3], c3.countsTo(2, 2), "it was not disturbed")

	// Updates go to the unit of the process that sends them, after a crash too.
	for _, p := range b.live() {
		b.doAt(p, do("notify", obj{"method": "notifications/resources/updated", "params": obj{"uri": "x:1"}}))
	}
	for _, c := range all {
		require.Len(t, c.waitUpdates(1), 1)
		c.ok("ping", nil)
		require.Len(t, c.updates(), 1)
	}
	require.Equal(t, []string{"own_count"}, c1.names("tools"))
}

func TestRestartIsOfAllUnits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.stateful()
	c1, c2 := w.bridged(), w.bridged()
	pid1, pid2 := c1.countsTo(1, 2), c2.countsTo(1, 2)
	w.succeeds("restart", "own")
	b.ended(pid1)
	b.ended(pid2)
	for _, c := range []*client{c1, c2} {
		eventually(t, "its new process", func() bool {
			return c.request("tools/call", obj{"name": "own_count"}).Error == nil
		})
		pid, n := c.counts()
		require.NotContains(t, []int{pid1, pid2}, pid)
		require.Equal(t, 2, n)
	}
	b.waitLive(2)
	require.Equal(t, 2, strings.Count(strings.Join(w.processes("b0.json"), "\n"), "b0.json"))
}

func TestAbandonedHTTPSessionLeavesItsProcessToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.gateway["limits"] = obj{"sessions": 2}
	b := w.stateful()
	s := w.serve()
	c1 := s.client(true)
	pid1 := c1.countsTo(1, 2)
	c1.close() // its connections end; the session is there until its place is needed
	c2 := s.client(true)
	pid2 := c2.countsTo(1, 2)
	c3 := s.client(true)
	b.ended(pid1)
	pid3 := c3.countsTo(1, 1)
	require.Len(t, map[int]bool{pid1: true, pid2: true, pid3: true}, 3)
	require.Equal(t, pid2, c2.countsTo(3, 3))
}

func TestCallsOfOneClientLeavePlacesToOthers(t *testing.T) {
	for _, front := range []string{"stdio", "http"} {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.gateway["limits"] = obj{"in_flight": 40}
			b := w.backend("b", obj{"tools": []obj{tool("slow"), tool("quick")}, "on": obj{
				"tools/call slow": actions(do("wait", obj{"name": "go"})),
			}})
			connect := w.bridged
			if front == "http" {
				s := w.serve()
				connect = func() *client { return s.client(false) }
			}
			busy, other := connect(), connect()
			var ids []string
			for range 100 {
				ids = append(ids, busy.begin("tools/call", obj{"name": "b_slow"}))
			}
			b.waitEvents("wait", "go", 30)
			for range 20 { // it would have to wait for the other's timeout
				require.Equal(t, "b:quick:{}", other.callText("b_quick", obj{}))
			}
			require.Equal(t, 30, b.count("tools/call")-20, "the places of the busy one")
			b.do(do("release", obj{"name": "go"}))
			for _, id := range ids {
				require.Nil(t, busy.end(id).Error)
			}
		})
	}
}
