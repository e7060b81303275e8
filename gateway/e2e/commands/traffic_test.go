//go:build e2e

package commands

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/e2e"
)

func TestMissingRecordingsAreNotFound(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	for _, command := range []string{
		"traffic --from none", "traffic --from none#3", "traffic --delete --older 7d --from none", "changes --from none", "export none.jsonl --format har",
		"diff none.jsonl none.jsonl", "replay none --against " + w.Config, "serve --replay none", "stdio --replay none",
	} {
		out := w.Run(strings.Fields(command)...)
		require.Equal(t, e2e.ExitNotFound, out.Code, "%s: %s", command, out.Stderr)
		require.Contains(t, out.Stderr, "none", command)
		require.Empty(t, out.Stdout, command)
	}
	path := recorded(t, w)
	for _, command := range []string{"traffic --from " + path + "#99", "export --format jsonl " + path + "#99", "diff " + path + "#99 " + path + "#1", "replay --yes --against " + w.Config + " " + path + "#99"} {
		require.Equal(t, e2e.ExitNotFound, w.Run(strings.Fields(command)...).Code, command)
	}
	both := w.Run("serve", "--replay", path, "--record", w.Dir)
	require.Equal(t, e2e.ExitUsage, both.Code)
	require.Contains(t, both.Stderr, "--record and --replay exclude each other")
}

func TestTrafficShowsTheRequestsOfTheDaemon(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Shop())
	out := w.Run("traffic")
	require.Equal(t, e2e.ExitConnect, out.Code)
	require.Contains(t, out.Stderr, "no daemon is running for")

	c := w.Bridged()
	require.Contains(t, c.CallText("shop_stat", e2e.Obj{"path": "src/main.go", "deep": e2e.Obj{"n": 5}}), "shop:stat")
	c.Notify("notifications/roots/list_changed", nil)
	c.Fault("resources/read", e2e.Obj{"uri": "none:such"})
	text := w.Succeeds("traffic", "method:tools/call")
	require.Regexp(t, `^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}  \S+ → shop +shop_stat +ok +[\d.]+ .s +\d+ B\n$`, text)
	for filter, want := range map[string]int{
		"name:stat arg.path:src arg.deep.n:5": 1, "name:stat arg.path:doc": 0, "body:shop:stat method:tools/call": 1, "name:stat since:1h ms:<1h": 1,
		"err:yes error:none:such": 1, "method:notifications/*": 1,
	} {
		require.GreaterOrEqual(t, strings.Count(w.Succeeds("traffic", filter), "\n"), want, filter)
		if want == 0 {
			require.Empty(t, w.Succeeds("traffic", filter), filter)
		}
	}
	var line struct {
		Type, Name string
		Params     struct{ Arguments map[string]any }
		Answer     json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(w.Succeeds("traffic", "name:stat", "--json")), &line))
	require.Equal(t, []any{"request", "shop_stat", "src/main.go"}, []any{line.Type, line.Name, line.Params.Arguments["path"]})
	require.Contains(t, string(line.Answer), "shop:stat")

	out = w.Run("traffic", "server:shop ms:>x")
	require.Equal(t, e2e.ExitUsage, out.Code)
	require.Contains(t, out.Stderr, `filter, column 13: ms must be a duration`)
}

// follow starts a command and returns its lines and the process.
func follow(w *e2e.World, args ...string) (*bufio.Scanner, *e2e.Program) {
	var stdout io.Reader
	p := w.Start(func(cmd *exec.Cmd) {
		out, err := cmd.StdoutPipe()
		require.NoError(w.T, err)
		stdout = out
	}, args...)
	return bufio.NewScanner(stdout), p
}

func TestTrafficFollowsTheDaemonUntilAnInterrupt(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Shop())
	c := w.Bridged()
	c.CallText("shop_stat", e2e.Obj{"n": "first"})
	lines, p := follow(w, "traffic", "-f", "name:stat", "--json")
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "first")
	c.CallText("shop_stat", e2e.Obj{"n": "second"})
	require.True(t, lines.Scan())
	require.Contains(t, lines.Text(), "second")
	p.Signal(syscall.SIGINT)
	require.False(t, lines.Scan())
	require.Zero(t, p.Ends(e2e.Patience))
	require.Empty(t, p.Stderr.String())
}

