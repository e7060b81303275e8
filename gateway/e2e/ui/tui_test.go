//go:build e2e

package ui

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestTUIInTheBackgroundServesAndWaitsForItsTerminal(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	p := w.Pane(100, 30)
	for _, name := range []string{"in", "out"} {
		require.NoError(t, exec.Command("mkfifo", filepath.Join(w.Dir, name)).Run())
	}
	p.Line(`set -m; "$G" --tui <in >out 2>errs &`)
	c := through(w, "in", "out")
	c.Init()
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	warning := func() string {
		errs, err := os.ReadFile(filepath.Join(w.Dir, "errs"))
		require.NoError(t, err)
		return string(errs)
	}
	const waits = "goblin: the UI waits until goblin is in the foreground; the client is served meanwhile\n"
	e2e.Eventually(t, "a warning", func() bool { return warning() == waits })
	p.Line("echo us''able") // the shell keeps its terminal
	p.Shows("\nusable")

	p.Line("fg")
	p.Resources("logs/app.log", "clients 1")
	require.Equal(t, "1", p.Ask("alternate_on"))
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	p.Resources("logs/app.log")
	c.Close()
	p.Shows("clients 0")
	p.Types("q")
	p.Hides("logs/app.log")
	b.WaitGone()
	p.Line("echo us''able again")
	p.Shows("\nusable again")
	require.Contains(t, []string{waits, waits + "goblin: stopping the servers …\n"}, warning(), "reported once")
}

func TestTUIBesideADaemonIsABridgeAndARelay(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	first := w.Bridged()
	daemon := w.Status().PID
	p := w.Pane(100, 30)
	p.Line("sleep 1000")
	e2e.Eventually(t, "a terminal without other readers", func() bool { return p.Ask("pane_current_command") == "sleep" })
	c := w.Pipe("--tui-tty", p.Ask("pane_tty"))
	c.Init()
	p.Resources("logs/app.log", "clients 2")
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, daemon, w.Status().PID)

	// The next daemon serves both.
	w.Succeeds("stop")
	for _, c := range []*e2e.Client{c, first} {
		c.CallUntilItWorks("shop_stat")
		require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	}
	w.WaitUIs(1)
	p.Resources("logs/app.log", "clients 2")
	require.NotEqual(t, daemon, w.Status().PID)
	require.Equal(t, 2, b.Starts())
	c.Close()
	p.Shows("clients 1")
	p.Types("q")
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Equal(t, "shop:stat:{}", first.CallText("shop_stat", e2e.Obj{}))
}

func TestTheScreenAnswersWhatNoClientCanBeAsked(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.AskingServer("elicitation/create", e2e.Obj{
		"message": "Which size?", "requestedSchema": e2e.Obj{"type": "object", "properties": e2e.Obj{"size": e2e.Obj{"type": "string"}}, "required": []string{"size"}},
	}))
	c := w.Bridged() // declares no capabilities
	one, two := w.Pane(120, 35), w.Pane(120, 35)
	for _, p := range []*e2e.Pane{one, two} {
		p.Goblin("")
		p.Shows("goblin", "clients 1")
	}
	w.WaitUIs(2)
	call := c.Begin("tools/call", e2e.Obj{"name": "shop_ask"})
	two.Shows("Which size?")
	one.Shows("Which size?", `From server "shop", during a call of "shop_ask" by client "e2e", which can't answer it.`)
	one.Hides("pause typing to use keys") // until then they apply to what it covers
	one.Types("large")
	one.Keys("C-s")
	require.Contains(t, e2e.Str(c.End(call).Result, "content", 0, "text"), `"size":"large"`)
	two.Hides("Which size?")

	// A request outside of any call.
	go b.Do(e2e.Do("request", e2e.Obj{"method": "elicitation/create", "params": e2e.Form}))
	two.Shows("who?", `From server "shop", outside of any call, so no client can answer it.`)
	one.Shows("who?")
	two.PressUntil("Escape", "who?")
	require.Equal(t, "cancel", e2e.Str(b.WaitEvents("reply", "elicitation/create", 2).Msg, "action"))
	one.Hides("who?")
	for _, p := range []*e2e.Pane{one, two} {
		p.Types("q")
		p.Restored(e2e.ExitOK)
	}
}
