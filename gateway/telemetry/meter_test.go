package telemetry_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/gateway/telemetry"
	"goblin/registry"
	"goblin/registry/report"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func called(server, tool, client string, at time.Time, took time.Duration) telemetry.MeteredCall {
	return telemetry.MeteredCall{Server: server, Tool: tool, Client: client, At: at, Duration: took, Bytes: 100}
}

func tool(t *testing.T, r report.Report, name string) report.Tool {
	t.Helper()
	for _, one := range r.Tools {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("no tool %s in %v", name, r.Tools)
	return report.Tool{}
}

func TestCallsCountForServerToolAndClient(t *testing.T) {
	t.Parallel()
	c := &clock{noon}
	m := telemetry.OpenMeter(telemetry.MeterOptions{Now: c.read, Listed: func() []telemetry.ListedTool {
		return []telemetry.ListedTool{{Server: "files", Tool: "read", Name: "files_read", Bytes: 401}, {Server: "files", Tool: "stat", Name: "files_stat", Bytes: 99}}
	}})
	for i := range 100 {
		m.Add(called("files", "read", "editor", noon, time.Duration(i+1)*time.Millisecond))
	}
	failed := called("files", "read", "shell", noon.Add(-10*time.Minute), time.Second)
	failed.Failed, failed.NoDuration = true, true
	m.Add(failed)

	r := m.Report()
	require.Len(t, r.Servers, 1)
	files := r.Servers[0]
	require.Equal(t, 2, files.Tools)
	require.Equal(t, 1, files.UnusedTools)
	require.Equal(t, report.Definitions{Bytes: 500, Tokens: 125}, files.Definitions)
	require.EqualValues(t, 101, files.Calls)
	require.EqualValues(t, 1, files.Errors)
	require.EqualValues(t, 10_100, files.Figures.Bytes)
	require.InEpsilon(t, 50, files.P50, 0.2)
	require.InEpsilon(t, 95, files.P95, 0.2, "the user's time does not count")

	read := tool(t, r, "read")
	require.Equal(t, "files_read", read.Listed)
	require.Equal(t, 101, read.Definitions.Tokens, "a quarter, rounded up")
	require.False(t, read.Unused)
	require.Equal(t, noon, read.LastUsed)
	require.Len(t, read.Hour, 60)
	require.Equal(t, report.Minute{Calls: 100, Millis: 50.5}, read.Hour[59])
	require.Equal(t, report.Minute{Calls: 1, Errors: 1}, read.Hour[49])
	require.True(t, tool(t, r, "stat").Unused)
	require.Nil(t, tool(t, r, "stat").Hour)

	require.Len(t, r.Clients, 2)
	require.Equal(t, "editor", r.Clients[0].Name)
	require.EqualValues(t, 1, r.Clients[1].Calls)
	require.EqualValues(t, 101, r.All.Calls)
	var all uint64
	for _, b := range r.Latency {
		all += b.Calls
	}
	require.EqualValues(t, 100, all)

	c.now = noon.Add(70 * time.Minute)
	require.Nil(t, m.Report().All.Hour, "an hour is an hour")
	c.now = noon.Add(60 * time.Minute)
	m.Add(called("files", "read", "editor", c.now, time.Millisecond))
	require.Equal(t, report.Minute{Calls: 1, Millis: 1}, m.Report().All.Hour[59], "a minute counts in its hour only")
	c.now = noon.Add(31 * 24 * time.Hour)
	require.True(t, tool(t, m.Report(), "read").Unused)
}

func TestWhatIsOffCostsNothing(t *testing.T) {
	t.Parallel()
	path := telemetry.UsagePath(t.TempDir(), "/c.yaml")
	off := telemetry.ListedTool{Server: "files", Tool: "write", Name: "files_write", Bytes: 400, Disabled: true}
	unused := telemetry.ListedTool{Server: "files", Tool: "move", Name: "files_move", Bytes: 400, Disabled: true}
	m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Listed: func() []telemetry.ListedTool {
		return []telemetry.ListedTool{{Server: "files", Tool: "read", Name: "files_read", Bytes: 100}, off, unused}
	}})
	m.Add(called("files", "write", "editor", noon, time.Millisecond))
	m.Save()
	kept, err := telemetry.ReadUsage(path, noon)
	require.NoError(t, err)
	for _, r := range []report.Report{m.Report(), kept} {
		require.Equal(t, 1, r.Servers[0].Tools)
		require.Equal(t, report.DefinitionSize(100), r.Servers[0].Definitions)
		write := tool(t, r, "write")
		require.True(t, write.Disabled)
		require.False(t, write.Unused, "need not be disabled")
		require.Zero(t, write.Definitions)
		require.Equal(t, "files_write", write.Listed)
		require.EqualValues(t, 1, write.Calls)
		require.True(t, tool(t, r, "move").Disabled, "even if never called")
	}
	off.Disabled = false
	require.False(t, tool(t, m.Report(), "write").Disabled)
}

