//go:build e2e

package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

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
	state, keys := e2e.Demanded(t, rooted.Request("tools/call", e2e.Obj{"name": "own_where"}))
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
		"https://example.com/":                 "not the file:// URI",
		"file://elsewhere/work":                "not the file:// URI",
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
