package tui

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"goblin/tui/pane"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/stretchr/testify/require"

	"goblin/registry"
)

// logRecord writes a line of the log as a part of the gateway does.
func logRecord(r *rig, source, server, text string, level slog.Level) {
	r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Source: source, Server: server, Text: text, Level: level})
}

// logsRig is a screen with a few lines in each log.
func logsRig(t testing.TB, w, h int) *rig {
	r := newRig(t, w, h, "files", "github")
	r.ready("files").ready("github")
	logRecord(r, registry.SourceStderr, "files", "files is warming up", slog.LevelInfo)
	logRecord(r, registry.SourceMessage, "github", "rate limit is near", slog.LevelWarn)
	logRecord(r, registry.SourceStderr, "github", "panic: no token", slog.LevelError)
	logRecord(r, registry.SourceGoblin, "", "listening on the socket", slog.LevelInfo)
	logRecord(r, registry.SourceGoblin, "github", "retrying in a second", slog.LevelDebug)
	return r.changed(registry.Logs)
}

func TestLogsTellNewLinesOnTheirTabUntilTheyAreLookedAt(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 120, 40)
	require.Regexp(t, `5 Logs Δ\d+`, r.line("1 Servers"))
	r.keys("5")
	require.NotRegexp(t, `Logs Δ`, r.line("1 Servers"))
}

func TestBracketsWalkTheTabsAndTheOpenOneIsReadableWithoutColour(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24).keys("5")
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
	require.Contains(t, r.screen(), "[Events")
	r.keys("[")
	require.Contains(t, r.screen(), "[Goblin")
}

func TestAClickOpensATabOfLogs(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24).keys("5")
	y, x := -1, -1
	for i, l := range strings.Split(r.screen(), "\n") {
		if at := strings.Index(l, "Goblin 2"); at >= 0 {
			y, x = i, len([]rune(l[:at]))
		}
	}
	require.Positive(t, x)
	r.take(tea.MouseMsg{X: x, Y: y, Button: tea.MouseButtonLeft, Action: tea.MouseActionPress}, 0)
	require.Contains(t, r.screen(), "[Goblin 2]")
	require.Contains(t, r.screen(), "listening on the socket")
}

func TestOtherTabsCountWhatCameSinceTheyWereLookedAt(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 120, 40).keys("5 ] ] ] [ [ [") // all were looked at
	logRecord(r, registry.SourceGoblin, "", "one more", slog.LevelInfo)
	logRecord(r, registry.SourceStderr, "files", "and this", slog.LevelInfo)
	logRecord(r, registry.SourceStderr, "files", "and that", slog.LevelInfo)
	r.changed(registry.Logs)
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
	r := logsRig(t, 80, 24).keys("5 ] ]")
	r.keys("L") // info
	r.keys("L") // warn
	require.NotContains(t, r.screen(), "warming up")
	require.Contains(t, r.screen(), "rate limit is near")
	require.Contains(t, r.line("Server stderr 2"), "warn and worse")
	r.keys("L")
	require.NotContains(t, r.screen(), "rate limit is near")
	require.Contains(t, r.line("no token"), "!error")
	r.keys("]")
	require.Contains(t, r.screen(), "Nothing is at level error or worse.")
	r.keys("L [")
	require.Contains(t, r.screen(), "warming up")
}

func TestLevelIsRefusedForTrafficWithAReason(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24).keys("5 ] L")
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
			r := logsRig(t, 80, 24).keys("5 ] ] /").text(typed).keys("enter")
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
	r := newRig(t, 80, 24, "files")
	r.keys("5 ] ]")
	for i := range 50 {
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("line %d.", i), slog.LevelInfo)
	}
	r.changed(registry.Logs)
	require.Contains(t, r.line("line 49."), "> ", "the cursor is at the end")
	r.keys("k")
	logRecord(r, registry.SourceStderr, "files", "line 50.", slog.LevelInfo)
	r.changed(registry.Logs)
	require.Contains(t, r.line("line 48."), "> ")
	require.NotContains(t, r.screen(), "following")
	for _, again := range []string{"f", "k G"} {
		r.keys(again)
		logRecord(r, registry.SourceStderr, "files", "the newest after "+again, slog.LevelInfo)
		r.changed(registry.Logs)
		require.Contains(t, r.line("the newest after "+again), "> ")
		require.Contains(t, r.screen(), "following")
	}
	r.keys("f")
	require.NotContains(t, r.screen(), "following")
}

