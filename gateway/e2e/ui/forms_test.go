//go:build e2e

package ui

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// demo opens a terminal with the demo.
func demo(w *e2e.World, width, height int) *e2e.Pane {
	p := w.Pane(width, height)
	p.Goblin("")
	p.Shows("demo", "3 up", "clock://now")
	return p
}

func TestTheScreenExpandsATemplateAndCallsATool(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 130, 45)
	p.Shows("library://search{?q,limit}", "clock://zones/{zone}")
	p.Types("tg") // the cursor follows its item, and others came before it
	p.Until("the first template", func(screen string) bool { return regexp.MustCompile(`(?m)^│> .*/\{zone\}`).MatchString(screen) })
	p.Keys("Enter")
	p.Shows("Expand", "zone")
	p.Types("Europe/Berlin")
	p.Shows("clock://zones/Europe%2FBerlin") // while it is typed
	p.Keys("C-s")
	p.Shows(`"zone": "Europe/Berlin"`)
	p.Keys("Escape", "Escape")

	p.Types("2/search_books")
	p.Keys("Enter")
	p.Shows("Tools 1/")
	p.Types("c")
	p.Shows("query *")
	p.Keys("C-s")
	p.Shows("! required")
	p.Types("cosy mystery")
	p.Shows("cosy mystery")
	p.Keys("C-s")
	p.Shows("library://books/")
}

func TestQuitAsksWhileAClientIsConnected(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	p := w.Pane(100, 30)
	p.Goblin("")
	p.Resources("logs/app.log")
	c := w.Bridged()
	p.Shows("clients 1")
	p.Types("q")
	p.Shows("Quit?", "1 client")
	p.Types("n")
	p.Hides("Quit?")
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	c.Close()
	c.Prog.Ends(e2e.Patience)
	p.Shows("clients 0")
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

func TestScreensShowTheDaemonThatAnEditorStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	c := w.Bridged()
	daemon := w.Status()
	require.Zero(t, daemon.Count("screen"))

	one, two := w.Pane(120, 35), w.Pane(80, 24)
	one.Goblin("")
	two.Goblin("--theme none")
	for _, p := range []*e2e.Pane{one, two} {
		p.Resources("logs/app.log", "clients 1", "UIs 2")
	}
	one.Until("35 lines", func(screen string) bool { return len(strings.Split(screen, "\n")) == 35 })
	two.Until("24 lines", func(screen string) bool { return len(strings.Split(screen, "\n")) == 24 })
	now := w.Status()
	require.Equal(t, []int{daemon.PID, 2, 1}, []int{now.PID, now.Count("screen"), now.Count("socket")})
	shown := w.Succeeds("status")
	require.Regexp(t, `(?s)\nUI +SIZE +SINCE\n.*tmux\S* +120x35 +\d+ s ago`, shown)
	require.Regexp(t, `tmux\S* +80x24 +\d+ s ago`, shown)
	require.Equal(t, 1, b.Starts(), "nothing is started twice")

	// Each UI has its own filter, and quitting one doesn't affect the other.
	one.Types("/nothing-like-this")
	one.Hides("logs/app.log")
	two.Shows("logs/app.log")
	one.Keys("Escape") // one by one: two in one read, with more, are another key
	one.Shows("logs/app.log")
	one.Keys("Escape")
	one.Hides("fuzzy")
	one.Types("q")
	one.Restored(e2e.ExitOK)
	two.Hides("UIs 2")
	two.Types("2")
	two.Shows("shop_stat")
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, daemon.PID, w.Status().PID)
	require.Equal(t, 1, b.Starts())

	// The client's traffic is visible.
	two.Types("5")
	two.Keys("]")
	two.Shows("tools/call", "e2e")
}

func TestTUIServesItsClientBesideTheScreen(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	p := w.Pane(100, 30)
	for _, name := range []string{"in", "out"} {
		require.NoError(t, exec.Command("mkfifo", filepath.Join(w.Dir, name)).Run())
	}
	p.Goblin("--tui <in >out 2>errs")
	c := through(w, "in", "out")
	c.Init()
	p.Resources("logs/app.log", "clients 1")
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	p.Types("2")
	p.Shows("shop_stat")
	c.Close()
	p.Shows("clients 0") // the UI stays open
	p.Resources("logs/app.log")
	p.Types("q")
	p.Restored(e2e.ExitOK)
	require.True(t, c.Holds(e2e.Patience, func() bool { return c.Ended }))
	require.Empty(t, c.Stray, "stdout carries MCP only")
	errs, err := os.ReadFile(filepath.Join(w.Dir, "errs"))
	require.NoError(t, err)
	require.Empty(t, strings.ReplaceAll(string(errs), "goblin: stopping the servers …\n", ""))
	b.WaitGone()
}

// through is a client on two named pipes.
func through(w *e2e.World, in, out string) *e2e.Client {
	w.T.Helper()
	c := e2e.NewClient(w.T)
	to, err := os.OpenFile(filepath.Join(w.Dir, in), os.O_WRONLY, 0)
	require.NoError(w.T, err)
	from, err := os.Open(filepath.Join(w.Dir, out))
	require.NoError(w.T, err)
	c.Write = func(frame []byte) { _, _ = to.Write(append(frame, '\n')) }
	c.Close = func() { _ = to.Close() }
	go func() {
		defer from.Close()
		c.ReadLines(from)
	}()
	return c
}
