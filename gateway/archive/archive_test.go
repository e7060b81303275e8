package archive_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/archive"
	"goblin/gateway/config"
	"goblin/registry"
	"goblin/registry/recording"
)

func load(t *testing.T, path string, o archive.Options) *archive.Archive {
	t.Helper()
	a, err := archive.Load(t.Context(), path, o)
	require.NoError(t, err)
	return a
}

func TestARecordingShowsWhatClientsSaw(t *testing.T) {
	t.Parallel()
	a := load(t, "testdata/night.jsonl", archive.Options{})
	var names []string
	for e := range a.Registry.Load().All(registry.Tool) {
		names = append(names, e.Listed)
	}
	require.Equal(t, []string{"files_add", "web_fetch"}, names, "with the recorded names and filters")
	web, _ := a.Registry.State("web")
	require.Equal(t, registry.StateRetrying, web.State)
	require.Equal(t, "connection lost", web.LastError)
	files, _ := a.Registry.State("files")
	require.Equal(t, "files-server 2.1 ready", files.ServerName+" "+files.ServerVersion+" "+string(files.State))
	require.Equal(t, "claude-code", a.Registry.Sessions()[0].Client)
	changes := a.Registry.ListChanges().Window(0, -1)
	require.Len(t, changes, 1)
	require.Equal(t, []string{`argument "y" is now required`}, changes[0].What)
	require.Equal(t, "02:07", changes[0].Time.UTC().Format("15:04"))

	b := archive.Backend{Archive: a}
	require.Equal(t, []string{"coding"}, b.Profiles())
	require.Equal(t, 1, b.VisibleCounts("coding")[registry.Tool])
	require.Equal(t, []string{"profile coding"}, b.SessionDetails("c1"))
	require.Len(t, b.InFlight(), 1)
	require.Equal(t, uint64(6), b.InFlight()[0].Number)
	require.EqualValues(t, 4, b.Usage().All.Calls)
	require.EqualValues(t, 1, b.Usage().All.Errors)
	_, err := b.Request(t.Context(), "tools/call", nil, nil)
	require.EqualError(t, err, archive.ReadOnly)

	require.Equal(t, "2026-03-01T02:06:00Z to 2026-03-01T02:07:10Z", a.Start.UTC().Format(time.RFC3339)+" to "+a.End.UTC().Format(time.RFC3339))
	require.Equal(t, "3 events not recorded; 2 unreadable parts", a.Summary())
	var logs []string
	for _, rec := range a.Registry.Logs().Window(0, -1) {
		logs = append(logs, rec.Text)
	}
	all := strings.Join(logs, "\n")
	require.Contains(t, all, "disk: almost full")
	require.Contains(t, all, "3 events not recorded: the queue was full")
	require.Contains(t, all, "the last line is cut")
	require.Contains(t, all, "body 00000000… of 70.0 kB is missing")
}

