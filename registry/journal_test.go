package registry

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

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
	// Many bytes, then many records: the ring wraps after evictions.
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
		j.Append(TrafficRecord{Request: body(i, each/2), Response: body(i, each/2), Wire: body(i, 100)})
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
		require.Equal(t, body(i, 100), rec.Wire)
	}
	require.GreaterOrEqual(t, held, maxBodies/each*8/10)
	require.LessOrEqual(t, held, maxBodies/each)
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

func TestBodiesOfRecordsThatAreGoneTakeNoMemory(t *testing.T) {
	j := New(Options{}).Traffic()
	const size = 150
	for range 5 * maxTrafficRecords {
		j.Append(TrafficRecord{Request: make([]byte, size)})
	}
	require.LessOrEqual(t, j.bodies.used, maxTrafficRecords*size/pageSize+2)
}

func TestTrafficIsGivenBackAsItWasAppended(t *testing.T) {
	j := New(Options{}).Traffic()
	var want []TrafficRecord
	for i := range 3 * maxOrigins {
		who := i
		if i%3 > 0 { // most records repeat an earlier one
			who = i % 7
		}
		rec := TrafficRecord{
			Time: time.Unix(int64(i), 1), Session: fmt.Sprint("session ", who), Client: fmt.Sprint("client ", who%5),
			Receivers: i % 2, Direction: Direction(i % 2), Server: fmt.Sprint("server ", who%3), Method: fmt.Sprint("method ", who%4),
			Name: fmt.Sprint("name ", i), Duration: time.Duration(i), UserAsked: i%2 == 1, Size: int64(i) << 20,
			Status: []string{"success", "failure", StatusNotification}[i%3], Code: -i,
			Request: []byte{byte(i)}, Response: []byte{2, byte(i)}, Wire: []byte{3, 3, byte(i)}, RequestSize: 1, ResponseSize: i + 2,
		}
		if i == 0 {
			rec.Time = time.Time{}
		}
		rec.Seq = j.Append(rec)
		want = append(want, rec)
	}
	notes := 0
	want = slices.DeleteFunc(want, func(rec TrafficRecord) bool { // notifications beyond the limit were dropped
		_, ok := j.Record(rec.Seq)
		if rec.Status == StatusNotification && ok {
			notes++
		}
		return rec.Status == StatusNotification && !ok
	})
	require.Equal(t, maxNotifications, notes)
	for _, rec := range want {
		got, ok := j.Record(rec.Seq)
		require.True(t, ok)
		require.Equal(t, rec, got)
	}
	all := j.Window(0, -1)
	require.Len(t, all, len(want))
	requests, notifications := j.Len()
	require.Equal(t, len(want), requests+notifications)
	require.Equal(t, all[10:20], j.Window(all[10].Seq, 10))
	for i, rec := range want {
		rec.Request, rec.Response, rec.Wire = nil, nil, nil
		require.Equal(t, rec, all[i])
	}
	require.LessOrEqual(t, len(j.origins.all), maxOrigins)
	require.EqualValues(t, 2*maxOrigins, j.Requests(), "notifications do not count")
}

