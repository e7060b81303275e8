//go:build e2e

package inputs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// ever is longer than any test waits.
const ever = "30m"

// extension is declared by the slow servers of these tests.
const extension = "example.org/thing"

// late is a server that answers initialize when the test releases it, from the process
// after the given number on.
func late(after int, more ...e2e.Obj) e2e.Obj {
	return e2e.Merge(e2e.Obj{
		"instructions": "It is late.",
		"capabilities": e2e.Obj{"tools": e2e.Obj{"listChanged": true}, "extensions": e2e.Obj{extension: e2e.Obj{"level": 3}}},
		"tools":        []e2e.Obj{e2e.Tool("tell")},
		"on":           e2e.Obj{"initialize": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go", "after": after}))},
	}, more)
}

// slowly allows a server any startup time.
var slowly = e2e.Obj{"startup_timeout": ever}

// patientWorld returns a world with unlimited waits for lists and the given wait for
// handshakes.
func patientWorld(t *testing.T, handshake string) *e2e.World {
	t.Helper()
	w := e2e.NewWorld(t)
	w.Gateway["startup_wait"], w.Gateway["handshake_wait"] = ever, handshake
	return w
}

// hello returns the params of a client's initialize.
func hello(name string) e2e.Obj {
	return e2e.Obj{"protocolVersion": e2e.Revision, "capabilities": e2e.Obj{}, "clientInfo": e2e.Obj{"name": name, "version": "1"}}
}

func release(b *e2e.Backend) { b.Do(e2e.Do("release", e2e.Obj{"name": "go"})) }

// level returns the setting of the extension in the answer to a handshake.
func level(result json.RawMessage) string {
	return string(e2e.At(result, "capabilities", "extensions", extension, "level"))
}

// fronts are the ways to Goblin by which a client does a handshake.
var fronts = map[string]func(w *e2e.World) (c *e2e.Client, method string){
	"stdio": func(w *e2e.World) (*e2e.Client, string) { return w.Pipe("stdio", "--standalone"), "initialize" },
	"bridge": func(w *e2e.World) (*e2e.Client, string) {
		w.AllowDaemon = true
		return w.Pipe("stdio"), "initialize"
	},
	"HTTP": func(w *e2e.World) (*e2e.Client, string) { return w.Served().RawClient(), "initialize" },
	"stateless stdio": func(w *e2e.World) (*e2e.Client, string) {
		return w.Pipe("stdio", "--standalone").Stateless(), "server/discover"
	},
	"stateless HTTP": func(w *e2e.World) (*e2e.Client, string) {
		c := w.Served().RawClient()
		c.Web.Stateless = true
		return c.Stateless(), "server/discover"
	},
}

func TestTheFirstHandshakeKnowsWhatSlowServersCanDo(t *testing.T) {
	t.Parallel()
	for name, open := range fronts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, ever)
			b := w.Backend("late", late(0), slowly)
			w.HealthyServer()
			c, method := open(w)
			id := c.Begin(method, hello("patient"))
			b.WaitEvent("wait", "go")
			if method == "initialize" && name != "HTTP" {
				c.Ok("ping", nil) // a waiting handshake blocks nothing
				require.Empty(t, c.Replies[id])
			}
			release(b)
			got := c.End(id).Result
			require.Equal(t, "3", level(got), "%s", got)
			require.Contains(t, e2e.Str(got, "instructions"), "It is late.")
		})
	}
}

func TestTheFirstHandshakeWaitsForEachKindOfServer(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(w *e2e.World) *e2e.Backend{
		"isolation: session": func(w *e2e.World) *e2e.Backend {
			return w.Backend("late", late(0), slowly, e2e.Obj{"isolation": "session"})
		},
		"start: lazy": func(w *e2e.World) *e2e.Backend {
			return w.Backend("late", late(0), slowly, e2e.Obj{"start": "lazy"})
		},
		"remote": func(w *e2e.World) *e2e.Backend { return w.Remote("late", "/mcp", late(0), slowly) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, ever)
			b := add(w)
			c := w.Pipe("stdio", "--standalone")
			id := c.Begin("initialize", hello("patient"))
			b.WaitEvent("wait", "go")
			c.Ok("ping", nil)
			require.Empty(t, c.Replies[id])
			release(b)
			require.Equal(t, "3", level(c.End(id).Result))
		})
	}
}

