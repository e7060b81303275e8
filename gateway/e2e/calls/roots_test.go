//go:build e2e

package calls

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

const rootsChanged = "notifications/roots/list_changed"

// rooted is a client with roots of its own.
func rooted(w *e2e.World, roots ...e2e.Obj) *e2e.Client {
	c := w.Socket()
	c.Caps = e2e.Obj{"roots": e2e.Obj{"listChanged": true}}
	c.Reply = func(e2e.Message) (any, any) { return e2e.Obj{"roots": roots}, nil }
	c.Init()
	c.Names("tools")
	return c
}

// rootAsker is a server that requests roots during a call.
func rootAsker(more ...e2e.Obj) e2e.Obj {
	on := e2e.Obj{"tools/call ask": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "roots/list"}), e2e.Do("answers"))}
	return e2e.Obj{"tools": []e2e.Obj{e2e.Tool("ask"), e2e.Tool("hold"), e2e.Tool("t")}, "on": e2e.Merge(on, more)}
}

// outside makes a server request roots outside of a call and returns the n-th answer.
func outside(b *e2e.Backend, n int) string {
	b.Do(e2e.Do("request", e2e.Obj{"method": "roots/list"}))
	return string(b.WaitEvents("reply", "roots/list", n).Msg)
}

func TestRootsAreWhoseTheServerIsToHave(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///work", "name": "work"}}
	shared := w.Backend("shared", rootAsker())
	open := w.Backend("open", rootAsker(), e2e.Obj{"roots": "client"})
	closed := w.Backend("closed", rootAsker(), e2e.Obj{"roots": "none"})
	own := w.Backend("own", rootAsker(), e2e.Obj{"isolation": "session"})
	fixed := w.Backend("fixed", rootAsker(), e2e.Obj{"isolation": "session", "roots": "config"})

	// Notifications of new clients arrive before the first call, so requests that they
	// cause don't belong to a call.
	w.Join().Names("tools") // has no roots; the servers are there now
	a := rooted(w, e2e.Obj{"uri": "file:///a", "name": "A", "_meta": e2e.Obj{"k": 1}}, e2e.Obj{"uri": "file:///both", "name": "first"})
	open.WaitReceived(rootsChanged, 1)
	b := rooted(w, e2e.Obj{"uri": "file:///both", "name": "second"}, e2e.Obj{"uri": "file:///work"}, e2e.Obj{"name": "none"}, e2e.Obj{"uri": "file:///b"})
	open.WaitReceived(rootsChanged, 2)
	mute := w.Socket()
	mute.Caps = e2e.Obj{"roots": e2e.Obj{}}
	mute.Reply = func(e2e.Message) (any, any) { return nil, e2e.Obj{"code": -32603, "message": "no"} }
	mute.Init()
	mute.Names("tools")
	open.WaitReceived(rootsChanged, 3)
	a.CallText("own_t", e2e.Obj{})
	a.CallText("fixed_t", e2e.Obj{})

	const configured = `{"roots":[{"uri":"file:///work","name":"work"}]}`
	require.JSONEq(t, configured, outside(shared, 1), "shared: those of the config, never a client's")
	require.JSONEq(t, configured, outside(fixed, 1))
	require.JSONEq(t, `{"roots":[{"uri":"file:///work","name":"work"},{"uri":"file:///a","name":"A","_meta":{"k":1}},{"uri":"file:///both","name":"first"},{"uri":"file:///b"}]}`, outside(open, 1))
	require.JSONEq(t, `{"roots":[{"uri":"file:///a","name":"A","_meta":{"k":1}},{"uri":"file:///both","name":"first"}]}`, outside(own, 1))
	require.Contains(t, outside(closed, 1), "-32601")
	require.NotContains(t, string(e2e.At(closed.Received("initialize")[0].Msg, "params", "capabilities")), "roots")
	require.Contains(t, string(e2e.At(shared.Received("initialize")[0].Msg, "params", "capabilities")), "roots")

	for _, server := range []string{"shared", "open", "own", "fixed"} {
		b.CallText(server+"_t", e2e.Obj{})
		require.Contains(t, b.CallText(server+"_ask", e2e.Obj{}), `file:///b`, "in a call, those of its client")
		require.NotContains(t, b.CallText(server+"_ask", e2e.Obj{}), `file:///a`)
	}
	require.NotContains(t, b.CallText("closed_ask", e2e.Obj{}), "file:///b")
	require.Zero(t, shared.Count(rootsChanged), "its roots have not changed")
}

func TestServersAreToldWhenRootsThatTheyWereGivenChange(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	hold := e2e.Obj{
		"tools/call hold": e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "hold"})),
		// It sends a request before it answers what it read after the notification.
		"ping": e2e.Actions(e2e.Do("request", e2e.Obj{"method": "roots/list"})),
	}
	b := w.Backend("b", rootAsker(hold))
	never := w.Backend("never", rootAsker(), e2e.Obj{"roots": "none"})

	a := rooted(w, e2e.Obj{"uri": "file:///a"})
	other := rooted(w, e2e.Obj{"uri": "file:///other"})
	other.Notify(rootsChanged, nil) // no server has these roots
	a.CallText("b_ask", e2e.Obj{})
	a.Notify(rootsChanged, nil)
	b.WaitReceived(rootsChanged, 1)
	b.WaitEvents("reply", "roots/list", 2)

	held := other.Begin("tools/call", e2e.Obj{"name": "b_hold"})
	b.WaitEvent("wait", "hold")
	w.Edit(func() { w.Gateway["roots"] = []any{e2e.Obj{"uri": "file:///new"}} })
	require.JSONEq(t, `{"roots":[{"uri":"file:///new"}]}`, string(b.WaitEvents("reply", "roots/list", 3).Msg),
		"a request after the notification belongs to no call in flight")
	b.Do(e2e.Do("release", e2e.Obj{"name": "hold"}))
	other.End(held)
	require.Equal(t, 2, b.Count(rootsChanged))
	require.Zero(t, never.Count(rootsChanged))
}