// Notifications have their own ring, so that they never evict requests or their bodies.
// Equal notifications share a record.
func TestNotificationsDisplaceNoRequests(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	note := func(server, name string, at int, params []byte) TrafficRecord {
		return TrafficRecord{
			Time: now.Add(time.Duration(at) * time.Second), Server: server, Name: name, Direction: ToClient,
			Method: "notifications/resources/updated", Status: StatusNotification, Request: params,
		}
	}
	j := New(Options{}).Traffic()
	body := bytes.Repeat([]byte("b"), maxBody)
	call := j.Append(TrafficRecord{Server: "a", Method: "tools/call", Status: "success", Request: body, Response: body})
	j.Append(note("quiet", "q", 0, nil))
	for i := range 20 * maxNotifications {
		j.Append(note("a", fmt.Sprint(i), i, append(body[:maxBody-10:maxBody-10], fmt.Sprintf("%010d", i)...)))
	}
	rec, ok := j.Record(call)
	require.True(t, ok)
	require.Equal(t, body, rec.Response)
	requests, notifications := j.Len()
	require.Equal(t, []int{1, maxNotifications}, []int{requests, notifications})
	require.Equal(t, "q", j.Window(0, -1)[1].Name, "a server evicts its own only")
	require.EqualValues(t, 19*maxNotifications+1, j.Stats().Dropped)
	require.Equal(t, call, j.Stats().First)

	// An hour of updates of two resources makes two records.
	j = New(Options{}).Traffic()
	for i := range 3600 {
		j.Append(note("a", []string{"clock", "other"}[i%2], i, []byte(`{}`)))
		if i == 1800 {
			call = j.Append(TrafficRecord{Server: "a", Method: "tools/call", Status: "success"})
		}
	}
	all := j.Window(0, -1)
	require.Len(t, all, 3)
	require.Equal(t, call, all[0].Seq)
	for i, rec := range all[1:] {
		require.Equal(t, 1800, rec.Count)
		require.EqualValues(t, i+1, rec.First)
		require.True(t, rec.Time.Equal(now.Add(time.Duration(i)*time.Second)), "that of the first")
		require.True(t, rec.Last.Equal(now.Add(time.Duration(3598+i)*time.Second)))
		whole, ok := j.Record(rec.Seq)
		require.True(t, ok)
		require.Equal(t, "{}", string(whole.Request))
	}
	require.EqualValues(t, 3602, j.Stats().Next)
	require.Zero(t, j.Stats().Dropped)
	j.Append(note("a", "clock", 0, []byte(`{"other":"params"}`)))
	_, notifications = j.Len()
	require.Equal(t, 3, notifications, "different ones are not equal")
}

func TestAServerDisplacesItsOwnRecordsOnly(t *testing.T) {
	const quiet, each = 20, 10
	r := New(Options{})
	name := func(i int) string { return fmt.Sprintf("quiet%d", i) }
	body := []byte(strings.Repeat("b", 1000))
	for i := range quiet * each {
		r.Logs().Append(LogRecord{Server: name(i % quiet), Text: fmt.Sprint(i)})
		r.Traffic().Append(TrafficRecord{Server: name(i % quiet), Name: fmt.Sprint(i), Request: body})
		r.Traffic().Append(TrafficRecord{Server: "large", Request: body})
	}
	long := strings.Repeat("x", maxLogText)
	for i := range 3 * maxLogRecords {
		server, text := "loud", "x"
		if i%2 == 0 {
			server, text = "large", long
		}
		r.Logs().Append(LogRecord{Server: server, Text: text})
		r.Traffic().Append(TrafficRecord{Server: server, Request: []byte(text), Response: []byte(text)})
	}
	lines, requests := map[string]int{}, map[string]int{}
	last := uint64(0)
	for _, rec := range r.Logs().Window(0, -1) {
		require.Greater(t, rec.Seq, last)
		last = rec.Seq
		lines[rec.Server]++
	}
	last = 0
	for _, rec := range r.Traffic().Window(0, -1) {
		require.Greater(t, rec.Seq, last)
		last = rec.Seq
		requests[rec.Server]++
		whole, ok := r.Traffic().Record(rec.Seq)
		require.True(t, ok)
		if strings.HasPrefix(rec.Server, "quiet") {
			require.Equal(t, body, whole.Request)
		}
	}
	for i := range quiet {
		require.Equal(t, each, lines[name(i)])
		require.Equal(t, each, requests[name(i)])
	}
	require.Greater(t, lines["loud"], lines["large"], "each has its share of the bytes, too")
	require.Greater(t, lines["large"], 100)
	require.InDelta(t, requests["loud"], requests["large"], 2)
	require.Equal(t, maxTrafficRecords, requests["loud"]+requests["large"]+quiet*each)
	s := r.Logs().Stats()
	require.Equal(t, uint64(1), s.First)
	require.Equal(t, int(s.Next-1-s.Dropped), len(r.Logs().Window(0, -1)))
}

func TestAppendingToAFullJournalDoesNotAllocate(t *testing.T) {
	r := New(Options{})
	rec := TrafficRecord{Session: "1", Method: "tools/call", Name: "x", Request: make([]byte, 1000), Response: make([]byte, 1000)}
	other := rec
	other.Session = "2"
	line := LogRecord{Text: "line"}
	appendAll := func() {
		r.Traffic().Append(rec)
		r.Traffic().Append(other)
		r.Logs().Append(line)
	}
	for range maxTrafficRecords {
		appendAll()
	}
	require.Zero(t, testing.AllocsPerRun(100, appendAll))
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
