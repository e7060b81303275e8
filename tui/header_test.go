package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/theme"
)

// A daemon once survived the end of its terminal. The next UI silently showed servers in
// a state from hours before.
func TestAScreenThatJoinsADaemonAloneSaysWhatItJoined(t *testing.T) {
	t.Parallel()
	since := func(r *testUI) string { return r.app.o.Daemon.Started.Local().Format("15:04") }
	r := newTestUI(t, 100, 24, "files")
	require.NotContains(t, r.screen(), "connected to the daemon", "it is its own")

	r.app.o.Daemon.Owner = false
	require.Contains(t, r.screen(), " connected to the daemon (pid 4711, running since "+since(r)+" from /dev/pts/3)")
	require.Contains(t, r.screen(), "stop it with \"goblin stop\"")
	r.app.o.Daemon.TerminalGone = true
	require.Contains(t, r.screen(), "from /dev/pts/3 (closed)")
	r.clock.current = r.clock.current.Add(24 * time.Hour)
	require.Contains(t, r.screen(), "running since 2026-11-20 "+since(r), "another day is shown")
	r.app.o.Daemon.Terminal, r.app.o.Daemon.TerminalGone = "", false
	require.NotContains(t, r.screen(), "from", "the daemon was started without a terminal")

	// With other clients it is obvious that the daemon was running before.
	r.reg.SetSession(registry.Session{ID: "c", Client: "editor", Transport: "socket"})
	r.app.header.refresh(r.app)
	require.NotContains(t, r.screen(), "connected to the daemon")
	r.keys("0")
	require.Contains(t, r.screen(), "Daemon: pid 4711, running since 2026-11-20 "+since(r), "and it is found there")
}

func TestANoticeStandsInTheBarUntilItIsOver(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 100, 30, plainEnv)
	const notice = `config not reloaded: /etc/goblin/work.yaml:3: unknown key "comand"` + "\x1b[2J"
	r.reg.SetNotice(notice)
	r.refresh(registry.Servers)
	require.Contains(t, r.screen(), `! config not reloaded: work.yaml:3: unknown key "comand"`)
	require.NotContains(t, r.screen(), "\x1b[2J")
	r.keys("4 / config enter")
	require.Contains(t, r.line("/ config"), "! config not reloaded", "beside a filter")
	r.keys("esc")
	r.reg.SetNotice("")
	r.refresh(registry.Servers)
	require.NotContains(t, r.screen(), "config not reloaded")
}

func TestWhatANoticeLeavesOutIsInSight(t *testing.T) {
	t.Parallel()
	const more = " (and 2 more: goblin validate)"
	for _, w := range []int{80, 90, 120} {
		r := newExampleUI(t, w, 30, plainEnv)
		r.reg.SetNotice(`config not reloaded: /etc/goblin/work.yaml:3: unknown key "comand" in server "files"; did you mean "command"? Keys are described in the manual` + more)
		r.refresh(registry.Servers)
		line := r.line("config not reloaded: work.yaml:3:")
		require.True(t, strings.HasSuffix(line, "… (and 2 more, ! shows them)"), line)
	}
}

func TestTheHeaderShowsTheLastMinutesWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	for w, shown := range map[int]bool{80: false, 99: false, 100: true, 140: true} {
		r := newTestUI(t, w, 24, "files").addRequests("files", 1, time.Millisecond, "success").tick(time.Second)
		require.Equal(t, shown, strings.Contains(strings.Split(r.screen(), "\n")[0], "▁█"), "%d columns", w)
	}
}

// An idle UI draws the same frame, so nothing is written.
func TestAnIdleScreenDoesNotChange(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 160, 45, "files").setReady("files").keys("1").addRequests("files", 3, time.Millisecond, "success").tick(10 * time.Minute).tick(time.Second)
	before := r.screen()
	for range 100 {
		r.tick(500 * time.Millisecond)
	}
	require.Equal(t, before, r.screen())
}

