//go:build e2e

package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// projects returns two folders of repositories and one folder without a repository.
func projects(t *testing.T, w *e2e.World) (one, other, none string) {
	t.Helper()
	for _, name := range []string{"one/.git", "one/in side", "other/.git", "none"} {
		require.NoError(t, os.MkdirAll(filepath.Join(w.Dir, name), 0o700))
	}
	dir, err := filepath.EvalSymlinks(w.Dir)
	require.NoError(t, err)
	return filepath.Join(dir, "one"), filepath.Join(dir, "other"), filepath.Join(dir, "none")
}

// projectServer adds a server that reports in which project it runs.
func projectServer(w *e2e.World, conf ...e2e.Obj) *e2e.Backend {
	script := e2e.CountingServer()
	script["tools"] = append(script["tools"].([]e2e.Obj), e2e.Tool("where"), e2e.Tool("ask"))
	on := script["on"].(e2e.Obj)
	on["tools/call where"] = e2e.Actions(e2e.Do("env"))
	on["tools/call ask"] = e2e.Actions(e2e.Do("request", e2e.Obj{"method": "roots/list"}), e2e.Do("answers"))
	return w.Backend("own", script, append([]e2e.Obj{{"isolation": "project", "env": e2e.Obj{"WHERE": "<${project}>"}}}, conf...)...)
}

// in returns a client of goblin stdio that was started in a folder, with these roots.
func in(w *e2e.World, folder string, roots ...string) *e2e.Client {
	w.T.Helper()
	w.Served()
	w.Cwd = folder
	return rooted(w.Pipe("stdio"), roots...)
}

// rooted initializes a client with these roots.
func rooted(c *e2e.Client, roots ...string) *e2e.Client {
	c.T.Helper()
	if len(roots) > 0 {
		c.Caps = e2e.Obj{"roots": e2e.Obj{"listChanged": true}}
		c.Reply = func(e2e.Message) (any, any) {
			list := []e2e.Obj{}
			for _, uri := range roots {
				list = append(list, e2e.Obj{"uri": uri})
			}
			return e2e.Obj{"roots": list}, nil
		}
	}
	c.Init()
	return c
}

func TestEachProjectHasAProcess(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["linger"] = "300ms"
	one, other, none := projects(t, w)
	b := projectServer(w)
	beside := w.Backend("shared", e2e.CountingServer())

	outside := in(w, none)
	require.Equal(t, []string{"shared_count"}, outside.Names("tools"), "without a project it does not run")
	first := in(w, one)
	require.Contains(t, first.Names("tools"), "own_where", "it runs when its first client lists")
	same := in(w, one+"/in side", "file://"+one+"/../one/")
	second := in(w, none, "file://"+other, "file://"+one)

	require.Contains(t, first.CallText("own_where", e2e.Obj{}), "WHERE=<"+one+">")
	require.Contains(t, same.CallText("own_where", e2e.Obj{}), "WHERE=<"+one+">", "the first root, in any spelling")
	require.Contains(t, second.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">")
	pid, n := first.Counts()
	require.Equal(t, 1, n)
	require.Equal(t, pid, same.CountsTo(2, 2), "one process for the clients of a project")
	require.NotEqual(t, pid, second.CountsTo(1, 1))
	b.WaitLive(2)
	if cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd")); err == nil {
		require.Equal(t, one, cwd)
	}
	servers := json.RawMessage(first.ReadText("goblin://servers"))
	require.Equal(t, one, e2e.Str(servers, "servers", 0, "projects", 0, "folder"))
	require.Equal(t, other, e2e.Str(servers, "servers", 0, "projects", 1, "folder"))
	require.JSONEq(t, `[{"roots":[{"uri":"file://`+one+`"}]}]`, first.CallText("own_ask", e2e.Obj{}), "a client without roots is in its project")

	refused := string(outside.Request("tools/call", e2e.Obj{"name": "own_where"}).Result)
	require.Contains(t, refused, "isolation: project")
	require.Contains(t, refused, "is not in a repository")
	require.Contains(t, outside.CallText("shared_count", e2e.Obj{}), "1")
	_ = beside

	first.Close()
	same.CallText("own_where", e2e.Obj{})
	same.Close()
	b.WaitLive(1)
	require.Contains(t, second.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">")
}