// The daemon returns its traffic in several answers.
func TestTrafficAndExportShowMoreThanAnAnswerHolds(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Shop())
	c := w.Bridged()
	const calls = 25
	for n := range calls {
		c.CallText("shop_stat", e2e.Obj{"n": n, "text": strings.Repeat("x", 60_000)})
	}
	require.Equal(t, calls, strings.Count(w.Succeeds("traffic", "name:stat"), "\n"))
	for _, args := range [][]string{{"traffic", "--json"}, {"export", "--format", "jsonl"}} {
		require.Equal(t, calls, strings.Count(w.Succeeds(append(args, "name:stat")...), `"type":"request"`), args)
	}
	lines, p := follow(w, "traffic", "-f", "name:stat", "--json")
	lines.Buffer(nil, 1<<20)
	for n := range calls {
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), fmt.Sprintf(`"n":%d,`, n))
	}
	p.Signal(syscall.SIGINT)
	require.False(t, lines.Scan())
	require.Zero(t, p.Ends(e2e.Patience))
}

func TestTrafficReadsAndDeletesTheConfigsRecordings(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	w.Backend("shop", e2e.Shop())
	w.Record = e2e.Obj{"bodies": true}
	s := w.Served()
	s.Client(false).CallText("shop_stat", e2e.Obj{"path": "src/main.go"})
	s.Signal(syscall.SIGTERM)
	require.Zero(t, s.Ends(e2e.Patience))
	out := w.Run("traffic", "name:stat", "arg.path:src")
	require.Zero(t, out.Code, out.Stderr)
	require.Regexp(t, `^#\d+ .* → shop +shop_stat +ok `, out.Stdout)
	require.Contains(t, out.Stderr, "no daemon is running; showing the recordings in ")
	out = w.Run("export", "name:stat", "--format", "jsonl")
	require.Contains(t, out.Stdout, "src/main.go")
	require.Contains(t, out.Stderr, "no daemon is running; exporting the recordings in ")
	require.Equal(t, e2e.ExitUsage, w.Run("traffic", "--delete").Code)
	require.Equal(t, e2e.ExitUsage, w.Run("traffic", "--older", "7d").Code)
	require.Contains(t, w.Succeeds("traffic", "--delete", "--older", "7d"), "are older than 7d")
	require.Contains(t, w.Succeeds("traffic", "--delete", "--older", "0s"), "Deleted 1 recording")
	require.Equal(t, e2e.ExitConnect, w.Run("traffic").Code)
}

const recordingHeader = `{"type":"recording","time":"2026-05-04T00:00:00Z","version":1,"goblin":"0.1.0"}` + "\n"

func recordedCall(n int) string {
	return fmt.Sprintf(`{"type":"request","time":"2026-05-04T02:06:%02dZ","n":%d,"client":"c","server":"s","method":"tools/call","name":"s_x","took":1500,"outcome":"success"}`+"\n", n, n)
}

func TestTrafficReadsAndFollowsRecordings(t *testing.T) {
	t.Parallel()
	w := e2e.NewWorld(t)
	dir := filepath.Join(w.Dir, "rec")
	require.NoError(t, os.Mkdir(dir, 0o700))
	put := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		defer f.Close()
		_, err = f.WriteString(text)
		require.NoError(t, err)
	}
	put("a.jsonl", recordingHeader+recordedCall(1)+recordedCall(2)+`{"type":`)
	put("notes.jsonl", "hello")
	out := w.Run("traffic", "--from", dir, "ms:>1s")
	require.Zero(t, out.Code)
	require.Equal(t, 2, strings.Count(out.Stdout, "\n"))
	require.Equal(t, "goblin: read 1 of 2 files\ngoblin: a.jsonl:4: the last line is cut\ngoblin: notes.jsonl: skipped: not a recording of Goblin\n", out.Stderr)
	require.Equal(t, 1, strings.Count(w.Succeeds("traffic", "--from", filepath.Join(dir, "a.jsonl#2")), "\n"))
	out = w.Run("traffic", "--from", filepath.Join(dir, "a.jsonl#9"))
	require.Equal(t, e2e.ExitNotFound, out.Code)
	require.Contains(t, out.Stderr, "request 9: no such request")
	out = w.Run("traffic", "--from", filepath.Join(dir, "notes.jsonl"))
	require.Equal(t, 1, out.Code)
	require.Contains(t, out.Stderr, "notes.jsonl: not a recording of Goblin")
	require.Equal(t, 1, w.Run("traffic", "--from", "/dev/null").Code)

	require.NoError(t, os.Remove(filepath.Join(dir, "notes.jsonl")))
	lines, p := follow(w, "traffic", "--from", dir, "-f", "--limit", "1")
	next := func(want string) {
		t.Helper()
		require.True(t, lines.Scan(), p.Stderr.String())
		require.Contains(t, lines.Text(), want)
	}
	next("#2 ")
	put("a.jsonl", `"state"}`+"\n"+recordedCall(3))
	next("#3 ")
	put("b.jsonl", recordingHeader+recordedCall(4))
	next("#4 ")
	p.Signal(syscall.SIGINT)
	require.False(t, lines.Scan())
	require.Zero(t, p.Ends(e2e.Patience))
}