func TestAHandshakeDoesNotWaitForServersThatWillNotCome(t *testing.T) {
	t.Parallel()
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refuses.Close)
	for name, set := range map[string]func(w *e2e.World){
		"failed":         func(w *e2e.World) { w.Backend("x", late(0), e2e.Obj{"command": filepath.Join(w.Dir, "missing")}) },
		"exited":         func(w *e2e.World) { w.Backend("x", e2e.Obj{"on": e2e.Obj{"initialize": e2e.Actions(e2e.Do("crash"))}}) },
		"disabled":       func(w *e2e.World) { w.Backend("x", late(0), e2e.Obj{"disabled": true}) },
		"unset variable": func(w *e2e.World) { w.Backend("x", late(0), e2e.Obj{"env": e2e.Obj{"X": "${SURELY_NOT_SET}"}}) },
		"needs a login": func(w *e2e.World) {
			b, _ := w.Fake("x", late(0))
			b.Conf["url"] = refuses.URL
		},
		"not in the profile": func(w *e2e.World) {
			w.Backend("x", late(0), slowly)
			w.Profiles, w.Clients = e2e.Obj{"p": e2e.Obj{"servers": []string{"fine"}}}, "{patient: p}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, ever)
			set(w)
			w.HealthyServer()
			c := w.Pipe("stdio", "--standalone")
			c.Ok("initialize", hello("patient"))
		})
	}
}

func TestHandshakesWaitNoLongerThanTheyMayAndOnce(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"0s", "300ms"} {
		t.Run(wait, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, wait)
			b := w.Backend("late", late(0), slowly)
			first := w.Bridged()
			b.WaitEvent("wait", "go")
			second := w.Pipe("stdio")
			require.Empty(t, level(second.Ok("initialize", hello("patient"))))
			release(b)
			first.WaitListed("tools", "late_tell", true)
		})
	}
}

func TestAHandshakeThatWaitsEndsWithItsClientAndWithGoblin(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *e2e.Client){
		"client leaves": func(c *e2e.Client) { c.Close() },
		"SIGTERM":       func(c *e2e.Client) { c.Prog.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, ever)
			b := w.Backend("late", late(0), slowly)
			c := w.Pipe("stdio", "--standalone")
			c.Begin("initialize", hello("patient"))
			b.WaitEvent("wait", "go")
			end(c)
			c.Prog.Ends(e2e.Patience)
		})
	}
}

func TestClientsThatDoNotWaitGetWhatIsThereAndThenTheRest(t *testing.T) {
	t.Parallel()
	for _, try := range []struct{ client, front string }{
		{"codex-mcp-client", "stdio"},
		{"codex-mcp-client", "bridge"},
		{"codex-mcp-client", "HTTP"},
		{"claude-code", "stdio"},
		{"@cline/core", "stdio"},
		{"opencode", "stdio"},
	} {
		t.Run(try.client+", "+try.front, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, ever)
			b := w.Backend("late", late(0), slowly)
			fine := w.HealthyServer()
			c, _ := fronts[try.front](w)
			fine.WaitReceived("tools/list", 1)
			c.Ok("initialize", hello(try.client))
			c.Notify("notifications/initialized", nil)
			if c.Web != nil {
				c.Listen()
			}
			require.Equal(t, []string{"fine_move", "fine_stat"}, c.Names("tools"))
			for _, list := range []string{"prompts", "resources", "templates"} {
				c.List(list)
			}
			release(b)
			c.WaitNote("notifications/tools/list_changed", nil)
			c.WaitListed("tools", "late_tell", true)
		})
	}
}

func TestStatelessClientsThatDoNotWaitGetWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, front := range []string{"stateless stdio", "stateless HTTP"} {
		t.Run(front, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, ever)
			w.Backend("late", late(0), slowly)
			fine := w.HealthyServer()
			c, method := fronts[front](w)
			fine.WaitReceived("tools/list", 1)
			codex := e2e.Obj{"_meta": e2e.Obj{e2e.ProtocolPrefix + "clientInfo": e2e.Obj{"name": "codex-mcp-client", "version": "1"}}}
			c.Ok(method, codex)
			got := string(e2e.At(c.Ok("tools/list", codex), "tools"))
			require.Contains(t, got, "fine_stat")
			require.NotContains(t, got, "late_tell")
		})
	}
}

// teaching are commands that start servers and cache their lists for the next daemon.
var teaching = map[string][]string{
	"list tools":   {"list", "tools"},
	"list servers": {"list", "servers", "--server", "late"},
	"search":       {"search", "tell"},
	"call":         {"call", "late_tell"},
	"doctor":       {"doctor"},
	"doctor NAME":  {"doctor", "late"},
	"install":      {"install", "cursor"},
}

func TestWhatACommandListedIsThereForTheFirstClient(t *testing.T) {
	t.Parallel()
	for name, args := range teaching {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := patientWorld(t, ever)
			b := w.Backend("late", late(1), e2e.Obj{"env": e2e.Obj{"TOKEN": "hush-hush-hush"}})
			w.Succeeds(args...)
			require.Equal(t, 1, b.Starts())
			c := w.Bridged()
			require.Equal(t, []string{"late_tell"}, c.Names("tools"))
			again := w.Pipe("stdio")
			got := again.Ok("initialize", hello("patient"))
			require.Equal(t, "3", level(got))
			require.Contains(t, e2e.Str(got, "instructions"), "It is late.")
			for _, file := range cached(t, w) {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NotContains(t, string(text), "hush")
				info, err := os.Stat(file)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			}
		})
	}
}