// A file begins with the connected sessions, which are older than the recording.
func TestARecordingBeginsWithItsFirstEvent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"type":"recording","time":"2026-03-01T02:06:00Z","version":1,"bodies":true}
{"type":"client","time":"2026-02-01T00:00:00Z","session":"u1","client":"goblin","transport":"screen"}
{"type":"end","time":"2026-03-01T02:07:00Z"}
`), 0o600))
	a := load(t, path, archive.Options{})
	require.Equal(t, "2026-03-01T02:06:00Z", a.Start.UTC().Format(time.RFC3339))
	require.True(t, a.Registry.Sessions()[0].Screen, "a UI is no client")
}

func TestLargeBodiesAreReadFromTheirFiles(t *testing.T) {
	t.Parallel()
	a := load(t, "testdata/night.jsonl", archive.Options{})
	var found registry.TrafficRecord
	for _, rec := range a.Registry.Traffic().Window(0, -1) {
		if rec.Number == 3 {
			found, _ = a.Registry.Traffic().Record(rec.Seq)
		}
	}
	require.Len(t, found.Response, found.ResponseSize)
	require.Contains(t, string(found.Response), "large the end")
	require.Contains(t, string(found.Request), "https://example.com")
}

func TestAResourceHasItsLastRecordedContent(t *testing.T) {
	t.Parallel()
	a := load(t, "testdata/night.jsonl", archive.Options{})
	inv := a.Registry.Contents().Last(registry.Resource, "files", "file:///notes.md")
	require.NotNil(t, inv)
	require.Contains(t, string(inv.Result), "Notes of the night")
}

func TestOnlyTheNewestRequestsAreKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "many.jsonl")
	noon := time.Date(2026, 3, 1, 2, 0, 0, 0, time.Local)
	var text strings.Builder
	text.WriteString(`{"type":"recording","version":1,"bodies":true,"settings":{"servers":{"s":{}}}}` + "\n")
	for i := range 1000 {
		fmt.Fprintf(&text, `{"type":"request","time":"%s","n":%d,"server":"s","method":"tools/call","name":"s_t","outcome":"success","params":{}}`+"\n", noon.Add(time.Duration(i%60)*time.Second).Format(time.RFC3339), i+1)
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	var total int64
	a := load(t, path, archive.Options{Requests: 100, Progress: func(read, all int64) {
		require.LessOrEqual(t, read, all)
		total = all
	}})
	require.EqualValues(t, text.Len(), total)
	require.Equal(t, "the newest 100 of 1000 requests", a.Summary())
	require.Equal(t, uint64(901), a.Registry.Traffic().Window(0, 1)[0].Number)

	require.Equal(t, 17, load(t, path, archive.Options{Filter: "server:s at:02:00:07..02:00:07"}).Kept)
	require.Zero(t, load(t, path, archive.Options{Filter: "since:1h"}).Kept)
	require.Zero(t, load(t, path, archive.Options{NoTraffic: true}).Kept)
	_, err := archive.Load(t.Context(), path, archive.Options{Filter: "ms:>long"})
	require.ErrorContains(t, err, "filter: ms:>long")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = archive.Load(ctx, path, archive.Options{})
	require.ErrorIs(t, err, context.Canceled)
}

// Restarts between files must not show old sessions, and must show changed lists.
func TestTheFilesOfAFolderFollowEachOther(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(session, tool string) string {
		return `{"type":"recording","version":1,"bodies":true,"settings":{"servers":{"s":{}}}}` + "\n" +
			`{"type":"server","time":"2026-03-01T02:00:00Z","server":"s","lists":{"tools":[{"name":"` + tool + `"}]}}` + "\n" +
			`{"type":"client","session":"` + session + `","client":"x"}` + "\n" +
			`{"type":"running","n":1,"session":"` + session + `","method":"tools/call"}` + "\n"
	}
	first, err := os.Create(filepath.Join(folder, "1.jsonl.gz"))
	require.NoError(t, err)
	z := gzip.NewWriter(first)
	_, err = z.Write([]byte(file("old", "a")))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, first.Close())
	require.NoError(t, os.WriteFile(filepath.Join(folder, "2.jsonl"), []byte(file("new", "b")), 0o600))
	a := load(t, folder, archive.Options{})
	require.Len(t, a.Registry.Sessions(), 1)
	require.Equal(t, "new", a.Registry.Sessions()[0].ID)
	require.Len(t, archive.Backend{Archive: a}.InFlight(), 1)
	var ops []string
	for _, c := range a.Registry.ListChanges().Window(0, -1) {
		ops = append(ops, c.Op+" "+c.Name)
	}
	require.Equal(t, []string{"removed a", "added b"}, ops)
}

// Recorders write the lists that are complete, and the others when servers have listed.
func TestFirstListsAreNoChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.jsonl")
	start := `{"type":"server","server":"s","lists":{"tools":[{"name":"a"}]}}` + "\n" +
		`{"type":"list","server":"s","list":"resources","added":[{"uri":"x:1"}]}` + "\n"
	text := `{"type":"recording","version":1,"bodies":true,"settings":{"servers":{"s":{}}}}` + "\n" + start + start +
		`{"type":"list","server":"s","list":"prompts","added":[{"name":"p"}],"changes":[{"name":"p","op":"added"}]}` + "\n" +
		`{"type":"list","server":"s","list":"prompts","changes":[{"name":"p","op":"added"}]}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	a := load(t, path, archive.Options{})
	require.Equal(t, 1, a.Registry.Load().Count(registry.Resource))
	changes := a.Registry.ListChanges().Window(0, -1)
	require.Len(t, changes, 1)
	require.Equal(t, "added p", changes[0].Op+" "+changes[0].Name)
}

func TestDamagedSettingsShowTheRest(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{``, `,"settings":7`, `,"settings":{"servers":[]}`, `,"settings":{"servers":{"s":{"tools":7}}}`, `,"settings":{"nonsense":true,"servers":{"s":null}}`} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		text := `{"type":"recording","version":1,"bodies":true` + settings + "}\n" +
			`{"type":"server","server":"s","lists":{"tools":[{"name":"a"},7,{"name":"\u001b"}],"unknown":[{}]}}` + "\n" +
			`{"type":"list","server":"s","list":"tools","removed":["a"],"added":[{}]}` + "\n" +
			`{"type":"request","n":1,"server":"t","method":"x","answer":[{"$file":"../../etc/passwd","size":3}]}` + "\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		a := load(t, path, archive.Options{})
		require.Equal(t, 1, a.Kept, settings)
		require.NotEmpty(t, a.Problems, settings)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "text": "hello\n"} {
		path := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := archive.Load(t.Context(), path, archive.Options{})
		require.ErrorContains(t, err, "not a recording", name)
	}
	_, err := archive.Load(t.Context(), filepath.Join(t.TempDir(), "missing"), archive.Options{})
	require.ErrorIs(t, err, recording.ErrNotFound)
}