func TestClientsThatComeAndGoAreTold(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.reg.SetSession(registry.Session{ID: "c3", Transport: "stdio", Client: "cursor"})
	require.Contains(t, r.refresh(registry.Sessions).screen(), "cursor connected (stdio)")
	r.reg.DropSession("c1")
	require.Contains(t, r.refresh(registry.Sessions).screen(), "claude-code disconnected")
}

func TestRequestRateCountsRequestsAndNoNotifications(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	for range 10 {
		r.addTraffic() // three requests and a notification
	}
	require.Contains(t, r.tick(2*time.Second).screen(), " 0.55 req/s", "three earlier ones count")
	require.Contains(t, r.tick(50*time.Second).screen(), " 0.55 req/s")
	require.Contains(t, r.tick(10*time.Second).screen(), " 0 req/s")
}

func TestTheRateIsThatOfABeat(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.tick(time.Second)
	r.addTraffic()
	r.clock.advance(time.Millisecond)
	r.reg.SetSession(registry.Session{ID: "c9", Transport: "stdio", Client: "zed"})
	require.Contains(t, r.refresh(registry.Sessions).screen(), " 0.05 req/s")
	require.Contains(t, r.screen(), "zed connected")
}

func TestBadgeCountsUpdatesThoughSubscriptionsGo(t *testing.T) {
	t.Parallel()
	r := newExampleUI(t, 120, 40, plainEnv)
	r.keys("4").screen()
	r.keys("1")
	r.reg.ResourceUpdated("files", configURI)
	r.refresh(registry.Subscriptions)
	require.Contains(t, r.screen(), "4 Resources 16 Δ1")
	r.reg.DropSubscription("files", configURI)
	r.refresh(registry.Subscriptions)
	require.Contains(t, r.screen(), "4 Resources 16 Δ1")
}

// Whole segments leave the header, in a fixed order, and all visible ones stay links.
func TestTheHeaderDropsWholeSegmentsAtEveryWidth(t *testing.T) {
	t.Parallel()
	r := newAlertsUI(t, 200, 24, plainEnv)
	r.reg.SetSession(registry.Session{ID: "ui2", Screen: true})
	r.setState("files", registry.ServerState{State: registry.StateSleeping})
	r.setState("new", registry.ServerState{State: registry.StateConnecting})
	r.app.o.Daemon.Address, r.app.header.running = "http://127.0.0.1:27333/mcp", 1
	r.refresh(registry.AllChanges).tick(time.Second)
	r.app.Logs().Paused, r.app.mouse = true, false
	r.app.header.running = 1
	order := []string{
		"27333/mcp", "req/s", "UIs 2", "clients 2", "no mouse", "in flight 1", "running 1", "goblin", "work.yaml", "1 idle", "1 up", "connecting 1 of 5", "2 down", "[paused]", "?1 a answers",
	}
	dropped := 0
	for w := 200; w >= 40; w-- {
		r.resize(w, 24)
		line := strings.Split(r.screen(), "\n")[0]
		require.NotContains(t, line, "…", w)
		require.Regexp(t, `^ .*(9 alerts \(!\)|!9)  2 (requests )?stopped  (config invalid|bad config)  .*(REC stopped|REC!)`, line, w)
		gone := 0
		for _, text := range order {
			if !strings.Contains(line, text) {
				gone++
			} else {
				require.NotContains(t, order[:gone], text, "%d columns: %s", w, line)
			}
		}
		require.GreaterOrEqual(t, gone, dropped, "%d columns: %s", w, line)
		dropped = gone
		left, right := r.app.headerSegments()
		for _, all := range [][]segment{left, right} {
			for _, s := range all {
				text := ansi.Strip(s.text)
				require.Contains(t, line, text)
				before, _, _ := strings.Cut(line, text)
				require.Equal(t, s.text, r.app.segmentAtColumn(theme.Width(before)).text, "%d columns", w)
			}
		}
	}
	require.Equal(t, len(order), dropped)
	r.app.mouse = true
	require.Contains(t, r.click("!9", "config invalid").screen(), "Config not reloaded")
}
