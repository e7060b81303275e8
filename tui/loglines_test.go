package tui

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry"
)

func TestLinesOfStderrHaveTheirLevels(t *testing.T) {
	t.Parallel()
	for text, level := range map[string]string{
		"2026-11-28 02:21:57 ERROR no token":    "!error",
		"Error: Cannot find module 'x'":         "!error",
		"[warn] slow":                           "warn",
		`{"time":"02:21","level":"error"}`:      "!error",
		"level=debug msg=x":                     "debug",
		"no error found":                        "info",
		"FATAL \x1b[31mred":                     "!error",
		"panic: runtime error":                  "!error",
		"listening on port 80":                  "info",
		strings.Repeat("x", 200) + " ERROR far": "info",
	} {
		r := newTestUI(t, 120, 40, "files")
		logRecord(r, registry.SourceStderr, "files", text, slog.LevelInfo)
		r.refresh(registry.Logs).keys("5 ] ]")
		require.Contains(t, r.line("> "), " "+level+" ", text)
	}
}

func TestLinesThatDifferInTimesAndProcessesAreOneRow(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 105, 40, "files")
	for i := range 98 {
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("2026-11-28T02:21:%02d.123Z pid=%d ERROR CRASH_TOKEN is not set", i%60, 1000+i), slog.LevelInfo)
	}
	logRecord(r, registry.SourceStderr, "files", "item 1 done", slog.LevelInfo)
	logRecord(r, registry.SourceStderr, "files", "item 2 done", slog.LevelInfo)
	r.refresh(registry.Logs).keys("5 ] ]")
	require.Contains(t, r.screen(), "Server stderr 3", "other numbers matter")
	require.Contains(t, r.line("CRASH_TOK"), "× 98, last 12:00:00")
	require.Contains(t, r.line("CRASH_TOK"), "pid=1097", "the newest is shown")
	require.Contains(t, r.keys("1 right F").line("CRASH_TOK"), "not set  × 98", "the detail of the server")
	require.Contains(t, r.screen(), "item 1 done")
}

func TestALogIsReadAroundItsLine(t *testing.T) {
	t.Parallel()
	r := newTestUI(t, 80, 24, "files", "other")
	for i := range 3000 {
		level := "INFO"
		if i%1000 == 500 {
			level = "ERROR"
		}
		logRecord(r, registry.SourceStderr, "files", fmt.Sprintf("%s step-%d\x1b[2J", level, i+1), slog.LevelInfo)
	}
	logRecord(r, registry.SourceStderr, "other", "not mine", slog.LevelInfo)
	r.refresh(registry.Logs).keys("5 ] ]").keys("/ ERROR enter").keys("g enter ]")
	require.Contains(t, r.line("[Log]"), "Line")
	require.Contains(t, r.line("step-501"), ">")
	require.Contains(t, r.screen(), "step-502", "the filter hides no lines here")
	require.Contains(t, r.screen(), "1 of 3, line 501 of 3000")
	r.keys("J")
	require.Contains(t, r.screen(), "2 of 3, line 1501 of 3000")
	r.keys("G")
	require.NotContains(t, r.screen(), "not mine")
	r.keys("/").typeText("error").keys("enter &")
	require.Contains(t, r.screen(), "step-501")
	require.Contains(t, r.screen(), "step-2501")
	require.NotContains(t, r.screen(), "step-2502")
	r.keys("& #").typeText("2712").keys("enter")
	require.Contains(t, r.line("step-2712"), ">")
	r.keys("esc esc").keys(":").typeText("2000").keys("enter")
	require.Contains(t, r.screen(), "line 2000 of 3001")
}