func TestSettingsOfAConfigKeepNamesAndOrder(t *testing.T) {
	t.Parallel()
	cfg, err := config.Parse("c.yaml", []byte(`{gateway: {namespace: flat, max_name: 40}, servers: {b: {command: x, tools: {deny: [no]}, disabled: true}, a: {url: "https://example.com/mcp", overrides: {tools: {t: {name: other}}}}}}`), os.LookupEnv)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.jsonl")
	text := `{"type":"recording","version":1,"bodies":true,"settings":` + string(config.Settings(cfg)) + "}\n" +
		`{"type":"server","server":"a","lists":{"tools":[{"name":"t"}],"resources":[{"uri":"x:1"}]}}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	a := load(t, path, archive.Options{})
	require.Empty(t, a.Problems)
	var states []string
	for _, s := range a.Registry.States() {
		states = append(states, s.Name+" "+string(s.State))
	}
	require.Equal(t, []string{"b disabled", "a ready"}, states)
	for e := range a.Registry.Load().All(registry.Tool) {
		require.Equal(t, "a_other", e.Listed)
	}
	for e := range a.Registry.Load().All(registry.Resource) {
		require.Equal(t, "a_x:1", strings.ReplaceAll(e.Listed, "x_1", "x:1"), "flat")
	}
}

// Settings of a stranger must not make Goblin read files.
func TestSettingsOfARecordingReadNoFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file, path := filepath.Join(folder, "private"), filepath.Join(folder, "x.jsonl")
	require.NoError(t, os.WriteFile(file, []byte("no variable"), 0o600))
	settings := `{"env_file":"` + file + `","servers":{"s":{"command":"` + file + `","url":"https://a.example","cwd":"` + file + `"}}}`
	require.NoError(t, os.WriteFile(path, []byte(`{"type":"recording","version":1,"settings":`+settings+"}\n"), 0o600))
	a := load(t, path, archive.Options{})
	require.Empty(t, a.Problems)
	_, ok := a.Registry.State("s")
	require.True(t, ok)
}

// A recording of a stranger may be small and compressed, but describe gigabytes.
func TestARecordingTakesLimitedMemory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	for name, row := range map[string]struct {
		lines int
		line  string // with the number of the line
		check func(t *testing.T, a *archive.Archive)
	}{
		"unanswered requests": {12_000, `{"type":"running","server":"s","session":"c","n":%d,"method":"tools/call","name":"x"}`, func(t *testing.T, a *archive.Archive) {
			require.Len(t, archive.Backend{Archive: a}.InFlight(), 10_000)
		}},
		"params of unanswered requests": {80, `{"type":"running","server":"s","session":"c","n":%d,"method":"tools/call","params":{"x":"` + long + `"}}`, func(t *testing.T, a *archive.Archive) {
			require.Len(t, archive.Backend{Archive: a}.InFlight(), 63)
		}},
		"sessions": {12_000, `{"type":"client","session":"c%d"}`, func(t *testing.T, a *archive.Archive) {
			require.Len(t, a.Registry.Sessions(), 10_000)
		}},
		"handshakes": {2, `{"type":"server","server":"s%d","handshake":{"instructions":"` + long + `"}}`, func(t *testing.T, a *archive.Archive) {
			s, ok := a.Registry.State("s1")
			require.True(t, ok)
			require.Empty(t, s.Instructions)
		}},
		"errors of servers": {2, `{"type":"state","server":"s%d","state":"failed","error":"` + long + `"}`, func(t *testing.T, a *archive.Archive) {
			s, _ := a.Registry.State("s1")
			require.Less(t, len(s.LastError), 1<<17)
		}},
		"steps of rules": {2, `{"type":"request","server":"s","session":"c","n":%d,"method":"ping","outcome":"success","rules":[` + strings.Repeat(`{"rule":1,"text":"y"},`, 99) + `{"rule":1,"text":"y"}]}`, func(t *testing.T, a *archive.Archive) {
			require.Len(t, a.Registry.Traffic().Window(0, -1)[0].Events, 32)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "x.jsonl")
			text := []byte(`{"type":"recording","version":1,"bodies":true,"settings":{}}` + "\n" + `{"type":"client","session":"c"}` + "\n")
			for n := range row.lines {
				text = fmt.Appendf(text, row.line+"\n", n+1)
			}
			require.NoError(t, os.WriteFile(path, text, 0o600))
			row.check(t, load(t, path, archive.Options{}))
		})
	}
}
