//go:build e2e

package catalog

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// counting is a server that counts the requests of each of its processes.
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

// sleepy returns a world in which servers start at their first use and stop soon after.
func sleepy(t *testing.T) *e2e.World {
	w := e2e.NewWorld(t)
	w.Gateway["start"], w.Gateway["idle_timeout"] = "auto", "200ms"
	return w
}

// state returns the state of the world's only server, as the client reads it.
func state(c *e2e.Client) string {
	return e2e.Str([]byte(c.ReadText("goblin://servers")), "servers", 0, "state")
}

func sleeps(c *e2e.Client) {
	c.T.Helper()
	e2e.Eventually(c.T, "the server is idle", func() bool { return state(c) == "sleeping" })
}

func TestAServerRunsOnlyWhileSomebodyUsesIt(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2, "without a cached list it starts at once")
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
	require.Equal(t, 2, b.Starts(), "one start for all callers")
	held := c.Begin("tools/call", e2e.Obj{"name": "one_hold"})
	b.WaitEvent("wait", "go")
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // five times its idle_timeout
		require.NotEqual(t, "sleeping", state(c))
	}
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Equal(t, "held", e2e.Str(c.End(held).Result, "content", 0, "text"))
	sleeps(c)
	starts := b.Starts() // one more if it slept before the last call
	c.Close()
	c.Prog.Ends(e2e.Patience)

	c = w.Standalone() // with cached lists
	require.Len(t, c.Names("tools"), 2)
	require.Equal(t, "sleeping", state(c))
	require.Equal(t, starts, b.Starts())
	require.Equal(t, "text", c.ReadText(e2e.In("one", "x:1")))
	require.Equal(t, starts+1, b.Starts())
}

func TestWhatIsLeftOutIsKnownOfAServerThatSleeps(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting(), e2e.Obj{"tools": e2e.Obj{"deny": []string{"ho*"}}})
	c := w.Standalone()
	c.WaitListed("tools", "one_count", true)
	e2e.Eventually(t, "it is cached", func() bool { return len(catalogOf(w, "one")) == 1 })
	c.Close()
	c.Prog.Ends(e2e.Patience)

	c = w.Bridged()
	require.Equal(t, []string{"one_count"}, c.Names("tools"))
	require.Equal(t, "sleeping", state(c))
	require.Regexp(t, `(?m)^one/hold +one +filtered +excluded by "tools" of server "one"$`, w.Succeeds("tools", "list"))
	require.Equal(t, 1, b.Starts(), "it was not started for the list")
}

func TestAServerThatIsTurnedOnAgainListsWhatIsRemembered(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	c := w.Standalone()
	e2e.Eventually(t, "it is cached", func() bool { return len(catalogOf(w, "one")) == 1 })
	w.Succeeds("disable", "one")
	e2e.Eventually(t, "the daemon has disabled it", func() bool { return len(c.Names("tools")) == 0 })
	w.Succeeds("enable", "one")
	e2e.Eventually(t, "the daemon has enabled it", func() bool { return len(c.Names("tools")) == 2 })
	require.Equal(t, 1, b.Starts(), "only a use starts it")
	require.NotEmpty(t, c.CallText("one_count", nil))
	require.Equal(t, 2, b.Starts())
}

func TestASubscriptionKeepsAServerRunningAndIsNamed(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	c := w.Bridged()
	sleeps(c)
	c.Ok("resources/subscribe", e2e.Obj{"uri": e2e.In("one", "x:1")})
	require.Equal(t, 2, b.Starts())
	e2e.Eventually(t, "the reason why it runs is reported", func() bool {
		return strings.Contains(c.ReadText("goblin://servers"), `"keptRunningBy":"1 subscription"`)
	})
	require.Contains(t, w.Succeeds("status"), "used by 1 subscription")
	b.Updated("x:1")
	c.WaitUpdates(1)
	c.Ok("resources/unsubscribe", e2e.Obj{"uri": e2e.In("one", "x:1")})
	sleeps(c)
	require.NotContains(t, c.ReadText("goblin://servers"), "keptRunningBy")
}

func TestAStopInTheMiddleOfANoticeLosesNothing(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting(e2e.Obj{"on": e2e.Obj{"tools/call count": e2e.Actions(
		e2e.Do("raw", e2e.Obj{"text": `{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/tools/li`}),
		e2e.Do("hang"),
	)}}))
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2)
	sleeps(c)
	for n := range 2 {
		c.Ok("tools/call", e2e.Obj{"name": "one_count"})
		sleeps(c)
		require.Equal(t, n+2, b.Starts())
	}
	require.Len(t, c.Names("tools"), 2)
	require.Empty(t, c.NotesOf("notifications/tools/list_changed"))
}

func TestAServerThatChangedWhileItSleptIsListedAnewWhenItStarts(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", slow(e2e.Obj{"on": e2e.Obj{
		"initialize": e2e.Actions(e2e.Do("add", e2e.Obj{"kind": "tools", "entry": e2e.Tool("more"), "after": 1})),
	}}))
	c := w.Standalone()
	require.Equal(t, []string{"one_tell"}, c.Names("tools"))
	sleeps(c)
	require.True(t, c.Works(e2e.Obj{"name": "one_tell"}))
	c.WaitNote("notifications/tools/list_changed", nil)
	require.Equal(t, []string{"one_more", "one_tell"}, e2e.Sorted(c.Names("tools")))
	require.Equal(t, 2, b.Starts())
}

