//go:build e2e

package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// counting is a server that counts what it is asked in each of its processes.
func counting(more ...e2e.Obj) e2e.Obj {
	return e2e.Merge(e2e.Obj{
		"tools":        []e2e.Obj{e2e.Tool("count"), e2e.Tool("hold")},
		"resources":    []e2e.Obj{e2e.Resource("x:1")},
		"reads":        e2e.Obj{"x:1": "text"},
		"capabilities": e2e.Obj{"tools": e2e.Obj{"listChanged": true}, "resources": e2e.Obj{"subscribe": true}},
		"on": e2e.Obj{
			"tools/call count": e2e.Actions(e2e.Do("count")),
			"tools/call hold":  e2e.Actions(e2e.Do("wait", e2e.Obj{"name": "go"}), e2e.Do("text", e2e.Obj{"text": "held"})),
		},
	}, more)
}

// sleepy is a world in which servers start at their first use and stop soon after it.
func sleepy(t *testing.T) *e2e.World {
	w := e2e.NewWorld(t)
	w.Gateway["start"], w.Gateway["idle_timeout"] = "auto", "200ms"
	return w
}

// state is that of the world's only server, as the client reads it.
func state(c *e2e.Client) string {
	return e2e.Str([]byte(c.ReadText("goblin://servers")), "servers", 0, "state")
}

func sleeps(c *e2e.Client) {
	c.T.Helper()
	e2e.Eventually(c.T, "the server sleeps", func() bool { return state(c) == "sleeping" })
}

func TestAServerRunsOnlyWhileSomebodyUsesIt(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2, "nothing is remembered, so it starts at once")
	sleeps(c)
	b.WaitGone()
	require.Len(t, c.Names("tools"), 2)
	require.Equal(t, 1, b.Starts())

	var calls []string
	for range 8 {
		calls = append(calls, c.Begin("tools/call", e2e.Obj{"name": "one_count"}))
	}
	for _, id := range calls {
		require.Nil(t, c.End(id).Error)
	}
	require.Equal(t, 2, b.Starts(), "one start, however many callers")
	held := c.Begin("tools/call", e2e.Obj{"name": "one_hold"})
	b.WaitEvent("wait", "go")
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // five times its idle_timeout
		require.NotEqual(t, "sleeping", state(c))
	}
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "held", e2e.Str(c.End(held).Result, "content", 0, "text"))
	sleeps(c)
	c.Close()
	c.Prog.Ends(e2e.Patience)

	c = w.Standalone() // which remembers it
	require.Len(t, c.Names("tools"), 2)
	require.Equal(t, "sleeping", state(c))
	require.Equal(t, 2, b.Starts())
	require.Equal(t, "text", c.ReadText(e2e.In("one", "x:1")))
	require.Equal(t, 3, b.Starts())
}

func TestWhatIsLeftOutIsKnownOfAServerThatSleeps(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting(), e2e.Obj{"tools": e2e.Obj{"deny": []string{"ho*"}}})
	c := w.Standalone()
	c.WaitListed("tools", "one_count", true)
	e2e.Eventually(t, "it is remembered", func() bool { return len(catalogOf(w, "one")) == 1 })
	c.Close()
	c.Prog.Ends(e2e.Patience)

	c = w.Bridged()
	require.Equal(t, []string{"one_count"}, c.Names("tools"))
	require.Equal(t, "sleeping", state(c))
	require.Regexp(t, `(?m)^one/hold +one +filtered +left out by "tools" of server "one"$`, w.Succeeds("tools", "list"))
	require.Equal(t, 1, b.Starts(), "it was not started to tell")
}

func TestAServerThatIsTurnedOnAgainListsWhatIsRemembered(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	c := w.Standalone()
	e2e.Eventually(t, "it is remembered", func() bool { return len(catalogOf(w, "one")) == 1 })
	w.Succeeds("disable", "one")
	e2e.Eventually(t, "the daemon has turned it off", func() bool { return len(c.Names("tools")) == 0 })
	w.Succeeds("enable", "one")
	e2e.Eventually(t, "the daemon has turned it on", func() bool { return len(c.Names("tools")) == 2 })
	require.Equal(t, 1, b.Starts(), "only a use starts it")
	require.NotEmpty(t, c.CallText("one_count", nil))
	require.Equal(t, 2, b.Starts())
}
