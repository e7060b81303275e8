package screens

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

// demo opens a terminal with the demo on it.
func demo(w *e2e.World, width, height int) *e2e.Pane {
	p := w.Pane(width, height)
	p.Goblin("")
	p.Shows("demo", "3 up", "clock://now")
	return p
}

func TestTheScreenOfTheDemoFindsResources(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 100, 30)
	p.Shows("library://")
	p.Types("/server:clock")
	p.Hides("library://")
	p.Shows("clock://moon", "clock://zones")
	p.Keys("Enter", "Escape")
	p.Types("/mime:svg")
	p.Hides("clock://moon")
	p.Shows("image/svg+xml", "bookplates")
	p.Keys("Enter", "Escape")
	p.Shows("Resources 2012 ")
	p.Types("/mime:json now")
	screen := p.Until("one resource", func(screen string) bool { return strings.Contains(screen, "Resources 1/") })
	require.Contains(t, screen, "clock://now.json")
}

func TestTheScreenWatchesAResource(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 100, 30)
	p.Types("/now.json")
	p.Keys("Enter")
	p.Shows("Resources 1/")
	p.Types("s")
	p.Shows("●  application", "Δ") // on, and then it ticks
	p.Types("s")
	p.Hides("●  application")
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

func TestTheScreenFollowsTheSizeOfItsTerminal(t *testing.T) {
	t.Parallel()
	p := demo(e2e.DemoWorld(t), 80, 24)
	for _, size := range [][2]int{{120, 40}, {250, 60}, {30, 8}, {60, 16}, {80, 24}} {
		p.Resize(size[0], size[1])
		if size[0] < 40 {
			p.Shows(fmt.Sprintf("goblin needs 40x10, has %dx%d", size[0], size[1]))
			continue
		}
		p.Until("a full screen", func(screen string) bool {
			lines := strings.Split(strings.TrimRight(screen, "\n"), "\n")
			return len(lines) == size[1] && strings.Contains(lines[0], "goblin") &&
				strings.Contains(lines[size[1]-1], "enter open") && strings.Contains(screen, "clock://")
		})
	}
}

func TestQuitGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"a good terminal": "", "another look": "--theme light --ascii",
		"a dumb one": "; echo ne''xt 1; read x; TERM=dumb $G; echo ne''xt 2; read x; env -u TERM $G", // the first of three
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			b := w.Backend("shop", e2e.Filesystem())
			p := w.Pane(100, 30)
			p.Goblin(args)
			for i := range strings.Count(args, "$G") + 1 {
				if i > 0 {
					p.Shows(fmt.Sprint("next ", i))
					p.Keys("Enter")
				}
				p.Shows("logs/app.log")
				if strings.Contains(args, "ascii") {
					require.NotContains(t, p.Screen(), "─")
				}
				p.Types("q")
				p.Hides("logs/app.log")
			}
			p.Restored(e2e.ExitOK)
			b.WaitGone()
		})
	}
}

func TestQuitAsksWhileAClientIsConnected(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	p := w.Pane(100, 30)
	p.Goblin("")
	p.Shows("logs/app.log")
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

func TestTheShellGoesOnWhereItWasWhenAScreenEnds(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	host, guest := w.Pane(80, 24), w.Pane(80, 24)
	for _, p := range []*e2e.Pane{host, guest} { // its own screen, and one through a relay
		p.Line("seq 1 15")
		p.Shows("\n15\n")
		p.Goblin("")
		p.Shows("logs/app.log")
	}
	for _, p := range []*e2e.Pane{guest, host} {
		p.Types("q")
		require.Regexp(t, `\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n(.|\n)*\nended with 0\n`, p.Restored(e2e.ExitOK))
	}
}

func TestSIGHUPMakesAHostWithAScreenReadItsConfig(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Log = e2e.Obj{"level": "debug", "file": "log"}
	b := w.Backend("shop", e2e.Filesystem())
	p := w.Pane(120, 35)
	p.Goblin("")
	p.Shows("logs/app.log")
	host := w.Status().PID
	w.Edit(func() { w.Gateway["page_size"] = 7 })
	p.Shows("edited settings count from the next start")
	log := func() int {
		text, err := os.ReadFile(filepath.Join(w.Dir, "log"))
		require.NoError(t, err)
		return strings.Count(string(text), "Config reloaded")
	}
	before := log()
	process, err := os.FindProcess(host)
	require.NoError(t, err)
	require.NoError(t, process.Signal(syscall.SIGHUP))
	e2e.Eventually(t, "the config to be read", func() bool { return log() > before })
	require.Equal(t, host, w.Status().PID)
	require.Equal(t, 1, b.Starts())
	p.Types("q")
	p.Restored(e2e.ExitOK)
}

func TestScreensShowTheHostThatAnEditorStarted(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	c := w.Bridged()
	host := w.Status()
	require.Zero(t, host.Count("screen"))

	one, two := w.Pane(120, 35), w.Pane(80, 24)
	one.Goblin("")
	two.Goblin("--theme none")
	for _, p := range []*e2e.Pane{one, two} {
		p.Shows("logs/app.log", "clients 1", "screens 2")
	}
	require.Len(t, strings.Split(one.Screen(), "\n"), 35)
	require.Len(t, strings.Split(two.Screen(), "\n"), 24)
	now := w.Status()
	require.Equal(t, []int{host.PID, 2, 1}, []int{now.PID, now.Count("screen"), now.Count("socket")})
	shown := w.Succeeds("status")
	require.Regexp(t, `(?s)\nSCREEN +SIZE +SINCE\n.*tmux\S* +120x35 +\d+ s ago`, shown)
	require.Regexp(t, `tmux\S* +80x24 +\d+ s ago`, shown)
	require.Equal(t, 1, b.Starts(), "nothing is started twice")

	// Each has its own filter, and quitting one disturbs nobody.
	one.Types("/nothing-like-this")
	one.Hides("logs/app.log")
	two.Shows("logs/app.log")
	one.Keys("Escape") // one by one: two in one read, with more, are another key
	one.Shows("logs/app.log")
	one.Keys("Escape")
	one.Hides("fuzzy")
	one.Types("q")
	one.Restored(e2e.ExitOK)
	two.Hides("screens 2")
	two.Types("2")
	two.Shows("shop_stat")
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, host.PID, w.Status().PID)
	require.Equal(t, 1, b.Starts())

	// The client's traffic is there to see.
	two.Types("5")
	two.Keys("]")
	two.Shows("tools/call", "e2e")
}

