package command

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/cli"
	"goblin/gateway/config"
	"goblin/gateway/telemetry"
)

func TestUsageWithoutADaemonIsWhatWasCounted(t *testing.T) {
	const text = "servers:\n  files: {command: x}\n"
	run := ofUsage(t, text, func(path string) {
		m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Listed: func() (all []telemetry.ListedTool) {
			for i := range 25 {
				name := fmt.Sprintf("tool%02d", i)
				all = append(all, telemetry.ListedTool{Server: "files", Tool: name, Name: "files_" + name, Bytes: 4000 - i})
			}
			return append(all, telemetry.ListedTool{Server: "evil", Tool: "e\x1b[2J", Name: "evil_e", Bytes: 10})
		}})
		for i := range 3 {
			m.Add(telemetry.MeteredCall{Server: "files", Tool: "tool01", Client: "edi\x1btor", At: time.Now(), Duration: 40 * time.Millisecond, Bytes: 2000, Failed: i == 0})
		}
		m.Save()
	})

	got := run("usage")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `^Since \d{4}-\d\d-\d\d \d\d:\d\d: 3 calls, 1 error, p50 \d\d ms, 6.0 kB of answers\nNo daemon is running; .*\n24 tools not called since then \(\d+k tokens of definitions\)\n`, got.out)
	require.Regexp(t, `(?m)^files +25 +24 +24k +99.7 kB +3 +1 +\d\d ms +\d\d ms +6.0 kB +\d+ s ago$`, got.out)
	require.Regexp(t, `(?m)^files_tool01 +1000 +4.0 kB +3 +1 `, got.out)
	require.Regexp(t, `(?m)^files_tool00 .* never$`, got.out)
	require.NotContains(t, got.out, "files_tool20")
	require.NotContains(t, got.out, "\x1b")
	require.Contains(t, got.out, "\n6 more tools; show them with --all\n")

	got = run("usage", "--all", "--server", "files")
	require.Contains(t, got.out, "files_tool24")
	require.NotContains(t, got.out, "evil")
	require.NotContains(t, got.out, "CLIENT")

	report := decodeJSON(t, run("usage", "--json").out).(map[string]any)
	require.Equal(t, false, report["host"])
	require.Len(t, report["tools"], 26)
	require.EqualValues(t, 3, report["all"].(map[string]any)["calls"])

	got = run("usage", "--server", "fils")
	require.Equal(t, cli.CodeNotFound, got.code)
	require.Contains(t, got.err, `did you mean "files"?`)
	require.Contains(t, ofUsage(t, text, func(string) {})("usage").out, "no calls")
}

func TestCallsThatPeopleWereAskedInHaveNoTime(t *testing.T) {
	got := ofUsage(t, "servers:\n  files: {command: x}\n", func(path string) {
		m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path})
		m.Add(telemetry.MeteredCall{Server: "files", Tool: "ask", Client: "editor", At: time.Now(), Duration: time.Minute, Bytes: 2000, NoDuration: true})
		m.Add(telemetry.MeteredCall{Server: "files", Tool: "quick", Client: "other", At: time.Now(), Duration: time.Second, Bytes: 2000})
		m.Save()
	})("usage")
	require.NotContains(t, got.out, "0.0 ms")
	require.Regexp(t, `(?m)^editor .* 1 +0 +2.0 kB `, got.out)
	require.Regexp(t, `(?m)^other .* 1 +0 +\d+ ms +\d+ ms +2.0 kB `, got.out)

	got = ofUsage(t, "servers: {}\n", func(path string) {
		m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path})
		m.Add(telemetry.MeteredCall{Server: "files", Tool: "ask", Client: "editor", At: time.Now(), Bytes: 2000, NoDuration: true})
		m.Save()
	})("usage")
	require.Regexp(t, `: 1 call, 0 errors, 2.0 kB of answers\n`, got.out)
}

func TestAFileOfUsageThatCannotBeReadIsTold(t *testing.T) {
	got := ofUsage(t, "servers: {}\n", func(path string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(`{"version": 9}`), 0o600))
	})("usage")
	require.Equal(t, cli.CodeFailure, got.code)
	require.Regexp(t, `usage/\w+\.json: version 9 instead of 1: written by another version of Goblin; the next daemon moves the file aside\n$`, got.err)
}

// ofUsage runs commands for a config with usage counts. count receives the path of their
// file.
func ofUsage(t *testing.T, text string, count func(path string)) func(args ...string) outcome {
	t.Helper()
	path := filepath.Join(t.TempDir(), "goblin.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	env := map[string]string{"XDG_STATE_HOME": t.TempDir()}
	canonical, err := config.Canonical(path)
	require.NoError(t, err)
	count(telemetry.UsagePath(filepath.Join(env["XDG_STATE_HOME"], "goblin"), canonical))
	return func(args ...string) outcome { return try{env: env}.runIn(t, path, args...) }
}
