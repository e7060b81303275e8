//go:build e2e

package security

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// askingForRoots is a server that requests roots in a call.
func askingForRoots() e2e.Obj {
	script := e2e.CountingServer()
	script["tools"] = append(script["tools"].([]e2e.Obj), e2e.Tool("ask"), e2e.Tool("where"))
	on := script["on"].(e2e.Obj)
	on["tools/call ask"] = e2e.Actions(e2e.Do("request", e2e.Obj{"method": "roots/list"}), e2e.Do("answers"))
	on["tools/call where"] = e2e.Actions(e2e.Do("env"))
	return script
}

// inProjects adds a server with a process for each project, and one that clients share.
// It returns the folders of two projects.
func inProjects(w *e2e.World) (own *e2e.Backend, one, other string) {
	w.T.Helper()
	own = w.Backend("own", askingForRoots(), e2e.Obj{"isolation": "project", "env": e2e.Obj{"WHERE": "<${project}>"}})
	w.Backend("shared", askingForRoots())
	dir, err := filepath.EvalSymlinks(w.Dir)
	require.NoError(w.T, err)
	one, other = filepath.Join(dir, "one"), filepath.Join(dir, "other")
	for _, folder := range []string{one, other} {
		require.NoError(w.T, os.MkdirAll(filepath.Join(folder, ".git"), 0o700))
	}
	return own, one, other
}

// withRoots makes a client declare roots and answer with the current value of folder.
func withRoots(c *e2e.Client, folder *atomic.Value) *e2e.Client {
	c.Caps = e2e.Obj{"roots": e2e.Obj{"listChanged": true}}
	c.Reply = func(e2e.Message) (any, any) {
		return e2e.Obj{"roots": []e2e.Obj{{"uri": "file://" + folder.Load().(string)}}}, nil
	}
	return c
}

func at(folder string) *atomic.Value {
	v := &atomic.Value{}
	v.Store(folder)
	return v
}

const noToken = "set gateway.auth_token or connect over stdio"

func TestRootsOverHTTPSelectNoProjectWithoutAToken(t *testing.T) {
	t.Parallel()
	for name, detached := range map[string]bool{"serve": false, "detached daemon": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			own, one, other := inProjects(w)
			var web *e2e.Web
			var owner *e2e.Client
			w.Cwd = one
			if detached {
				port := e2e.FreePort(t)
				w.Gateway["listen"] = fmt.Sprintf("127.0.0.1:%d", port)
				w.AllowDaemon = true
				owner = w.Pipe("stdio")
				web = &e2e.Web{Program: owner.Prog, W: w, Base: fmt.Sprintf("http://127.0.0.1:%d", port), Http: e2e.NewHTTP(t)}
			} else {
				web = w.Served()
				owner = w.Pipe("stdio")
			}
			withRoots(owner, at(one)).Init()
			require.Contains(t, owner.CallText("own_where", e2e.Obj{}), "WHERE=<"+one+">", "a client over stdio has its project")

			for _, folder := range []string{one, other} { // the owner's, and one without a client
				root := at(folder)
				c := withRoots(web.RawClient(), root)
				c.Init()
				c.Listen()
				refuses(t, c)
				require.Empty(t, c.Asks, "its roots would decide nothing")
				root.Store(one)
				c.Notify("notifications/roots/list_changed", nil)
				refuses(t, c)
				require.Contains(t, c.CallText("shared_ask", e2e.Obj{}), "file://"+one, "they answer in its own calls")
				require.Contains(t, c.Names("tools"), "shared_count")
			}
			refusesStateless(t, web, one)
			require.Equal(t, 403, web.Do("POST", "/mcp?project="+one, nil, e2e.InitBody).Status)
			require.Equal(t, 1, own.Starts(), "no process was started")
			require.Equal(t, 1, own.Count("tools/call"), "no call reached the owner's process")
			require.Zero(t, own.Count("resources/read")+own.Count("resources/subscribe")+own.Count("prompts/get")+own.Count("completion/complete"))
		})
	}
}

func TestTheDemoOverHTTPHasTheSameRules(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Config, w.Written = "", true
	web := w.Serve()
	for _, row := range []struct {
		path   string
		header map[string]string
	}{
		{"/mcp?project=" + w.Dir, nil},
		{"/mcp", map[string]string{"Origin": "https://evil.example"}},
		{"/mcp", map[string]string{"Host": "evil.example"}},
	} {
		require.Equal(t, 403, web.Do("POST", row.path, row.header, e2e.InitBody).Status, row)
	}
	require.Equal(t, 200, web.Do("POST", "/mcp", nil, e2e.InitBody).Status)
}

// The server has never run, so that its tools are unknown.
func TestWithoutATokenAServerThatNeverRanSaysWhy(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	own, one, _ := inProjects(w)
	web := w.Served()
	c := withRoots(web.RawClient(), at(one))
	c.Init()
	c.Listen()
	refuses(t, c)
	refusesStateless(t, web, one)
	require.Contains(t, c.CallText("shared_count", e2e.Obj{}), "1")
	require.Zero(t, own.Starts())
}