func TestAScreenSaysThatItsHostWasStopped(t *testing.T) {
	t.Parallel()
	for name, detached := range map[string]bool{"its own": false, "another's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("shop", e2e.Filesystem())
			p := w.Pane(100, 30)
			if detached {
				c := w.Bridged()
				p.Goblin("")
				p.Shows("clients 1")
				c.Close()
				c.Prog.Ends(e2e.Patience)
				p.Shows("clients 0")
			} else {
				p.Goblin("")
				p.Shows("logs/app.log")
			}
			w.Succeeds("stop")
			require.Contains(t, p.Restored(e2e.ExitOK), "goblin: the host was stopped")
		})
	}
}

func TestARelayThatDiesCostsItsScreenOnly(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Filesystem())
	c := w.Bridged()
	host := w.Status().PID

	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		p := w.Pane(100, 30)
		p.Goblin("")
		p.Shows("logs/app.log")
		p.Signal(sig)
		w.WaitScreens(0)
		if sig != syscall.SIGKILL { // of which nobody hears
			p.Restored(e2e.ExitOK)
		}
	}
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, host, w.Status().PID)
}

func TestASignalEndsAHostAndGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	p := w.Pane(100, 30)
	p.Goblin("")
	p.Shows("logs/app.log")
	p.Signal(syscall.SIGTERM)
	p.Restored(e2e.ExitOK)
	b.WaitGone()
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
	p.Shows("logs/app.log", "clients 1")
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	p.Types("2")
	p.Shows("shop_stat")
	c.Close()
	p.Shows("clients 0") // the screen stays
	p.Types("4")
	p.Shows("logs/app.log")
	p.Types("q")
	p.Restored(e2e.ExitOK)
	require.True(t, c.Holds(e2e.Patience, func() bool { return c.Ended }))
	require.Empty(t, c.Stray, "stdout carries MCP only")
	errs, err := os.ReadFile(filepath.Join(w.Dir, "errs"))
	require.NoError(t, err)
	require.Empty(t, strings.ReplaceAll(string(errs), "goblin: stopping the servers …\n", ""))
	b.WaitGone()
}

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
	const waits = "goblin: the screen waits until goblin is in front of its terminal; the client is served meanwhile\n"
	e2e.Eventually(t, "a warning", func() bool { return warning() == waits })
	p.Line("echo us''able") // the shell keeps its terminal
	p.Shows("\nusable")

	p.Line("fg")
	p.Shows("logs/app.log", "clients 1")
	require.Equal(t, "1", p.Ask("alternate_on"))
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	p.Types("4")
	p.Shows("logs/app.log")
	c.Close()
	p.Shows("clients 0")
	p.Types("q")
	p.Hides("logs/app.log")
	b.WaitGone()
	p.Line("echo us''able again")
	p.Shows("\nusable again")
	require.Contains(t, []string{waits, waits + "goblin: stopping the servers …\n"}, warning(), "told once")
}

func TestADumpGivesTheTerminalBackFirst(t *testing.T) {
	t.Parallel()
	for name, detached := range map[string]bool{"its own host": false, "another's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := e2e.NewWorld(t)
			w.Backend("shop", e2e.Filesystem())
			if detached {
				w.Bridged()
			}
			p := w.Pane(100, 30)
			p.Goblin("2>errs")
			p.Shows("logs/app.log")
			p.Signal(syscall.SIGQUIT)
			p.Restored(e2e.ExitUsage) // the number that Go uses
			errs, err := os.ReadFile(filepath.Join(w.Dir, "errs"))
			require.NoError(t, err)
			require.Contains(t, string(errs), "SIGQUIT: quit")
			require.Contains(t, string(errs), "goroutine 1 ")
		})
	}
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

func TestTUIBesideAHostIsABridgeAndARelay(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	b := w.Backend("shop", e2e.Filesystem())
	first := w.Bridged()
	host := w.Status().PID
	p := w.Pane(100, 30)
	p.Line("sleep 1000")
	e2e.Eventually(t, "a terminal that nobody else reads", func() bool { return p.Ask("pane_current_command") == "sleep" })
	c := w.Pipe("--tui-tty", p.Ask("pane_tty"))
	c.Init()
	p.Shows("logs/app.log", "clients 2")
	require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	require.Equal(t, host, w.Status().PID)

	// The next host serves both.
	w.Succeeds("stop")
	for _, c := range []*e2e.Client{c, first} {
		c.GoesOn("shop_stat")
		require.Equal(t, "shop:stat:{}", c.CallText("shop_stat", e2e.Obj{}))
	}
	w.WaitScreens(1)
	p.Shows("logs/app.log", "clients 2")
	require.NotEqual(t, host, w.Status().PID)
	require.Equal(t, 2, b.Starts())
	c.Close()
	p.Shows("clients 1")
	p.Types("q")
	require.Zero(t, c.Prog.Ends(e2e.Patience))
	require.Equal(t, "shop:stat:{}", first.CallText("shop_stat", e2e.Obj{}))
}