func TestCommandsOutsideOfAProjectSayThatTheServerWaitsForOne(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, _, none := projects(t, w)
	projectServer(w)
	const why = `server "own" is stopped: waiting for a client with a project (isolation: project)`

	w.Cwd = none
	called := w.Run("call", "own_where")
	require.Equal(t, 7, called.Code)
	require.Contains(t, called.Stderr, why)
	require.NotContains(t, called.Stderr, "list all with")
	listed := w.Run("list", "tools")
	require.Zero(t, listed.Code, "nothing failed")
	require.Contains(t, listed.Stderr, why)

	w.Cwd = one
	require.Contains(t, w.Succeeds("call", "own_where"), "WHERE=<"+one+">")
	require.Empty(t, w.Run("list", "tools").Stderr)
}

func TestClientsOverHTTPNameTheirProjectByTheURL(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, other, _ := projects(t, w)
	w.Gateway["auth_token"] = "t0ken-of-the-test"
	projectServer(w)
	s := w.Served()
	head := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": e2e.ModernRevision,
		"Mcp-Method": "tools/call", "Mcp-Name": "own_where",
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"own_where","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for _, folder := range []string{one, other} {
		require.Contains(t, s.Do("POST", "/mcp?project="+folder, head, call).Body, "WHERE=<"+folder+">")
	}
	require.Contains(t, s.Do("POST", "/mcp", head, call).Body, "/mcp?project=PATH")
	require.Contains(t, s.Do("POST", "/mcp?project=relative", head, call).Body, "is not absolute")

	legacy := s.Client(false, e2e.Obj{"roots": e2e.Obj{}})
	legacy.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"roots": []e2e.Obj{{"uri": "file://" + other}}}, nil }
	require.Contains(t, legacy.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">")
}

func TestMadeUpProjectsLockNobodyOut(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, _, _ := projects(t, w)
	w.Gateway["auth_token"] = "t0ken-of-the-test"
	projectServer(w)
	s := w.Served()
	list := func(path string) string {
		c := s.Stateless()
		c.Web.Path = path
		return c.Request("tools/list", nil).Raw
	}
	for n := range 257 { // one more than there are slots
		require.Contains(t, list(fmt.Sprintf("/mcp?project=/nope%d", n)), "does not exist")
	}
	require.Contains(t, list("/mcp"), `"tools"`)
	require.Contains(t, list("/mcp?project="+one), `"tools"`)
}

func TestAProjectInTheURLNeedsAToken(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, _, _ := projects(t, w)
	projectServer(w)
	answer := w.Served().Do("POST", "/mcp?project="+one, map[string]string{"Content-Type": "application/json"}, `{}`)
	require.Equal(t, 403, answer.Status)
	require.Contains(t, answer.Body, "gateway.auth_token")
}

func TestOldRootsThatComeLateDecideNothing(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, other, none := projects(t, w)
	projectServer(w)
	w.Served()
	w.Cwd = none
	c := w.Pipe("stdio")
	c.Caps = e2e.Obj{"roots": e2e.Obj{"listChanged": true}}
	c.Init()
	tell := func(asked int, folder string) {
		c.Answer(c.WaitAsks(asked), func(e2e.Message) (any, any) { return e2e.Obj{"roots": []e2e.Obj{{"uri": "file://" + folder}}}, nil })
	}
	call := e2e.Obj{"name": "own_where", "arguments": e2e.Obj{}}
	early := c.Begin("tools/call", call)
	c.WaitAsks(1)
	c.Notify("notifications/roots/list_changed", nil)
	late := c.Begin("tools/call", call)
	tell(2, other)
	require.Contains(t, c.End(late).Raw, "WHERE=<"+other+">")
	tell(1, one)
	require.Contains(t, c.End(early).Raw, "WHERE=<"+other+">")
	require.Contains(t, c.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">")
}

func TestASubscriptionFollowsItsClientIntoAnotherProject(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]bool{"without a client": false, "with another client": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			one, other, none := projects(t, w)
			b := projectServer(w)
			in(w, one).CallText("own_where", e2e.Obj{}) // the first project still works
			if open {
				in(w, other).CallText("own_where", e2e.Obj{})
			}
			w.Cwd = none
			c := w.Pipe("stdio")
			var root atomic.Value
			root.Store("file://" + one)
			c.Caps = e2e.Obj{"roots": e2e.Obj{"listChanged": true}}
			c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"roots": []e2e.Obj{{"uri": root.Load()}}}, nil }
			c.Init()
			c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("own", "x:1")})
			b.WaitReceived("resources/subscribe", 1)
			root.Store("file://" + other)
			c.Notify("notifications/roots/list_changed", nil)
			e2e.Eventually(t, "the other project", func() bool { return e2e.Contains(c.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">") })
			b.WaitReceived("resources/subscribe", 2) // from the process of the other project
		})
	}
}

