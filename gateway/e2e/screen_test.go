package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// hostStatus is what goblin status --json says.
type hostStatus struct {
	PID      int
	Log      string
	Notice   string
	Sessions []struct{ Transport, Client string }
}

func (w *world) status() (s hostStatus) {
	w.t.Helper()
	require.NoError(w.t, json.Unmarshal([]byte(w.succeeds("status", "--json")), &s))
	return s
}

func (s hostStatus) count(transport string) (n int) {
	for _, c := range s.Sessions {
		if c.Transport == transport {
			n++
		}
	}
	return n
}

func (w *world) waitScreens(n int) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("%d screens", n), func() bool { return w.status().count("screen") == n })
}

// demo opens a terminal with the demo on it.
func (w *world) demo(width, height int) *pane {
	p := w.pane(width, height)
	p.goblin("")
	p.shows("demo", "3 up", "clock://now")
	return p
}

func TestTheScreenOfTheDemoFindsResources(t *testing.T) {
	t.Parallel()
	p := demoWorld(t).demo(100, 30)
	p.shows("library://")
	p.types("/server:clock")
	p.hides("library://")
	p.shows("clock://moon", "clock://zones")
	p.keys("Enter", "Escape")
	p.types("/mime:svg")
	p.hides("clock://moon")
	p.shows("image/svg+xml", "bookplates")
	p.keys("Enter", "Escape")
	p.shows("Resources 2012 ")
	p.types("/mime:json now")
	screen := p.until("one resource", func(screen string) bool { return strings.Contains(screen, "Resources 1/") })
	require.Contains(t, screen, "clock://now.json")
}

func TestTheScreenWatchesAResource(t *testing.T) {
	t.Parallel()
	p := demoWorld(t).demo(100, 30)
	p.types("/now.json")
	p.keys("Enter")
	p.shows("Resources 1/")
	p.types("s")
	p.shows("●  application", "Δ") // on, and then it ticks
	p.types("s")
	p.hides("●  application")
}

func TestTheScreenExpandsATemplateAndCallsATool(t *testing.T) {
	t.Parallel()
	p := demoWorld(t).demo(130, 45)
	p.shows("library://search{?q,limit}", "clock://zones/{zone}")
	p.types("tg") // the cursor follows its item, and others came before it
	p.until("the first template", func(screen string) bool { return regexp.MustCompile(`(?m)^│> .*/\{zone\}`).MatchString(screen) })
	p.keys("Enter")
	p.shows("Expand", "zone")
	p.types("Europe/Berlin")
	p.shows("clock://zones/Europe%2FBerlin") // while it is typed
	p.keys("C-s")
	p.shows(`"zone": "Europe/Berlin"`)
	p.keys("Escape", "Escape")

	p.types("2/search_books")
	p.keys("Enter")
	p.shows("Tools 1/")
	p.types("c")
	p.shows("query *")
	p.keys("C-s")
	p.shows("! required")
	p.types("cosy mystery")
	p.shows("cosy mystery")
	p.keys("C-s")
	p.shows("library://books/")
}

func TestTheScreenFollowsTheSizeOfItsTerminal(t *testing.T) {
	t.Parallel()
	p := demoWorld(t).demo(80, 24)
	for _, size := range [][2]int{{120, 40}, {250, 60}, {30, 8}, {60, 16}, {80, 24}} {
		p.resize(size[0], size[1])
		if size[0] < 40 {
			p.shows(fmt.Sprintf("goblin needs 40x10, has %dx%d", size[0], size[1]))
			continue
		}
		p.until("a full screen", func(screen string) bool {
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
			w := newWorld(t)
			b := w.backend("shop", filesystem())
			p := w.pane(100, 30)
			p.goblin(args)
			for i := range strings.Count(args, "$G") + 1 {
				if i > 0 {
					p.shows(fmt.Sprint("next ", i))
					p.keys("Enter")
				}
				p.shows("logs/app.log")
				if strings.Contains(args, "ascii") {
					require.NotContains(t, p.screen(), "─")
				}
				p.types("q")
				p.hides("logs/app.log")
			}
			p.restored(exitOK)
			b.waitGone()
		})
	}
}

func TestQuitAsksWhileAClientIsConnected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("shop", filesystem())
	p := w.pane(100, 30)
	p.goblin("")
	p.shows("logs/app.log")
	c := w.bridged()
	p.shows("clients 1")
	p.types("q")
	p.shows("Quit?", "1 client")
	p.types("n")
	p.hides("Quit?")
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	c.close()
	c.prog.ends(patience)
	p.shows("clients 0")
	p.types("q")
	p.restored(exitOK)
}

