package tui

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/pane"
)

// logRecord writes a log line like a part of the gateway.
func logRecord(r *testUI, source, server, text string, level slog.Level) {
	r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Source: source, Server: server, Text: text, Level: level})
}

// newLogsUI returns a UI with a few lines in each log.
func newLogsUI(t testing.TB, w, h int) *testUI {
	r := newTestUI(t, w, h, "files", "github")
	r.setReady("files").setReady("github")
	logRecord(r, registry.SourceStderr, "files", "files is warming up", slog.LevelInfo)
	logRecord(r, registry.SourceMessage, "github", "rate limit is near", slog.LevelWarn)
	logRecord(r, registry.SourceStderr, "github", "panic: no token", slog.LevelError)
	logRecord(r, registry.SourceGoblin, "", "listening on the socket", slog.LevelInfo)
	logRecord(r, registry.SourceGoblin, "github", "retrying in a second", slog.LevelDebug)
	return r.refresh(registry.Logs)
}

func TestLogsTellNewLinesOnTheirTabUntilTheyAreLookedAt(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 120, 40)
	require.Regexp(t, `5 Logs Δ\d+`, r.line("1 Servers"))
	r.keys("5")
	require.NotRegexp(t, `Logs Δ`, r.line("1 Servers"))
}

func TestBracketsWalkTheTabsAndTheOpenOneIsReadableWithoutColour(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24).keys("5")
	require.Contains(t, r.screen(), "[Events")
	r.keys("]")
	require.Contains(t, r.screen(), "[Traffic")
	r.keys("]")
	require.Contains(t, r.screen(), "[Server stderr 3]")
	require.Contains(t, r.line("files is warming up"), "stderr")
	require.Contains(t, r.line("rate limit is near"), "message")
	require.NotContains(t, r.screen(), "listening on the socket")
	r.keys("]")
	require.Contains(t, r.screen(), "[Goblin 2]")
	require.Contains(t, r.screen(), "listening on the socket")
	r.keys("]")
	require.Contains(t, r.screen(), "[Time line]")
	r.keys("]")
	require.Contains(t, r.screen(), "[Events")
	r.keys("[ [")
	require.Contains(t, r.screen(), "[Goblin")
}

func TestAClickOpensATabOfLogs(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24).keys("5")
	r.click("Goblin 2", "Goblin 2")
	require.Contains(t, r.screen(), "[Goblin 2]")
	require.Contains(t, r.screen(), "listening on the socket")
}

func TestOtherTabsCountWhatCameSinceTheyWereLookedAt(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 120, 40).keys("5 ] ] ] [ [ [") // all were viewed
	logRecord(r, registry.SourceGoblin, "", "one more", slog.LevelInfo)
	logRecord(r, registry.SourceStderr, "files", "and this", slog.LevelInfo)
	logRecord(r, registry.SourceStderr, "files", "and that", slog.LevelInfo)
	r.refresh(registry.Logs)
	line := r.line("[Events")
	require.Contains(t, line, "Server stderr 5 Δ2")
	require.Contains(t, line, "Goblin 3 Δ1")
	r.keys("] ] ]")
	require.Contains(t, r.line("[Goblin"), "[Goblin 3]")
	r.keys("[ [ [")
	require.NotContains(t, r.line("[Events"), "Δ")
}

func TestLevelHidesWhatIsLessInTheLogTabs(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24).keys("5 ] ]")
	r.keys("L") // info
	r.keys("L") // warn
	require.NotContains(t, r.screen(), "warming up")
	require.Contains(t, r.screen(), "rate limit is near")
	require.Contains(t, r.line("Server stderr 2"), "warn and above")
	r.keys("L")
	require.NotContains(t, r.screen(), "rate limit is near")
	require.Contains(t, r.line("no token"), "!error")
	r.keys("]")
	require.Contains(t, r.screen(), "No records at level error or above.")
	r.keys("L [")
	require.Contains(t, r.screen(), "warming up")
}

func TestLevelIsRefusedForTrafficWithAReason(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24).keys("5 ] L")
	require.Contains(t, r.line("err:yes"), "requests have no level")
	r.keys("] m")
	require.Contains(t, r.line("only requests have methods"), "!")
}

func TestLogFieldsFilter(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string][]string{
		"server:git":     {"rate limit", "no token"},
		"source:message": {"rate limit"},
		"level:error":    {"no token"},
		"warming":        {"warming up"},
		"-server:github": {"warming up"},
	} {
		t.Run(typed, func(t *testing.T) {
			r := newLogsUI(t, 80, 24).keys("5 ] ] /").typeText(typed).keys("enter")
			screen := r.screen()
			n := 0
			for _, text := range []string{"warming up", "rate limit", "no token"} {
				if strings.Contains(screen, text) {
					n++
				}
			}
			require.Equal(t, len(want), n, screen)
			for _, text := range want {
				require.Contains(t, screen, text)
			}
		})
	}
}