func TestPauseHoldsTheViewAndLosesNothing(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24).keys("5 ] ] space")
	require.Contains(t, r.screen(), "[paused]")
	for i := range 3 {
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("while paused %d", i), slog.LevelInfo)
	}
	r.changed(registry.Logs)
	require.NotContains(t, r.screen(), "while paused")
	require.Contains(t, r.screen(), "paused, 3 more")
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
	r := newRig(t, 80, 24, "files").keys("5 ] ]")
	logRecord(r, registry.SourceStderr, "files", "the first", slog.LevelInfo)
	r.changed(registry.Logs).keys("space")
	for i := range 10_500 {
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("line %d.", i), slog.LevelInfo)
	}
	r.changed(registry.Logs).keys("space")
	require.Contains(t, r.line("Going on"), "500 records were dropped meanwhile")
	require.Equal(t, pane.MostLogs, r.app.Logs().Logs[pane.TabStderr].Count())
	require.Contains(t, r.line("line 10499."), "> ")
	require.Contains(t, r.screen(), "older dropped")
}

func TestAPaneThatIsNotOpenReadsNothing(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24)
	require.Zero(t, r.app.Logs().Log.Read)
	require.Zero(t, r.app.Logs().Logs[pane.TabStderr].Count())
	r.keys("5")
	require.Equal(t, 3, r.app.Logs().Logs[pane.TabStderr].Count())
}

func TestThePagerGetsAllLinesOfTheServer(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24)
	logRecord(r, registry.SourceStderr, "github", "an \x1b[31mescape", slog.LevelInfo)
	r.changed(registry.Logs).keys("5 ] ] e")
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
	r := logsRig(t, 80, 24)
	r.run(r.app.StderrOf("files"))
	screen := r.screen()
	require.Contains(t, screen, "[Server stderr")
	require.Contains(t, screen, "warming up")
	require.NotContains(t, screen, "rate limit")
	r.keys("esc 5 ] ]")
	require.Contains(t, r.screen(), "rate limit", "the filter was the jump's")
}

func TestAForeignLogLineCannotMoveTheCursorOrHide(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "files")
	logRecord(r, registry.SourceStderr, "files", "\x1b[2J\r\nover\u202ewritten "+strings.Repeat("世界", 4000), slog.LevelInfo)
	r.changed(registry.Logs).keys("5 ] ]")
	require.Contains(t, r.line("over"), `\x1b[2J`)
	r.keys("enter")
	r.screen()
}

func TestALogRecordsDetailHasItInFullAndItsJSON(t *testing.T) {
	t.Parallel()
	r := newRig(t, 120, 40, "files")
	r.reg.SetSession(registry.Session{ID: "s-1", Client: "claude", Version: "2.1", Transport: "stdio"})
	r.reg.Logs().Append(registry.LogRecord{Time: r.clock.now(), Source: registry.SourceStderr, Server: "files", Session: "s-1", Text: `{"msg":"hello","n":1}`})
	r.changed(registry.Logs).keys("5 ] ]")
	screen := r.screen()
	require.Contains(t, screen, "2026-11-20 12:00:00.000")
	require.Contains(t, screen, "s-1  claude 2.1 over stdio")
	require.Contains(t, screen, "As JSON")
}

func TestLogsCopyTheLineAndTheLines(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24).keys("5 ] ] y")
	require.Contains(t, r.screen(), "Copied the line (15 B)")
	r.keys("Y")
	require.Contains(t, r.screen(), "Copied the lines")
}

func TestARecordOfAServerLeadsToTheServer(t *testing.T) {
	t.Parallel()
	r := logsRig(t, 80, 24).keys("5 ] ] i")
	require.Equal(t, pane.PaneServers, r.app.Open)
}

func TestLogsOfEverySizeFillTheScreenExactly(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{40, 10}, {47, 17}, {60, 18}, {80, 24}, {109, 30}, {120, 40}, {160, 45}, {250, 60}} {
		r := logsRig(t, size[0], size[1])
		r.keys("5")
		for range pane.LogTabs {
			r.screen()
			r.keys("enter")
			r.screen()
			r.keys("esc ]")
		}
	}
}

func BenchmarkLogsRefresh(b *testing.B) {
	r := newRig(b, 250, 60, "files")
	r.keys("5 ] ]")
	flood := func() {
		for range 333 {
			r.reg.Logs().Append(registry.LogRecord{Time: time.Unix(1, 0), Source: registry.SourceStderr, Server: "files", Text: "GET /readme.md 200 in 12 ms for a client"})
		}
	}
	for range 40 {
		flood()
	}
	r.changed(registry.Logs)
	b.ResetTimer()
	for b.Loop() {
		b.StopTimer()
		flood()
		b.StartTimer()
		r.run(r.app.Logs().Refresh(registry.Logs))
	}
}

func TestAServerThatPrintedNothingIsShownByItsEventsAndSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, 80, 24, "notes").ready("notes").keys("1 e")
	require.Contains(t, r.screen(), "[Events")
	require.Contains(t, r.screen(), "notes has printed and logged nothing; these are its events")
}