func TestTheShellGoesOnWhereItWasWhenAScreenEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("shop", filesystem())
	host, guest := w.pane(80, 24), w.pane(80, 24)
	for _, p := range []*pane{host, guest} { // its own screen, and one through a relay
		p.line("seq 1 15")
		p.shows("\n15\n")
		p.goblin("")
		p.shows("logs/app.log")
	}
	for _, p := range []*pane{guest, host} {
		p.types("q")
		require.Regexp(t, `\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n(.|\n)*\nended with 0\n`, p.restored(exitOK))
	}
}

func TestSIGHUPMakesAHostWithAScreenReadItsConfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.log = obj{"level": "debug", "file": "log"}
	b := w.backend("shop", filesystem())
	p := w.pane(120, 35)
	p.goblin("")
	p.shows("logs/app.log")
	host := w.status().PID
	w.edit(func() { w.gateway["page_size"] = 7 })
	p.shows("edited settings count from the next start")
	log := func() int {
		text, err := os.ReadFile(filepath.Join(w.dir, "log"))
		require.NoError(t, err)
		return strings.Count(string(text), "Config reloaded")
	}
	before := log()
	process, err := os.FindProcess(host)
	require.NoError(t, err)
	require.NoError(t, process.Signal(syscall.SIGHUP))
	eventually(t, "the config to be read", func() bool { return log() > before })
	require.Equal(t, host, w.status().PID)
	require.Equal(t, 1, b.starts())
	p.types("q")
	p.restored(exitOK)
}

func TestScreensShowTheHostThatAnEditorStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	c := w.bridged()
	host := w.status()
	require.Zero(t, host.count("screen"))

	one, two := w.pane(120, 35), w.pane(80, 24)
	one.goblin("")
	two.goblin("--theme none")
	for _, p := range []*pane{one, two} {
		p.shows("logs/app.log", "clients 1", "screens 2")
	}
	require.Len(t, strings.Split(one.screen(), "\n"), 35)
	require.Len(t, strings.Split(two.screen(), "\n"), 24)
	now := w.status()
	require.Equal(t, []int{host.PID, 2, 1}, []int{now.PID, now.count("screen"), now.count("socket")})
	shown := w.succeeds("status")
	require.Regexp(t, `(?s)\nSCREEN +SIZE +SINCE\n.*tmux\S* +120x35 +\d+ s ago`, shown)
	require.Regexp(t, `tmux\S* +80x24 +\d+ s ago`, shown)
	require.Equal(t, 1, b.starts(), "nothing is started twice")

	// Each has its own filter, and quitting one disturbs nobody.
	one.types("/nothing-like-this")
	one.hides("logs/app.log")
	two.shows("logs/app.log")
	one.keys("Escape") // one by one: two in one read, with more, are another key
	one.shows("logs/app.log")
	one.keys("Escape")
	one.hides("fuzzy")
	one.types("q")
	one.restored(exitOK)
	two.hides("screens 2")
	two.types("2")
	two.shows("shop_stat")
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	require.Equal(t, host.PID, w.status().PID)
	require.Equal(t, 1, b.starts())

	// The client's traffic is there to see.
	two.types("5")
	two.keys("]")
	two.shows("tools/call", "e2e")
}

func TestAScreenSaysThatItsHostWasStopped(t *testing.T) {
	t.Parallel()
	for name, detached := range map[string]bool{"its own": false, "another's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.backend("shop", filesystem())
			p := w.pane(100, 30)
			if detached {
				c := w.bridged()
				p.goblin("")
				p.shows("clients 1")
				c.close()
				c.prog.ends(patience)
				p.shows("clients 0")
			} else {
				p.goblin("")
				p.shows("logs/app.log")
			}
			w.succeeds("stop")
			require.Contains(t, p.restored(exitOK), "goblin: the host was stopped")
		})
	}
}

func TestARelayThatDiesCostsItsScreenOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.backend("shop", filesystem())
	c := w.bridged()
	host := w.status().PID

	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		p := w.pane(100, 30)
		p.goblin("")
		p.shows("logs/app.log")
		p.signal(sig)
		w.waitScreens(0)
		if sig != syscall.SIGKILL { // of which nobody hears
			p.restored(exitOK)
		}
	}
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	require.Equal(t, host, w.status().PID)
}

func TestASignalEndsAHostAndGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	p := w.pane(100, 30)
	p.goblin("")
	p.shows("logs/app.log")
	p.signal(syscall.SIGTERM)
	p.restored(exitOK)
	b.waitGone()
}

func TestTUIServesItsClientBesideTheScreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	p := w.pane(100, 30)
	for _, name := range []string{"in", "out"} {
		require.NoError(t, exec.Command("mkfifo", filepath.Join(w.dir, name)).Run())
	}
	p.goblin("--tui <in >out 2>errs")
	c := w.through("in", "out")
	c.init()
	p.shows("logs/app.log", "clients 1")
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	p.types("2")
	p.shows("shop_stat")
	c.close()
	p.shows("clients 0") // the screen stays
	p.types("4")
	p.shows("logs/app.log")
	p.types("q")
	p.restored(exitOK)
	require.True(t, c.holds(patience, func() bool { return c.ended }))
	require.Empty(t, c.stray, "stdout carries MCP only")
	errs, err := os.ReadFile(filepath.Join(w.dir, "errs"))
	require.NoError(t, err)
	require.Empty(t, strings.ReplaceAll(string(errs), "goblin: stopping the servers …\n", ""))
	b.waitGone()
}

func TestTUIInTheBackgroundServesAndWaitsForItsTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	p := w.pane(100, 30)
	for _, name := range []string{"in", "out"} {
		require.NoError(t, exec.Command("mkfifo", filepath.Join(w.dir, name)).Run())
	}
	p.line(`set -m; "$G" --tui <in >out 2>errs &`)
	c := w.through("in", "out")
	c.init()
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	warning := func() string {
		errs, err := os.ReadFile(filepath.Join(w.dir, "errs"))
		require.NoError(t, err)
		return string(errs)
	}
	const waits = "goblin: the screen waits until goblin is in front of its terminal; the client is served meanwhile\n"
	eventually(t, "a warning", func() bool { return warning() == waits })
	p.line("echo us''able") // the shell keeps its terminal
	p.shows("\nusable")

	p.line("fg")
	p.shows("logs/app.log", "clients 1")
	require.Equal(t, "1", p.ask("alternate_on"))
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	p.types("4")
	p.shows("logs/app.log")
	c.close()
	p.shows("clients 0")
	p.types("q")
	p.hides("logs/app.log")
	b.waitGone()
	p.line("echo us''able again")
	p.shows("\nusable again")
	require.Contains(t, []string{waits, waits + "goblin: stopping the servers …\n"}, warning(), "told once")
}

func TestADumpGivesTheTerminalBackFirst(t *testing.T) {
	t.Parallel()
	for name, detached := range map[string]bool{"its own host": false, "another's": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.backend("shop", filesystem())
			if detached {
				w.bridged()
			}
			p := w.pane(100, 30)
			p.goblin("2>errs")
			p.shows("logs/app.log")
			p.signal(syscall.SIGQUIT)
			p.restored(exitUsage) // the number that Go uses
			errs, err := os.ReadFile(filepath.Join(w.dir, "errs"))
			require.NoError(t, err)
			require.Contains(t, string(errs), "SIGQUIT: quit")
			require.Contains(t, string(errs), "goroutine 1 ")
		})
	}
}

// through is a client on two named pipes.
func (w *world) through(in, out string) *client {
	w.t.Helper()
	c := newClient(w.t)
	to, err := os.OpenFile(filepath.Join(w.dir, in), os.O_WRONLY, 0)
	require.NoError(w.t, err)
	from, err := os.Open(filepath.Join(w.dir, out))
	require.NoError(w.t, err)
	c.write = func(frame []byte) { _, _ = to.Write(append(frame, '\n')) }
	c.close = func() { _ = to.Close() }
	go func() {
		defer from.Close()
		c.readLines(from)
	}()
	return c
}

func TestTUIBesideAHostIsABridgeAndARelay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.backend("shop", filesystem())
	first := w.bridged()
	host := w.status().PID
	p := w.pane(100, 30)
	p.line("sleep 1000")
	eventually(t, "a terminal that nobody else reads", func() bool { return p.ask("pane_current_command") == "sleep" })
	c := w.pipe("--tui-tty", p.ask("pane_tty"))
	c.init()
	p.shows("logs/app.log", "clients 2")
	require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	require.Equal(t, host, w.status().PID)

	// The next host serves both.
	w.succeeds("stop")
	for _, c := range []*client{c, first} {
		c.goesOn("shop_stat")
		require.Equal(t, "shop:stat:{}", c.callText("shop_stat", obj{}))
	}
	w.waitScreens(1)
	p.shows("logs/app.log", "clients 2")
	require.NotEqual(t, host, w.status().PID)
	require.Equal(t, 2, b.starts())
	c.close()
	p.shows("clients 1")
	p.types("q")
	require.Zero(t, c.prog.ends(patience))
	require.Equal(t, "shop:stat:{}", first.callText("shop_stat", obj{}))
}