func TestFollowingEndsWhenTheUserMovesUpAndBeginsAgainWithF(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	r.keys("5 ] ]")
	for i := range 50 {
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("line %d.", i), slog.LevelInfo)
	}
	r.refresh(registry.Logs)
	require.Contains(t, r.line("line 49."), "> ", "the cursor is at the end")
	r.keys("k")
	logRecord(r, registry.SourceStderr, "files", "line 50.", slog.LevelInfo)
	r.refresh(registry.Logs)
	require.Contains(t, r.line("line 48."), "> ")
	require.NotContains(t, r.screen(), "following")
	for _, again := range []string{"f", "k G"} {
		r.keys(again)
		logRecord(r, registry.SourceStderr, "files", "the newest after "+again, slog.LevelInfo)
		r.refresh(registry.Logs)
		require.Contains(t, r.line("the newest after "+again), "> ")
		require.Contains(t, r.screen(), "following")
	}
	r.keys("f")
	require.NotContains(t, r.screen(), "following")
}

func TestPauseHoldsTheViewAndLosesNothing(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24).keys("5 ] ] space")
	require.Contains(t, r.screen(), "[paused]")
	for i := range 3 {
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("while paused %d", i), slog.LevelInfo)
	}
	r.refresh(registry.Logs)
	require.NotContains(t, r.screen(), "while paused")
	require.Contains(t, r.screen(), "paused, 3 new")
	require.Contains(t, r.footer(), "continue")
	r.keys("] [") // other tabs are held too
	require.NotContains(t, r.screen(), "while paused")
	r.keys("space")
	for i := range 3 {
		require.Contains(t, r.screen(), fmt.Sprintf("while paused %d", i))
	}
	require.NotContains(t, r.screen(), "[paused]")
}

func TestGoingOnSaysWhatWasDroppedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files").keys("5 ] ]")
	logRecord(r, registry.SourceStderr, "files", "the first", slog.LevelInfo)
	r.refresh(registry.Logs).keys("space")
	for i := range 10_500 {
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("line %d.", i), slog.LevelInfo)
	}
	r.refresh(registry.Logs).keys("space")
	require.Contains(t, r.line("Continued"), "500 records dropped meanwhile")
	require.Equal(t, pane.MaxLogs, r.app.Logs().Logs[pane.TabStderr].Count())
	require.Contains(t, r.line("line 10499."), "> ")
	require.Contains(t, r.screen(), "older dropped")
}

func TestAPaneThatIsNotOpenReadsNothing(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24)
	require.Zero(t, r.app.Logs().Log.Read)
	require.Zero(t, r.app.Logs().Logs[pane.TabStderr].Count())
	r.keys("5")
	require.Equal(t, 3, r.app.Logs().Logs[pane.TabStderr].Count())
}

func TestThePagerGetsAllLinesOfTheServer(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24)
	logRecord(r, registry.SourceStderr, "github", "an \x1b[31mescape", slog.LevelInfo)
	r.refresh(registry.Logs).keys("5 ] ] e")
	require.Len(t, r.term.opened, 1)
	got := r.term.opened[0]
	require.Contains(t, got, "pager github-stderr.log: ")
	require.Contains(t, got, "rate limit is near")
	require.Contains(t, got, "panic: no token")
	require.NotContains(t, got, "warming up")
	require.NotContains(t, got, "\x1b")
}

func TestStderrOfAServerShowsItsLinesOnly(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24)
	r.run(r.app.StderrOf("files"))
	screen := r.screen()
	require.Contains(t, screen, "[Server stderr")
	require.Contains(t, screen, "warming up")
	require.NotContains(t, screen, "rate limit")
	r.keys("esc 5 ] ]")
	require.Contains(t, r.screen(), "rate limit", "the filter came with the jump")
}

func TestAForeignLogLineCannotMoveTheCursorOrHide(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files")
	logRecord(r, registry.SourceStderr, "files", "\x1b[2J\r\nover\u202ewritten "+strings.Repeat("世界", 4000), slog.LevelInfo)
	r.refresh(registry.Logs).keys("5 ] ]")
	require.Contains(t, r.line("over"), `\x1b[2J`)
	r.keys("enter")
	r.screen()
}

func TestALogRecordsDetailHasItInFullAndItsJSON(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "files")
	r.reg.SetSession(registry.Session{ID: "s-1", Client: "claude", Version: "2.1", Transport: "stdio"})
	r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Source: registry.SourceStderr, Server: "files", Session: "s-1", Text: `{"msg":"hello","n":1}`})
	r.refresh(registry.Logs).keys("5 ] ]")
	screen := r.screen()
	require.Contains(t, screen, "2026-11-20 12:00:00.000")
	require.Contains(t, screen, "s-1  claude 2.1 over stdio")
	require.Contains(t, screen, "As JSON")
}