func TestWhatWasCountedStaysOverRestarts(t *testing.T) {
	t.Parallel()
	path := telemetry.UsagePath(t.TempDir(), "/c.yaml")
	c := &clock{noon}
	listed := []telemetry.ListedTool{{Server: "files", Tool: "read", Name: "files_read", Bytes: 400}, {Server: "files", Tool: "gone", Name: "files_gone", Bytes: 40}}
	o := telemetry.MeterOptions{Path: path, Now: c.read, Listed: func() []telemetry.ListedTool { return listed }}
	one, other := telemetry.OpenMeter(o), telemetry.OpenMeter(o)
	one.Add(called("files", "read", "editor", noon, 8*time.Millisecond))
	other.Add(called("files", "read", "editor", noon, 8*time.Millisecond))
	one.Save()
	other.Save()
	other.Save()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.EqualValues(t, 2, other.Report().All.Calls, "of both")
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	one.Save()
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "without changes there is no write")

	c.now, listed = noon.Add(time.Hour), listed[:1]
	next := telemetry.OpenMeter(o)
	next.Add(called("files", "read", "editor", c.now, 8*time.Millisecond))
	next.Save()
	require.Zero(t, one.Report().Minutes, "it may have all calls of the last hour")
	require.Equal(t, c.now, next.Report().Minutes, "it has no earlier calls")
	r, err := telemetry.ReadUsage(path, c.now)
	require.NoError(t, err)
	require.Zero(t, r.Minutes, "a file has none at all")
	require.Equal(t, noon, r.Since)
	require.EqualValues(t, 3, r.All.Calls)
	require.EqualValues(t, 3, tool(t, r, "read").Calls)
	require.InEpsilon(t, 8, tool(t, r, "read").P50, 0.2)
	require.EqualValues(t, 3, r.Clients[0].Calls)
	require.Equal(t, 1, r.Servers[0].Tools)
	require.Len(t, r.Tools, 1, "unlisted tools without calls are removed")
	c.now = c.now.Add(time.Hour)
	require.Zero(t, next.Report().Minutes, "after an hour it has all")
}

func TestWhatIsListedNoMoreIsForgottenHalfAYearAfterItsLastCall(t *testing.T) {
	t.Parallel()
	for days, kept := range map[int]int{179: 1, 181: 0} {
		path := telemetry.UsagePath(t.TempDir(), "/c.yaml")
		c := &clock{noon}
		m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Now: c.read})
		m.Add(called("files", "read", "editor", noon, 1))
		m.Save()
		c.now = noon.Add(time.Duration(days) * 24 * time.Hour)
		next := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Now: c.read})
		next.Add(called("other", "x", "shell", c.now, 1))
		next.Save()
		r, err := telemetry.ReadUsage(path, c.now)
		require.NoError(t, err)
		require.Len(t, r.Tools, 1+kept, days)
		require.Len(t, r.Clients, 1+kept, days)
		require.EqualValues(t, 2, r.All.Calls)
	}
}