func TestAClientThatGoesToAnotherProjectTakesItsSubscriptionsAlong(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["linger"] = "100ms"
	one, other, none := projects(t, w)
	b := projectServer(w)
	at := one
	c := in(w, none, "")
	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"roots": []e2e.Obj{{"uri": "file://" + at}}}, nil }
	require.Contains(t, c.CallText("own_where", e2e.Obj{}), "WHERE=<"+one+">")
	uri := e2e.In("own", "x:1")
	c.Ok("resources/subscribe", e2e.Obj{"uri": uri})
	at = other
	c.Notify("notifications/roots/list_changed", nil)
	require.Contains(t, c.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">")
	b.WaitLive(1)
	require.Equal(t, []string{uri}, c.WaitUpdates(1), "it may have missed one")
	c.Forget()
	b.Updated("x:1")
	require.Equal(t, []string{uri}, c.WaitUpdates(1))
}

func TestStatelessClientsHaveAProjectOverStdio(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, other, _ := projects(t, w)
	b := projectServer(w)
	w.Served()
	w.Cwd = one
	plain := w.Pipe("stdio").Stateless()
	plain.Caps = e2e.Obj{}
	require.Contains(t, plain.Names("tools"), "own_where")
	require.Contains(t, plain.CallText("own_where", e2e.Obj{}), "WHERE=<"+one+">")

	rooted := w.Pipe("stdio").Stateless()
	rooted.Caps = e2e.Obj{"roots": e2e.Obj{}}
	require.Contains(t, rooted.Names("tools"), "own_where")
	state, keys := e2e.InputRequests(t, rooted.Request("tools/call", e2e.Obj{"name": "own_where"}))
	got := rooted.Ok("tools/call", e2e.Obj{"name": "own_where", "requestState": state, "inputResponses": e2e.Obj{
		keys["roots/list"]: e2e.Obj{"roots": []e2e.Obj{{"uri": "file://" + other}}},
	}})
	require.Contains(t, e2e.Str(got, "content", 0, "text"), "WHERE=<"+other+">")
	require.Contains(t, rooted.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">", "it is asked once")
	b.WaitLive(2)
}

func TestCommandsWithoutADaemonAreInTheProjectOfTheirFolder(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, _, none := projects(t, w)
	projectServer(w)
	w.Cwd = one
	require.Contains(t, w.Succeeds("list", "tools"), "own_where")
	require.Contains(t, w.Succeeds("call", "own_where"), "WHERE=<"+one+">")
	w.Cwd = none
	require.NotContains(t, w.Succeeds("list", "tools"), "own_where")
}

func TestProjectsThatCannotBeAreExplained(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	one, other, none := projects(t, w)
	w.Gateway["limits"] = e2e.Obj{"projects": 1}
	projectServer(w)
	first := rooted(w.Socket(), "file://"+one)
	first.CallText("own_where", e2e.Obj{})
	require.NoError(t, os.WriteFile(filepath.Join(none, "file"), nil, 0o600))
	for uri, why := range map[string]string{
		"file://" + other:                      "limits.projects",
		"file:///not/there":                    "does not exist",
		"file:///":                             "root of the file system",
		"file://" + one + "/../../../../../..": "root of the file system",
		"file:///a%1b%5b2Jb":                   "control characters",
		"file:///a%0ab":                        "control characters",
		"file:///a%00b":                        "control characters",
		"https://example.com/":                 "not a file:// URI",
		"file://elsewhere/work":                "not a file:// URI",
		"file://" + none + "/file":             "is not a folder",
	} {
		c := rooted(w.Socket(), uri)
		c.Names("tools")
		text := string(c.Request("tools/call", e2e.Obj{"name": "own_where"}).Result)
		require.Contains(t, text, why, uri)
		require.NotContains(t, text, `\u001b`, uri)
		c.Close()
	}
}
