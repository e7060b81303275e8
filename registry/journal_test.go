package registry

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLogsKeepTheLast(t *testing.T) {
	j := New(Options{}).Logs()
	require.Equal(t, JournalStats{Next: 1}, j.Stats())
	require.Empty(t, j.Window(0, -1))
	for i := range maxLogRecords + 5 {
		require.Equal(t, uint64(i+1), j.Append(LogRecord{Text: fmt.Sprint(i + 1)}))
	}
	require.Equal(t, JournalStats{First: 6, Next: maxLogRecords + 6, Dropped: 5}, j.Stats())
	all := j.Window(0, -1)
	require.Len(t, all, maxLogRecords)
	for i, rec := range all {
		require.Equal(t, uint64(i+6), rec.Seq)
		require.Equal(t, fmt.Sprint(i+6), rec.Text)
	}
	part := j.Window(100, 3)
	require.Equal(t, "100 101 102", part[0].Text+" "+part[1].Text+" "+part[2].Text)
	require.Empty(t, j.Window(maxLogRecords+6, -1))
	require.Empty(t, j.Window(1<<63, 5))
}

func TestLogsAreBoundedInBytes(t *testing.T) {
	j := New(Options{}).Logs()
	long := strings.Repeat("é", maxLogText)
	for range 3 * maxLogBytes / maxLogText {
		j.Append(LogRecord{Text: long})
	}
	bytes := 0
	for _, rec := range j.Window(0, -1) {
		require.LessOrEqual(t, len(rec.Text), maxLogText)
		bytes += len(rec.Text)
	}
	require.Equal(t, bytes, j.bytes)
	require.LessOrEqual(t, bytes, maxLogBytes)
	require.Greater(t, bytes, maxLogBytes-2*maxLogText)
	s := j.Stats()
	require.Equal(t, s.First, s.Dropped+1)
	// After many bytes, many records: the ring wraps where some are gone.
	for i := range 2 * maxLogRecords {
		j.Append(LogRecord{Text: fmt.Sprint(i)})
	}
	require.Len(t, j.Window(0, -1), maxLogRecords)
}

func TestTrafficKeepsBodiesWhileTheyFit(t *testing.T) {
	j := New(Options{}).Traffic()
	body := func(i, n int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%04d", i)), n/4) }
	buf := body(0, 100)
	first := j.Append(TrafficRecord{Method: "tools/call", Request: buf, Response: body(9, 200<<10)})
	clear(buf)
	rec, ok := j.Record(first)
	require.True(t, ok)
	require.Equal(t, body(0, 100), rec.Request, "copied")
	require.Equal(t, body(9, maxBody), rec.Response, "cut")
	require.Equal(t, "100 204800", fmt.Sprint(rec.RequestSize, " ", rec.ResponseSize))
	const each = 20 << 10
	n := maxBodies/each + 50
	for i := range n {
		j.Append(TrafficRecord{Request: body(i, each/2), Response: body(i, each/2)})
	}
	_, ok = j.Record(first)
	require.True(t, ok, "records outlive bodies")
	rec, _ = j.Record(first)
	require.Nil(t, rec.Request)
	held := 0
	for i := range n {
		rec, ok := j.Record(first + 1 + uint64(i))
		require.True(t, ok)
		if rec.Response == nil {
			require.Zero(t, held, "the oldest go first")
			continue
		}
		held++
		require.Equal(t, body(i, each/2), rec.Response)
	}
	require.Equal(t, (maxBodies/(each/2)+1)/2, held)
	require.Nil(t, j.Window(0, 1)[0].Request)
	for range maxTrafficRecords {
		j.Append(TrafficRecord{})
	}
	_, ok = j.Record(first)
	require.False(t, ok)
	_, ok = j.Record(0)
	require.False(t, ok)
	require.Equal(t, uint64(n+1), j.Stats().Dropped)
}

func TestAppendingToAFullJournalDoesNotAllocate(t *testing.T) {
	r := New(Options{})
	rec := TrafficRecord{Method: "tools/call", Name: "x", Request: make([]byte, 1000), Response: make([]byte, 1000)}
	line := LogRecord{Text: "line"}
	for range maxTrafficRecords {
		r.Traffic().Append(rec)
		r.Logs().Append(line)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Traffic().Append(rec); r.Logs().Append(line) }))
}

func BenchmarkTrafficAppend(b *testing.B) {
	r := New(Options{})
	ch := r.Watch(b.Context())
	rec := TrafficRecord{Method: "tools/call", Name: "x", Request: make([]byte, 200), Response: make([]byte, 1000)}
	b.ReportAllocs()
	for b.Loop() {
		r.Traffic().Append(rec)
	}
	<-ch
}