func TestAnEditReachesAServerThatSleeps(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	c := w.Standalone()
	sleeps(c)
	b.WaitGone()
	w.Edit(func() { b.Conf["env"] = e2e.Obj{"EDITED": "yes"} })
	b.WaitStarts(2) // another server, without cached lists
	sleeps(c)
	b.WaitGone()
	w.Edit(func() { b.Conf["timeout"] = "77s" })
	w.Edit(func() { b.Conf["tools"] = e2e.Obj{"deny": []string{"hold"}} })
	e2e.Eventually(t, "the edit counts", func() bool { return len(c.Names("tools")) == 1 })
	require.True(t, c.Works(e2e.Obj{"name": "one_count"}))
}

func TestWhenAServerStartsIsChosen(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	w.Gateway["idle_timeout"] = "1h"
	eager := w.Backend("eager", counting(), e2e.Obj{"start": "eager", "idle_timeout": "off"})
	lazy := w.Backend("lazy", counting(), e2e.Obj{"start": "lazy"})
	auto := w.Backend("auto", counting())
	endless := w.Backend("endless", counting(), e2e.Obj{"start": "lazy", "idle_timeout": "off"})
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 8)
	for _, b := range []*e2e.Backend{lazy, endless} {
		b.WaitStarts(1)
		b.WaitGone() // it has listed and was not used
	}
	require.Len(t, auto.Live(), 1)
	c.Close()
	c.Prog.Ends(e2e.Patience)
	c = w.Standalone()
	require.Len(t, c.Names("tools"), 8)
	eager.WaitStarts(2)
	require.True(t, c.Works(e2e.Obj{"name": "eager_count"}))
	require.Equal(t, 1, auto.Starts())
	require.True(t, c.Works(e2e.Obj{"name": "auto_count"}))
	require.True(t, c.Works(e2e.Obj{"name": "lazy_count"}))
	require.Equal(t, 2, lazy.Starts())
	c.Settle()
	require.Len(t, lazy.Live(), 1, "it is in use")
}

func TestRemoteServersConnectAtTheirFirstUseAndStay(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Remote("one", "/mcp", counting())
	listedOnce(t, w)
	before := b.Count("initialize")
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2)
	require.Equal(t, "sleeping", state(c))
	require.Equal(t, before, b.Count("initialize"))
	require.True(t, c.Works(e2e.Obj{"name": "one_count"}))
	require.Equal(t, before+1, b.Count("initialize"))
}

func TestASessionOfItsOwnWakesAServerAndKeepsIt(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("own", counting(), e2e.Obj{"isolation": "session"})
	listedOnce(t, w)
	c := w.Bridged()
	require.Equal(t, "sleeping", state(c))
	first, _ := c.Counts()
	again, n := c.Counts()
	require.Equal(t, first, again)
	require.Equal(t, 2, n)
	require.Equal(t, 2, b.Starts())
	require.NotEqual(t, "sleeping", state(c))
}

// listedOnce makes a daemon list the tools of the only server.
func listedOnce(t *testing.T, w *e2e.World) {
	t.Helper()
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2)
	c.Close()
	c.Prog.Ends(e2e.Patience)
}

func TestCommandsWorkWithServersThatSleep(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	c := w.Bridged()
	sleeps(c)
	require.Contains(t, w.Succeeds("status"), "idle")
	require.Contains(t, w.Succeeds("list", "servers", "--json"), `"sleeping"`)
	require.Contains(t, w.Succeeds("list", "tools"), "one_count")
	require.Equal(t, 1, b.Starts(), "none of these requests needs the server")
	w.Succeeds("call", "one_count")
	require.Equal(t, 2, b.Starts())
	sleeps(c)
	w.Succeeds("restart", "one")
	b.WaitStarts(3)
}

func TestMetricsTellWhoSleeps(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	b := w.Backend("one", counting())
	s := w.Serve()
	c := s.Client(false)
	sleeps(c)
	require.Equal(t, "1", s.Metric(`mcp_server_sleeping{server_id="one"}`))
	held := c.Begin("tools/call", e2e.Obj{"name": "one_hold"})
	b.WaitEvent("wait", "go")
	require.Equal(t, "0", s.Metric(`mcp_server_sleeping{server_id="one"}`))
	b.Do(e2e.Do("release", e2e.Obj{"name": "go"}))
	require.Nil(t, c.End(held).Error)
}

func TestAServerThatCannotStartAgainSaysWhy(t *testing.T) {
	t.Parallel()
	w := sleepy(t)
	w.Backend("one", counting(e2e.Obj{"on": e2e.Obj{
		"initialize": e2e.Actions(e2e.Do("crash", e2e.Obj{"text": "the disk is gone", "code": 3, "after": 1})),
	}}))
	c := w.Standalone()
	require.Len(t, c.Names("tools"), 2)
	sleeps(c)
	failed := c.Fails(e2e.Obj{"name": "one_count"})
	require.Contains(t, failed.Message, "the disk is gone")
	require.Len(t, c.Names("tools"), 2)
}