func TestLogsCopyTheLineAndTheLines(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24).keys("5 ] ] y")
	require.Contains(t, r.screen(), "Copied the line (15 B)")
	r.keys("Y")
	require.Contains(t, r.screen(), "Copied the lines")
}

func TestARecordOfAServerLeadsToTheServer(t *testing.T) {
	t.Parallel()
	r := newLogsUI(t, 80, 24).keys("5 ] ] i")
	require.Equal(t, pane.PaneServers, r.app.Open)
}

func TestAServerThatPrintedNothingIsShownByItsEventsAndSaysSo(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "notes").setReady("notes").keys("1 e")
	require.Contains(t, r.screen(), "[Events")
	require.Contains(t, r.screen(), "notes has no output; showing its events")
}

// A verbose server does not evict the rows of others from the tab.
func TestAServerDisplacesItsOwnRowsOnly(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 40, "files", "github").keys("5 ] ]")
	for i := range 10 {
		r.reg.Logs().Append(registry.LogRecord{Server: "files", Source: registry.SourceStderr, Text: fmt.Sprint("quiet ", i)})
	}
	for range 3 {
		for i := range pane.MaxLogs {
			r.reg.Logs().Append(registry.LogRecord{Server: "github", Source: registry.SourceStderr, Text: fmt.Sprint("loud ", i)})
		}
		r.refresh(registry.Logs)
	}
	rows := map[string]int{}
	for _, row := range r.app.Logs().Logs[pane.TabStderr].Held {
		rows[row.Server]++
	}
	require.Equal(t, 10, rows["files"])
	require.Equal(t, pane.MaxLogs-10, rows["github"])
}

func TestACrashLoopIsFolded(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 120, 24, "loop", "other").keys("5 ] ]")
	for i := range 98 {
		at := r.clock.now().Add(time.Duration(i) * time.Minute)
		for _, line := range []string{"starting up", "Error: boom"} {
			r.reg.Logs().Append(registry.LogRecord{Time: at, Server: "loop", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: line})
		}
		if i == 50 {
			r.reg.Logs().Append(registry.LogRecord{Time: at, Server: "other", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: "the line in between"})
		}
		r.reg.Logs().Append(registry.LogRecord{Time: at, Server: "loop", Source: registry.SourceStderr, Level: slog.LevelInfo, Text: fmt.Sprint("unlike ", i/49)})
		if i%7 == 0 {
			r.refresh(registry.Logs)
		}
	}
	r.refresh(registry.Logs)
	require.Contains(t, r.line("Error: boom"), "× 98, last 13:37:00")
	require.Contains(t, r.line("unlike 0"), "12:00:00", "the time stays visible beside the counts")
	require.Contains(t, r.screen(), "the line in between")
	require.Contains(t, r.line("unlike 0"), "× 49")
	require.Equal(t, 5, r.app.Logs().Logs[pane.TabStderr].Count())
	require.Contains(t, string(r.app.Logs().ShownContent().Data), "Error: boom  (× 98, last 2026-11-20 13:37:00.000)", "files have it, too")
}

// The server of a row is visible beside the detail and without it, at least as part of a name.
func TestRowsOfLogsSayWhoseTheyAre(t *testing.T) {
	t.Parallel()
	for _, w := range []int{80, 100, 120, 160} {
		r := newTestUI(t, w, 40, "everything", "notes").setReady("everything").setReady("notes")
		for i, server := range []string{"everything", "notes"} {
			r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Server: server, Source: registry.SourceStderr, Text: fmt.Sprintf("line %d of a log that is long enough to be cut somewhere", i)})
			r.reg.Traffic().Append(registry.TrafficRecord{Time: r.clock.now(), Session: "s-1", Client: "claude-code", Server: server, Method: "tools/call", Name: server + "_trigger-long-running-operation", Status: "success", Duration: time.Second, Size: 10})
		}
		r.refresh(registry.AllChanges)
		for _, entryKeys := range []string{"5", "5 ] ]"} {
			line := r.keys(entryKeys).line("> ")
			require.Regexp(t, `> \d\d:\d\d:\d\d`, line)
			require.Contains(t, line, "notes", "%d cells", w)
			require.Contains(t, r.line("info"), "everyth", "%d cells", w)
		}
		line := r.keys("[").line("> ")
		require.Regexp(t, `> \d\d:\d\d:\d\d claude.*call +notes.*ration +ok`, line, "%d cells", w)
	}
}

func TestAMessageIsNotCutForTheSakeOfMilliseconds(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "notes").setReady("notes")
	r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Server: "notes", Source: registry.SourceEvent, Text: "a message of forty-nine letters, some of which fit"})
	line := r.refresh(registry.Logs).keys("5").line("a message")
	require.Contains(t, line, "some of which fit")
	require.NotContains(t, line, ".000")
	require.Contains(t, newTestUI(t, 160, 24, "notes").setReady("notes").keys("5 F").line("ready"), ".000")
}
