package traffic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"goblin/gateway/traffic"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = `{"type":"recording","time":"2026-05-04T00:00:00Z","version":1,"goblin":"0.1.0"}` + "\n"

// lines are requests of a recording.
var lines = header +
	`{"type":"client","session":"s1","client":"claude"}` + "\n" +
	`{"type":"running","time":"2026-05-04T02:06:00Z","n":1,"client":"claude","server":"shop","method":"tools/call","name":"shop_slow"}` + "\n" +
	`{"type":"running","time":"2026-05-04T02:06:01Z","n":2,"client":"claude","server":"shop","method":"tools/call","name":"shop_buy"}` + "\n" +
	`{"type":"notification","time":"2026-05-04T02:06:02Z","client":"claude","server":"shop","method":"notifications/progress","outcome":"notification"}` + "\n" +
	`{"type":"request","time":"2026-05-04T02:06:01Z","n":2,"client":"claude","server":"shop","method":"tools/call","name":"shop_buy","took":1234.5,"outcome":"tool error","responseSize":20300,"params":{"arguments":{"item":"tea"}},"answer":{"isError":true,"content":[{"type":"text","text":"sold out\u001b[2J\n  sorry"}]}}` + "\n" +
	`{"type":"request","time":"2026-05-04T02:06:03Z","n":3,"client":"vscode","server":"shop","direction":"client","method":"elicitation/create","took":5,"outcome":"success","responseSize":18}` + "\n"

type output struct{ out, warnings string }

// scan prints a recording with a filter.
func scan(t *testing.T, path, filter string, o traffic.Options) output {
	t.Helper()
	r, err := recording.Open(path)
	require.NoError(t, err)
	defer r.Close()
	var out, warnings bytes.Buffer
	o.Out, o.Numbers = &out, true
	s := traffic.Scan{
		Reader: r, Filter: recording.NewFilter(filter, r.Body), Printer: traffic.NewPrinter(o),
		Warn: func(format string, args ...any) { fmt.Fprintf(&warnings, format+"\n", args...) },
	}
	require.NoError(t, s.Run(t.Context()))
	return output{out.String(), warnings.String()}
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestRowsShowEachRequestOnce(t *testing.T) {
	t.Parallel()
	at := func(s string) string {
		at, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return at.Local().Format("2006-01-02 15:04:05.000")
	}
	got := scan(t, write(t, lines), "", traffic.Options{})
	require.Equal(t, strings.Join([]string{
		"#2  " + at("2026-05-04T02:06:01Z") + "  claude → shop  shop_buy            tool error   1.2 s  20.3 kB  sold out\\x1b[2J sorry",
		"#3  " + at("2026-05-04T02:06:03Z") + "  vscode ← shop  elicitation/create  ok          5.0 ms     18 B",
		"#1  " + at("2026-05-04T02:06:00Z") + "  claude → shop  shop_slow           running",
		"",
	}, "\n"), got.out)
	require.Empty(t, got.warnings)
	require.Contains(t, scan(t, write(t, lines), "status:notification", traffic.Options{}).out, "notifications/progress")
	require.Equal(t, 1, strings.Count(scan(t, write(t, lines), "arg.item:tea", traffic.Options{}).out, "\n"))
}

func TestRowsFitTheTerminal(t *testing.T) {
	t.Parallel()
	long := strings.ReplaceAll(lines, "shop_buy", strings.Repeat("very_long_name_", 10)+"日本語")
	for _, w := range []int{20, 40, 60, 80, 109, 110, 160} {
		got := scan(t, write(t, long), "", traffic.Options{Columns: w, Color: true})
		require.Equal(t, 3, strings.Count(got.out, "\n"))
		for row := range strings.Lines(got.out) {
			require.LessOrEqual(t, termtext.Width(strings.TrimSuffix(row, "\n")), w, row)
		}
		require.Equal(t, 1, strings.Count(got.out, "\x1b[31m"), "only the failure is red")
		require.NotContains(t, got.out, "\x1b[2J")
		require.Equal(t, w >= 80, strings.Contains(got.out, "sold out"), "columns %d", w)
	}
}

func TestJSONHasTheLinesOfTheRecording(t *testing.T) {
	t.Parallel()
	got := scan(t, write(t, lines), "err:yes", traffic.Options{JSON: true})
	var l recording.Line
	require.NoError(t, json.Unmarshal([]byte(got.out), &l))
	require.Equal(t, uint64(2), l.Number)
	require.JSONEq(t, `{"arguments":{"item":"tea"}}`, string(l.Params.JSON))
	require.NotContains(t, got.out, "\x1b")
}

func TestTheLimitKeepsTheLastRequests(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	all.WriteString(header)
	for i := range 1000 {
		fmt.Fprintf(&all, `{"type":"request","n":%d,"method":"tools/list"}`+"\n", i+1)
	}
	got := scan(t, write(t, all.String()), "", traffic.Options{Limit: 2})
	require.Equal(t, 2, strings.Count(got.out, "\n"))
	require.Contains(t, got.out, "#1000")
	require.Equal(t, 1000, strings.Count(scan(t, write(t, all.String()), "", traffic.Options{}).out, "\n"))
}

func TestProblemsOfFilesAreReported(t *testing.T) {
	t.Parallel()
	path := write(t, lines+`{"type":"dropped","count":3,"error":"the queue was full"}`+"\n"+`{"type":"requ`)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "a.jsonl"), []byte("hello"), 0o600))
	got := scan(t, filepath.Dir(path), "body:x", traffic.Options{})
	require.Equal(t, "read 1 of 2 files\na.jsonl: skipped: not a recording of Goblin\norders.jsonl:9: the last line is cut\n3 lines not recorded: the queue was full\n", got.warnings)
	missing := strings.Repeat("ab", 32)
	got = scan(t, write(t, header+`{"type":"request","n":1,"answer":[{"$file":"`+missing+`","size":70000}]}`+"\n"), "body:x", traffic.Options{})
	require.Equal(t, "1 large text not searched: over 16 MiB, missing or damaged\n", got.warnings)
}

func TestFollowPrintsNewRequestsUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	path := write(t, lines)
	r, err := recording.Follow(path)
	require.NoError(t, err)
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	out := &signal{cancel: cancel}
	s := traffic.Scan{Reader: r, Filter: recording.NewFilter("", r.Body), Printer: traffic.NewPrinter(traffic.Options{Out: out, Limit: 1}), Follow: true, Warn: t.Errorf}
	out.written = func(text string) {
		switch {
		case strings.Contains(text, "shop_new"):
			cancel()
		case strings.Contains(text, "elicitation/create"):
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			require.NoError(t, err)
			defer f.Close()
			_, err = f.WriteString(`{"type":"request","n":9,"method":"tools/call","name":"shop_new"}` + "\n")
			require.NoError(t, err)
		}
	}
	require.ErrorIs(t, s.Run(ctx), context.Canceled)
	require.NotContains(t, out.String(), "shop_buy", "the limit applies to the past")
}

// signal calls written for each write.
type signal struct {
	bytes.Buffer
	cancel  func()
	written func(text string)
}

func (s *signal) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	s.written(string(b))
	return n, err
}

// A recording of any size is read with the same memory.
func TestMemoryDoesNotGrowWithTheRecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.jsonl")
	f, err := os.Create(path)
	require.NoError(t, err)
	block := []byte(strings.Repeat(`{"type":"request","time":"2026-05-04T02:06:00Z","n":1,"method":"tools/call","name":"x","outcome":"success","answer":{"content":[{"type":"text","text":"`+strings.Repeat("y", 4000)+`"}]}}`+"\n", 1000))
	_, err = f.WriteString(header)
	require.NoError(t, err)
	for range 25 { // 100 MB
		_, err = f.Write(block)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	var most uint64
	watch := &signal{written: func(string) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
	}}
	r, err := recording.Open(path)
	require.NoError(t, err)
	defer r.Close()
	s := traffic.Scan{Reader: r, Filter: recording.NewFilter("body:y", r.Body), Printer: traffic.NewPrinter(traffic.Options{Out: watch}), Warn: t.Errorf}
	require.NoError(t, s.Run(t.Context()))
	require.Less(t, most, uint64(64<<20))
	require.Equal(t, 25_000, strings.Count(watch.String(), "\n"))
}