func TestServersThatListNothingForNowKeepWhatTheirDefinitionsCost(t *testing.T) {
	t.Parallel()
	path := telemetry.UsagePath(t.TempDir(), "/c.yaml")
	up := telemetry.ListedTool{Server: "up", Tool: "t", Name: "up_t", Bytes: 100}
	m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Listed: func() []telemetry.ListedTool {
		return []telemetry.ListedTool{up, {Server: "down", Tool: "t", Name: "down_t", Bytes: 200}}
	}})
	m.Save()
	r := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Listed: func() []telemetry.ListedTool { return []telemetry.ListedTool{up} }}).Report()
	require.Len(t, r.Servers, 2)
	for _, s := range r.Servers {
		require.Equal(t, map[string]report.Definitions{"up": report.DefinitionSize(100), "down": report.DefinitionSize(200)}[s.Name], s.Definitions)
		require.Equal(t, 1, s.Tools)
	}
}

func TestAFileThatCannotBeReadIsSetAsideOnce(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"damaged": `{"version": 1, "rows": [`, "another version": `{"version": 2, "rows": {}}`, "none": `{}`,
		"impossible": `{"version": 1, "began": 1, "all": {"calls": 1, "errors": 2}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "usage.json")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := telemetry.ReadUsage(path, noon)
			require.ErrorContains(t, err, path)
			var log bytes.Buffer
			m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			aside, err := os.ReadFile(path + ".aside")
			require.NoError(t, err)
			require.Equal(t, text, string(aside))
			require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
			m.Add(called("s", "t", "c", noon, 1))
			m.Save()
			r, err := telemetry.ReadUsage(path, noon)
			require.NoError(t, err)
			require.EqualValues(t, 1, r.All.Calls)

			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			m.Add(called("s", "t", "c", noon, 1))
			m.Save()
			m.Save()
			left, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(left), "another writer's file is kept")
			require.EqualValues(t, 2, m.Report().All.Calls)
			require.Equal(t, 2, strings.Count(log.String(), "\n"), log.String())
		})
	}
}

func TestAFolderThatCannotBeWrittenLosesNothingMeanwhile(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(folder, "usage.json")
	var log bytes.Buffer
	m := telemetry.OpenMeter(telemetry.MeterOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), Path: path})
	require.NoError(t, os.WriteFile(folder, nil, 0o600))
	m.Add(called("s", "t", "c", noon, 1))
	m.Save()
	m.Save()
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	require.EqualValues(t, 1, m.Report().All.Calls)
	require.NoError(t, os.Remove(folder))
	m.Save()
	r, err := telemetry.ReadUsage(path, noon)
	require.NoError(t, err)
	require.EqualValues(t, 1, r.All.Calls)
}

func TestForeignNamesAreBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "usage.json")
	c := &clock{noon}
	m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Now: c.read})
	for i := range 6000 {
		m.Add(called("s", fmt.Sprint("tool", i), fmt.Sprint("client", i, strings.Repeat("x", 1000)), noon, 1))
		m.Add(called("short", fmt.Sprint(i), fmt.Sprint(i), noon, 1))
	}
	require.Len(t, m.Report().Tools, 4096)
	require.Len(t, m.Report().Clients, 256)
	m.Save()
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(2<<20))
	r, err := telemetry.ReadUsage(path, noon)
	require.NoError(t, err)
	require.Len(t, r.Tools, 4096)
	require.Len(t, r.Clients, 256)
	require.Len(t, r.Servers, 2)
	for _, s := range r.Servers {
		require.EqualValues(t, 6000, s.Calls)
	}

	c.now = noon.Add(time.Hour)
	next := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Now: c.read})
	next.Add(called("s", "new", "newcomer", c.now, 1))
	next.Save()
	r, err = telemetry.ReadUsage(path, c.now)
	require.NoError(t, err)
	require.Len(t, r.Tools, 4096)
	require.EqualValues(t, 1, tool(t, r, "new").Calls, "recently called tools are kept")
}

func TestATimeCountsInTheFirstBinThatDoesNotEndBefore(t *testing.T) {
	t.Parallel()
	require.Equal(t, 0, report.BinOf(0))
	for bin := range report.Bins {
		end := time.Duration(report.End(bin) * float64(time.Millisecond))
		require.Equal(t, bin, report.BinOf(end), "%v", end)
		require.Equal(t, min(bin+1, report.Bins-1), report.BinOf(end+1), "%v", end)
	}
	require.Equal(t, report.Bins-1, report.BinOf(24*time.Hour))
}

func TestCountingAllocatesNothing(t *testing.T) {
	m := telemetry.OpenMeter(telemetry.MeterOptions{})
	call := called("files", "read", "editor", noon, time.Millisecond)
	m.Add(call)
	require.Zero(t, testing.AllocsPerRun(100, func() { m.Add(call) }))
}

func TestCallsCountFromEverywhereAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "usage.json")
	m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 200 {
				m.Add(called("s", fmt.Sprint(i%7), "c", noon, 1))
				if i%50 == 0 {
					m.Save()
					m.Report()
				}
			}
		})
	}
	all.Wait()
	m.Save()
	r, err := telemetry.ReadUsage(path, noon)
	require.NoError(t, err)
	require.EqualValues(t, 800, r.All.Calls)
	m.ForEach(func(server, tool, client string, calls, _, _ uint64) {
		require.NotEqual(t, tool == "", client == "", "a server's counts are the sum of its tools")
		require.Equal(t, client == "", server != "")
		if client != "" {
			require.Empty(t, tool)
			require.EqualValues(t, 800, calls)
		}
	})
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"began":1,"all":{"calls":2,"took":{"3":2}},"rows":[{"server":"s","tools":1},{"server":"s","tool":"t","calls":2,"last":7,"took":{"3":2}},{"client":"c"}]}`))
	f.Add([]byte(`{"version":1,"began":1,"all":{"took":{"-1":2}}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"all":null,"rows":[{"server":"s","calls":18446744073709551615}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "usage.json")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		if _, err := telemetry.CheckUsage(path); err != nil {
			return
		}
		m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path})
		before := m.Report().All.Calls
		m.Add(called("s", "t", "c", noon, 1))
		m.Save()
		r, err := telemetry.ReadUsage(path, noon)
		require.NoError(t, err, "a written file can be read")
		require.Equal(t, before+1, r.All.Calls)
	})
}

func TestTimesExcludeWhatIsNotTheServersWork(t *testing.T) {
	t.Parallel()
	path := telemetry.UsagePath(t.TempDir(), "/c.yaml")
	m := telemetry.OpenMeter(telemetry.MeterOptions{Path: path, Now: func() time.Time { return noon }})
	add := func(change func(*registry.TrafficRecord)) {
		rec := registry.TrafficRecord{Server: "files", Client: "editor", Time: noon, Duration: 10 * time.Millisecond, Status: "success", Size: 10}
		change(&rec)
		m.Add(telemetry.MeteredCallOf(&rec, "read"))
	}
	for range 10 {
		add(func(*registry.TrafficRecord) {})
	}
	add(func(r *registry.TrafficRecord) {
		r.Duration, r.StartWait = 3*time.Second+10*time.Millisecond, 3*time.Second
	})
	add(func(r *registry.TrafficRecord) { r.Duration, r.UserWait, r.UserAsked = time.Minute, time.Minute, true })
	add(func(r *registry.TrafficRecord) { r.Duration, r.Status = time.Minute, registry.StatusCancelled })
	add(func(r *registry.TrafficRecord) {
		r.Duration, r.Events = time.Minute, []registry.RuleEvent{{Text: "delayed 1 min"}}
	})
	m.Save()
	kept, err := telemetry.ReadUsage(path, noon)
	require.NoError(t, err)
	for _, r := range []report.Report{m.Report(), kept} {
		for _, f := range []report.Figures{r.Servers[0].Figures, r.Tools[0].Figures, r.Clients[0].Figures, r.All} {
			require.EqualValues(t, 14, f.Calls)
			require.InEpsilon(t, 10, f.P95, 0.2)
			require.EqualValues(t, []uint64{1, 60_000, 1, 3000, 1, 0}, []uint64{f.Waits, f.WaitedMs, f.Starts, f.StartMs, f.Cancelled, f.Errors})
			require.Len(t, f.Spread, 1)
			require.EqualValues(t, 11, f.Spread[0].Calls)
		}
	}
}