// refuses checks that no request of a client reaches the server with a process per project.
func refuses(t *testing.T, c *e2e.Client) {
	t.Helper()
	for method, params := range map[string]e2e.Obj{
		"tools/call":          {"name": "own_where", "_meta": e2e.Obj{"project": "/", "roots": []string{"file:///"}}},
		"prompts/get":         {"name": "own/p"},
		"resources/read":      {"uri": e2e.In("own", "x:1")},
		"resources/subscribe": {"uri": e2e.In("own", "x:1")},
	} {
		require.Contains(t, c.Request(method, params).Raw, noToken, method)
	}
}

// refusesStateless is refuses for requests of 2026-07-28, which declare roots themselves.
func refusesStateless(t *testing.T, web *e2e.Web, folder string) {
	t.Helper()
	c := web.Stateless()
	c.Caps = e2e.Obj{"roots": e2e.Obj{}}
	for method, params := range map[string]e2e.Obj{
		"tools/call":     {"name": "own_where", "inputResponses": e2e.Obj{"input-1": e2e.Obj{"roots": []e2e.Obj{{"uri": "file://" + folder}}}}},
		"prompts/get":    {"name": "own/p"},
		"resources/read": {"uri": e2e.In("own", "x:1")},
	} {
		require.Contains(t, c.Request(method, params).Raw, noToken, method)
	}
	state, keys := e2e.InputRequests(t, c.Request("tools/call", e2e.Obj{"name": "shared_ask"}))
	got := c.Ok("tools/call", e2e.Obj{"name": "shared_ask", "requestState": state, "inputResponses": e2e.Obj{
		keys["roots/list"]: e2e.Obj{"roots": []e2e.Obj{{"uri": "file://" + folder}}},
	}})
	require.Contains(t, string(got), "file://"+folder, "roots answer in its own calls")

	head := map[string]string{"X-Project": folder, "X-Goblin-Project": folder, "Mcp-Project": folder, "Referer": "http://localhost/?project=" + folder}
	s := web.Session()
	for k, v := range s {
		head[k] = v
	}
	require.Contains(t, web.Do("POST", "/mcp", head, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"own_where"}}`).Body, noToken)
}

func TestRootsOverHTTPSelectAProjectWithTheToken(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["auth_token"] = "t0ken-of-the-test"
	_, one, other := inProjects(w)
	root := at(one)
	c := withRoots(w.Served().RawClient(), root)
	c.Init()
	require.Contains(t, c.CallText("own_where", e2e.Obj{}), "WHERE=<"+one+">")
	root.Store(other)
	c.Notify("notifications/roots/list_changed", nil)
	require.Contains(t, c.CallText("own_where", e2e.Obj{}), "WHERE=<"+other+">")
}

func TestServersGetRootsOverHTTPOutsideOfCallsOnlyWithAToken(t *testing.T) {
	t.Parallel()
	for name, token := range map[string]string{"without": "", "with": "t0ken-of-the-test"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///work"}}
			if token != "" {
				w.Gateway["auth_token"] = token
			}
			open := w.Backend("open", askingForRoots(), e2e.Obj{"roots": "client"})
			alone := w.Backend("alone", askingForRoots(), e2e.Obj{"isolation": "session"})
			web := w.Served()
			web.Client(false).Names("tools") // the servers have listed
			c := withRoots(web.RawClient(), at("/stranger"))
			c.Init()
			c.Listen()
			c.CallText("alone_count", e2e.Obj{})
			if token != "" {
				open.WaitReceived("notifications/roots/list_changed", 1)
			}
			for _, b := range []*e2e.Backend{open, alone} {
				b.Do(e2e.Do("request", e2e.Obj{"method": "roots/list"}))
				told := string(b.WaitEvents("reply", "roots/list", 1).Msg)
				if token == "" {
					require.JSONEq(t, `{"roots":[{"uri":"file:///work"}]}`, told)
				} else {
					require.Contains(t, told, "file:///stranger")
				}
			}
			require.Contains(t, c.CallText("open_ask", e2e.Obj{}), "file:///stranger", "in its own call")
			require.Contains(t, c.CallText("alone_ask", e2e.Obj{}), "file:///stranger", "in its own call")
		})
	}
}

func TestValidateWarnsOfProjectsThatClientsOverHTTPCannotHave(t *testing.T) {
	t.Parallel()
	for name, warned := range map[string]bool{"listen": true, "token": false, "stdio": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			inProjects(w)
			if name != "stdio" {
				w.Gateway["listen"] = "127.0.0.1:7331"
			}
			if name == "token" {
				w.Gateway["auth_token"] = "t0ken-of-the-test"
			}
			got := w.Run("validate")
			require.Zero(t, got.Code, got.Stderr)
			const warning = `:2: warning: server "own": clients over HTTP cannot use it`
			if warned {
				require.Contains(t, got.Stdout+got.Stderr, warning)
			} else {
				require.NotContains(t, got.Stdout+got.Stderr, warning)
			}
		})
	}
}