func cached(t *testing.T, w *e2e.World) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "catalog", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestWhatAddListedIsThereForTheFirstClient(t *testing.T) {
	t.Parallel()
	w := patientWorld(t, ever)
	_, script := w.Fake("late", late(1))
	w.Backends[0].Conf["command"], w.Backends[0].Conf["disabled"] = "unused", true
	w.Write()
	require.NoError(t, os.WriteFile(w.Config, []byte("gateway: {start: eager, startup_wait: "+ever+", handshake_wait: "+ever+"}\nservers: {}\n"), 0o600))
	require.Contains(t, w.Succeeds("add", "late", "--", e2e.TestServer, script), "1 tool: tell")
	c := w.Bridged()
	require.Equal(t, []string{"late_tell"}, c.Names("tools"))
}

func TestWhatACommandListedReplacesNothingThatADaemonWrote(t *testing.T) {
	t.Parallel()
	w := patientWorld(t, "5s")
	w.Backend("late", late(9))
	c := w.Bridged()
	require.Equal(t, []string{"late_tell"}, c.Names("tools"))
	e2e.Eventually(t, "the daemon caches its lists", func() bool {
		files, _ := filepath.Glob(filepath.Join(w.Dir, "home", ".local", "state", "goblin", "catalog", "late-*.catalog"))
		return len(files) == 1
	})
	before, err := os.ReadFile(cached(t, w)[0])
	require.NoError(t, err)
	w.Succeeds("doctor", "late")
	after, err := os.ReadFile(cached(t, w)[0])
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestACommandApprovesNothing(t *testing.T) {
	t.Parallel()
	w := patientWorld(t, ever)
	w.Gateway["pin"] = "strict"
	changed := e2e.Obj{"tools": []e2e.Obj{e2e.Tool("tell"), e2e.Tool("steal")}}
	w.Backend("late", late(2, e2e.Obj{"on": e2e.Obj{
		"initialize": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go", "after": 2})),
		"tools/list": e2e.Actions(e2e.Do("result", e2e.Obj{"result": changed, "after": 1})),
	}}))
	require.Contains(t, w.Succeeds("list", "tools"), "late_tell")
	require.NotContains(t, w.Succeeds("list", "tools"), "late_steal")
	c := w.Bridged()
	require.Equal(t, []string{"late_tell"}, c.Names("tools"))
}

func TestInitStartsNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b, script := w.Fake("late", late(0))
	from := filepath.Join(w.Dir, "mcp.json")
	require.NoError(t, os.WriteFile(from, e2e.Marshal(e2e.Obj{"mcpServers": e2e.Obj{"late": e2e.Obj{"command": e2e.TestServer, "args": []string{script}}}}), 0o600))
	w.Written = true
	require.Contains(t, w.Succeeds("init", "--from", from, "--yes"), "Next: ")
	require.Zero(t, b.Starts())
	require.NotContains(t, w.Succeeds("install", "cursor", "--dry-run"), "waiting")
	require.Zero(t, b.Starts())
}

func TestServersThatACommandLeavesAreNotReportedAsThoseOfAKilledProcess(t *testing.T) {
	t.Parallel()
	stubborn := e2e.Obj{"ignoreTerm": true, "ignoreEOF": true}
	for name, list := range map[string]func(w *e2e.World) *e2e.Backend{
		"listed": func(w *e2e.World) *e2e.Backend {
			b := w.Backend("stubborn", late(9, stubborn))
			require.Contains(t, w.Succeeds("list", "tools"), "stubborn_tell")
			return b
		},
		"interrupted": func(w *e2e.World) *e2e.Backend {
			b := w.Backend("stubborn", late(0, stubborn), slowly)
			p := w.Start(nil, "list", "tools")
			b.WaitEvent("wait", "go")
			p.Signal(syscall.SIGINT)
			require.Equal(t, e2e.ExitFailure, p.Ends(e2e.Patience))
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["handshake_wait"] = 0
			b := list(w)
			w.Bridged()
			b.WaitStarts(2)
			b.WaitLive(1)
			require.NotContains(t, w.DaemonLog(), "killed")
		})
	}
}

func TestACommandSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("late", late(0), slowly)
	p := w.Start(nil, "list", "tools")
	b.WaitEvent("wait", "go")
	require.True(t, p.Stderr.Holds(e2e.Patience, func() bool { return strings.Contains(p.Stderr.Text.String(), "waiting for late") }))
	release(b)
	require.Zero(t, p.Ends(e2e.Patience))
}
