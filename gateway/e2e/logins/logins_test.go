//go:build e2e

package logins

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func protected(t *testing.T) (*realm, *e2e.World, *e2e.Backend) {
	t.Helper()
	r, w := newRealm(t), e2e.NewWorld(t)
	w.Gateway["startup_wait"] = "1s" // a server that needs a login never lists
	b := w.Remote("shop", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("buy")}})
	w.Backend("local", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("t")}})
	r.protect(w, b)
	return r, w, b
}

// A server that needs a login says so, gets one by the command while the daemon runs, and
// lasts beyond the end of its tokens.
func TestLoginByTheCommandReachesTheRunningDaemon(t *testing.T) {
	t.Parallel()
	r, w, _ := protected(t)
	w.Log = e2e.Obj{"level": "debug"}
	c := w.Standalone()
	f := c.Fails(e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}})
	require.JSONEq(t, `{"code":"LOGIN_REQUIRED","server":"shop","command":"goblin login shop"}`, string(f.Data))
	e2e.Eventually(t, "the state", func() bool { return strings.Contains(w.Run("list", "servers").Stdout, "needs login") })

	require.Contains(t, r.succeeds(w, r.visit), `logged in at "shop"`)
	c.WaitListed("tools", "shop_buy", true)
	c.CallText("shop_buy", e2e.Obj{})
	require.Equal(t, 1, r.count("register"))

	var kept []string
	root := filepath.Join(w.Dir, "home")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Base(filepath.Dir(path)) == "logins" && strings.HasSuffix(path, ".json") {
			info, err := d.Info()
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
			kept = append(kept, path)
		}
		return nil
	}))
	require.Len(t, kept, 1)
	dir, err := os.Stat(filepath.Dir(kept[0]))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), dir.Mode().Perm())

	// All tokens end: one refresh serves all calls that wait for it.
	r.set(func() {
		for token := range r.access {
			r.access[token] = time.Now()
		}
	})
	var ids []string
	for range 50 {
		ids = append(ids, c.Begin("tools/call", e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}))
	}
	for _, id := range ids {
		require.Nil(t, c.End(id).Error)
	}
	require.Equal(t, 1, r.count("refresh_token"))

	for _, p := range w.Programs {
		require.NotRegexp(t, `access-\d|refresh-\d|code-\d`, p.Stderr.String())
	}

	// The client is kept for the next login, and logging out takes the tokens back.
	out := w.Run("logout", "shop")
	require.Zero(t, out.Code, out.Stderr)
	r.set(func() { require.Len(t, r.revoked, 2) })
	e2e.Eventually(t, "the end of the login", func() bool {
		return c.Request("tools/call", e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}}).Error != nil ||
			!c.Works(e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}})
	})
	r.succeeds(w, r.visit)
	require.Equal(t, 1, r.count("register"), "the registered client is known")
}

// A call that waits for its answer when the login ends is told that, whoever notices first.
func TestCallsUnderWayAreToldOfTheEndOfTheLogin(t *testing.T) {
	t.Parallel()
	r, w := newRealm(t), e2e.NewWorld(t)
	b := w.Remote("shop", "/mcp", e2e.Obj{"tools": []e2e.Obj{e2e.Tool("buy")}, "on": e2e.Obj{"tools/call": e2e.Actions(e2e.Do("hang"))}})
	r.protect(w, b)
	r.succeeds(w, r.visit)
	c := w.Standalone()
	c.WaitListed("tools", "shop_buy", true)
	id := c.Begin("tools/call", e2e.Obj{"name": "shop_buy", "arguments": e2e.Obj{}})
	b.WaitEvent("wait", "hang")
	require.Zero(t, w.Run("logout", "shop").Code)
	f := e2e.ParseFailure(t, c.End(id))
	require.Equal(t, "LOGIN_REQUIRED", f.Kind(), f.Message)
	require.Contains(t, f.Message, "needs login: the login is over: logged out")
}

func TestLoginIsForRemoteServersThatAreKnown(t *testing.T) {
	t.Parallel()
	_, w, _ := protected(t)
	require.Equal(t, e2e.ExitUsage, w.Run("login", "local").Code)
	require.Equal(t, e2e.ExitNotFound, w.Run("login", "nobody").Code)
}
