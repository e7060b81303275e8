package timeline_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry"
	"goblin/tui/theme"
	"goblin/tui/timeline"
)

var began = time.Date(2026, 11, 20, 2, 6, 18, 0, time.UTC)

// call returns a call of a tool that begins after a time and lasts for another one.
func call(number uint64, name string, after, took time.Duration) timeline.Call {
	return timeline.Call{
		Key: fmt.Sprint(number, name, after), Client: "agent", Name: name,
		Record: &registry.TrafficRecord{
			Seq: number, Number: number, Time: began.Add(after), Duration: took, Status: "success",
			Session: "s-1", Client: "agent", Server: "odd", Method: "tools/call", Name: name, Request: []byte(`{}`),
		},
	}
}

func with(c timeline.Call, change func(*registry.TrafficRecord)) timeline.Call {
	change(c.Record)
	return c
}

func failed(r *registry.TrafficRecord) { r.Status = registry.StatusToolError }

func sameRequest(a, b *timeline.Call) bool { return bytes.Equal(a.Record.Request, b.Record.Request) }

// outline returns the rows, indented, with their roles where they are not requests.
func outline(l *timeline.Layout) string {
	var all []string
	for _, r := range l.Rows {
		text := strings.Repeat("  ", r.Depth)
		switch r.Role {
		case timeline.Heading:
			text += fmt.Sprintf("%s %d:", r.Title, r.Count)
		case timeline.Retry:
			text += fmt.Sprintf("retry %d %s", r.Count, r.Call.Name)
		case timeline.Poll:
			text += fmt.Sprintf("%d polls", r.Count)
		case timeline.FromServer:
			text += "asks " + r.Call.Record.Method
		case timeline.Progress:
			text += fmt.Sprintf("progress %d", len(r.Progress))
		default:
			text += r.Call.Name
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n")
}

func TestCausedRequestsAreBelowTheirCause(t *testing.T) {
	t.Parallel()
	child := func(parent uint64, method string) func(*registry.TrafficRecord) {
		return func(r *registry.TrafficRecord) {
			r.Parent, r.Method = parent, method
			if !strings.HasPrefix(method, "tools/") {
				r.Number, r.Direction = 0, registry.ToClient
			}
		}
	}
	calls := []timeline.Call{
		// The journal has children before their parents, which end later.
		with(call(3, "inner", 3*time.Second, time.Second), child(2, "tools/call")),
		with(call(4, "", 3500*time.Millisecond, time.Second), child(3, "elicitation/create")),
		call(2, "script", 2*time.Second, 3*time.Second),
		call(1, "first", time.Second, time.Millisecond),
		with(call(5, "orphan", 4*time.Second, time.Second), func(r *registry.TrafficRecord) { r.Parent = 77 }),
		with(call(6, "own cause", 5*time.Second, time.Second), func(r *registry.TrafficRecord) { r.Parent = 6 }),
	}
	notes := []*registry.TrafficRecord{
		{Parent: 3, Method: "notifications/progress", Time: began.Add(3100 * time.Millisecond), Status: registry.StatusNotification},
		{Parent: 3, Method: "notifications/progress", Time: began.Add(3200 * time.Millisecond), Status: registry.StatusNotification},
		{Parent: 99, Method: "notifications/progress", Status: registry.StatusNotification},
		{Parent: 3, Method: "notifications/message", Status: registry.StatusNotification},
	}
	l := timeline.New(calls, notes, timeline.ByClient, sameRequest)
	require.Equal(t, strings.TrimSpace(`
agent 4:
first
script
  inner
    progress 2
    asks elicitation/create
orphan
own cause`), outline(l))
	require.Equal(t, began.Add(time.Second), l.First)
	require.Equal(t, began.Add(6*time.Second), l.End)
}

func TestGroupsAppearInTheOrderOfTheirFirstCall(t *testing.T) {
	t.Parallel()
	calls := []timeline.Call{
		with(call(1, "b", 2*time.Second, 1), func(r *registry.TrafficRecord) { r.Server = "files" }),
		call(2, "a", time.Second, 1),
		with(call(3, "c", 3*time.Second, 1), func(r *registry.TrafficRecord) { r.Session = "s-2" }),
		with(call(4, "no time", 0, 1), func(r *registry.TrafficRecord) { r.Time = time.Time{} }),
	}
	calls[2].Client = "other"
	for by, want := range map[timeline.Grouping]string{
		timeline.ByClient:  "agent 2:\na\nb\nother 1:\nc",
		timeline.ByServer:  "odd 2:\na\nc\nfiles 1:\nb",
		timeline.BySession: "agent s-1 2:\na\nb\nother s-2 1:\nc",
		timeline.Ungrouped: "a\nb\nc",
	} {
		require.Equal(t, want, outline(timeline.New(calls, nil, by, sameRequest)), by)
	}
	require.Empty(t, timeline.New(nil, nil, timeline.ByClient, sameRequest).Rows)
}

func TestARepeatedCallIsARetryOfTheFailedOne(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for name, c := range map[string]struct {
		calls []timeline.Call
		want  string
	}{
		"until it succeeds": {
			[]timeline.Call{with(call(1, "a", 0, s), failed), with(call(2, "a", 2*s, s), failed), call(3, "a", 4*s, s), call(4, "a", 6*s, s)},
			"a\n  retry 1 a\n  retry 2 a\na",
		},
		"other arguments": {
			[]timeline.Call{with(call(1, "a", 0, s), failed), with(call(2, "a", 2*s, s), func(r *registry.TrafficRecord) { r.Request = []byte(`[]`) })},
			"a\na",
		},
		"much later":         {[]timeline.Call{with(call(1, "a", 0, s), failed), call(2, "a", 60*s, s)}, "a\na"},
		"at the same time":   {[]timeline.Call{with(call(1, "a", 0, 5*s), failed), call(2, "a", s, s)}, "a\na"},
		"after a success":    {[]timeline.Call{call(1, "a", 0, s), call(2, "a", 2*s, s)}, "a\na"},
		"of another session": {[]timeline.Call{with(call(1, "a", 0, s), failed), with(call(2, "a", 2*s, s), func(r *registry.TrafficRecord) { r.Session = "s-2" })}, "a\na"},
	} {
		require.Equal(t, c.want, outline(timeline.New(c.calls, nil, timeline.Ungrouped, sameRequest)), name)
	}
}

func TestPollsOfATaskShareARowBelowTheCallThatCreatedIt(t *testing.T) {
	t.Parallel()
	poll := func(number uint64, method, task string) timeline.Call {
		return with(call(number, task, time.Duration(number)*time.Second, time.Millisecond), func(r *registry.TrafficRecord) { r.Method, r.Parent = method, 1 })
	}
	calls := []timeline.Call{
		call(1, "slow", 0, time.Millisecond), poll(2, "tasks/get", "t-1"), poll(3, "tasks/get", "t-2"), poll(4, "tasks/get", "t-1"), poll(5, "tasks/result", "t-1"),
	}
	l := timeline.New(calls, nil, timeline.Ungrouped, sameRequest)
	require.Equal(t, "slow\n  3 polls\n  1 polls", outline(l))
	require.Equal(t, "tasks/result", l.Rows[1].Call.Record.Method, "the last one is shown")
}

func TestSlowCallsAreComparedWithEarlierCallsOfTheSameTool(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var calls []timeline.Call
	var records []*registry.TrafficRecord
	add := func(name string, took time.Duration, change func(*registry.TrafficRecord)) {
		c := with(call(uint64(len(calls)+1), name, time.Duration(len(calls))*time.Second, took), change)
		calls, records = append(calls, c), append(records, c.Record)
	}
	plain := func(*registry.TrafficRecord) {}
	for _, took := range []time.Duration{90, 100, 110} {
		add("a", took*ms, plain)
	}
	add("a", 9000*ms, failed)
	add("b", 5000*ms, plain)
	add("a", 5100*ms, func(r *registry.TrafficRecord) { r.UserWait, r.StartWait, r.QueueWait = 2000*ms, 2000*ms, 1000*ms })
	add("a", 800*ms, plain)
	add("a", 130*ms, plain)
	l := timeline.New(calls, nil, timeline.Ungrouped, sameRequest)
	factor := func(row int) int {
		r := l.Rows[row]
		return r.Usual.Factor(timeline.Work(r.Call.Record, began))
	}
	require.Equal(t, timeline.Usual{Median: 100 * ms, Calls: 4}, l.Rows[6].Usual, "without failures, other tools and waiting times")
	require.Equal(t, 8, factor(6))
	require.Zero(t, factor(7), "a little longer is usual")
	require.Zero(t, factor(1), "too few calls")
	require.Equal(t, l.Rows[6].Usual, timeline.UsualOf(records[6], records))
	require.Zero(t, timeline.Usual{Median: 10 * time.Microsecond, Calls: 9}.Factor(time.Millisecond), "too short to matter")
}

func themeOf(ascii bool) *theme.Theme {
	return theme.New(theme.Options{Theme: "none", ASCII: ascii, Getenv: func(name string) string {
		return map[string]string{"TERM": "dumb", "LANG": "C.UTF-8"}[name]
	}})
}

// frame draws a chart without colours in ASCII.
func frame(c *timeline.Chart, w, h int, now time.Time) string {
	return strings.Join(c.Lines(themeOf(true), w, h, true, now), "\n")
}

func chartOf(calls []timeline.Call, notes ...*registry.TrafficRecord) *timeline.Chart {
	c := timeline.NewChart()
	c.Show(timeline.New(calls, notes, timeline.Ungrouped, sameRequest))
	return c
}

func TestWaitsDifferFromWork(t *testing.T) {
	t.Parallel()
	const s = time.Second
	calls := []timeline.Call{
		with(call(1, "lazy", 0, 10*s), func(r *registry.TrafficRecord) { r.StartWait, r.QueueWait = 4*s, 2*s }),
		with(call(2, "asks", 10*s, 10*s), func(r *registry.TrafficRecord) { r.UserWait = 4 * s }),
		with(call(3, "", 12*s, 4*s), func(r *registry.TrafficRecord) {
			r.Parent, r.Number, r.Direction, r.Method = 2, 0, registry.ToClient, "elicitation/create"
		}),
		with(call(4, "fails", 20*s, 2*s), failed),
		with(call(5, "runs", 22*s, 0), func(r *registry.TrafficRecord) { r.Status = registry.StatusInFlight }),
		with(call(6, "long", 2*s, 16*s), func(r *registry.TrafficRecord) { r.StartWait, r.UserWait = s/500, 15*s }),
	}
	text := frame(chartOf(calls), 120, 10, began.Add(32*s))
	require.Regexp(t, `lazy +s+q+#+ 10 s \(start 4.0 s, queue 2.0 s, call 4.0 s\)`, text)
	require.Regexp(t, `asks +#+\.+#+ 6.0 s \(user 4.0 s\)`, text)
	require.Regexp(t, `elicitation/create +\.+ 4.0 s`, text)
	require.Regexp(t, `fails +#+x 2.0 s`, text)
	require.Regexp(t, `runs +#+> 10 s running`, text)
	require.Regexp(t, `long +#?\.+ 1.0 s \(user 15 s, start 2.0 ms, call`, text, "the longest wait is first, as the end may be cut")
}

// The user's wait is at its time in all calls that waited.
func TestAScriptWaitsWhileItsCallWaits(t *testing.T) {
	t.Parallel()
	const s = time.Second
	in := func(parent uint64) func(*registry.TrafficRecord) {
		return func(r *registry.TrafficRecord) { r.Parent = parent }
	}
	calls := []timeline.Call{
		with(call(1, "script", 0, 20*s), func(r *registry.TrafficRecord) { r.UserWait = 4 * s }),
		with(call(2, "asks", 2*s, 8*s), in(1)),
		with(call(3, "", 4*s, 4*s), func(r *registry.TrafficRecord) {
			r.Parent, r.Number, r.Direction, r.Method = 2, 0, registry.ToClient, "elicitation/create"
		}),
		with(call(4, "works", 10*s, 10*s), in(1)),
	}
	text := frame(chartOf(calls), 120, 9, began.Add(20*s))
	require.Regexp(t, `script +#+\.+#{9}`, text)
	require.Regexp(t, `works +#{9}`, text)
}

func TestTheLegendFitsItsWidth(t *testing.T) {
	t.Parallel()
	calls := []timeline.Call{call(1, "a", 0, time.Second)}
	require.Contains(t, frame(chartOf(calls), 100, 14, began), "s server starts  q waits in queue  . waits for user  * progress  x failed  > running")
	require.Contains(t, frame(chartOf(calls), 78, 14, began), "s start  q queue  . user  * progress  x failed  > running")
	require.NotContains(t, frame(chartOf(calls), 50, 14, began), "fai")
}

func TestLabelsOfTheAxisAreReadableAtEveryZoom(t *testing.T) {
	t.Parallel()
	c := chartOf([]timeline.Call{call(1, "a", 0, 400*24*time.Hour), call(2, "b", time.Second, 20*time.Microsecond)})
	now := began
	c.Follow(false)
	frame(c, 100, 6, now)
	c.Fit()
	seen := map[string]bool{}
	axis := func() string { return strings.TrimSpace(strings.SplitN(frame(c, 100, 6, now), "\n", 2)[0]) }
	for range 60 {
		line := axis()
		require.NotEmpty(t, line)
		labels := strings.Fields(line)
		require.GreaterOrEqual(t, len(labels), 2, line)
		seen[line] = true
		c.Zoom(true)
	}
	for range 80 {
		c.Zoom(false)
		line := axis()
		require.NotEmpty(t, line)
		seen[line] = true
	}
	require.Greater(t, len(seen), 20)
	require.Regexp(t, `20\d\d-\d\d-\d\d`, axis(), "years are long enough for dates")
}

func TestTheAxisFollowsUntilItIsMoved(t *testing.T) {
	t.Parallel()
	const s = time.Second
	running := with(call(9, "runs", 10*s, 0), func(r *registry.TrafficRecord) { r.Status = registry.StatusInFlight })
	calls := []timeline.Call{call(1, "a", 0, s), running}
	c := chartOf(calls)
	require.Contains(t, frame(c, 100, 8, began.Add(20*s)), "10 s running")
	require.Contains(t, frame(c, 100, 8, began.Add(30*s)), "20 s running")
	c.Pan(-0.25)
	require.False(t, c.Live())
	before := strings.SplitN(frame(c, 100, 8, began.Add(30*s)), "\n", 2)[0]
	require.Equal(t, before, strings.SplitN(frame(c, 100, 8, began.Add(50*s)), "\n", 2)[0], "the axis stays")
	c.Show(timeline.New(append(calls, call(10, "new", 51*s, s)), nil, timeline.Ungrouped, sameRequest))
	require.Equal(t, running.Key, c.Key(), "as does the cursor")
	c.Follow(true)
	require.Contains(t, frame(c, 100, 8, began.Add(60*s)), "> odd new")
}

func TestWithoutRunningCallsTheAxisEndsAtTheLastOne(t *testing.T) {
	t.Parallel()
	c := chartOf([]timeline.Call{call(1, "a", 0, time.Second)})
	first := frame(c, 100, 8, began.Add(time.Second))
	require.Equal(t, first, frame(c, 100, 8, began.Add(5*time.Hour)), "nothing is drawn again")
}

func TestTheSelectedCallIsVisible(t *testing.T) {
	t.Parallel()
	var calls []timeline.Call
	for i := range uint64(50) {
		calls = append(calls, call(i+1, fmt.Sprintf("tool%d", i), time.Duration(i)*time.Minute, time.Second))
	}
	c := chartOf(calls)
	frame(c, 100, 12, began)
	c.Zoom(true)
	c.MoveTo(3)
	c.CursorMoved()
	require.Regexp(t, `> odd tool3 +#+ 1.0 s`, frame(c, 100, 12, began))
	require.True(t, c.Find(calls[30].Key))
	require.Regexp(t, `> odd tool30 +#+ 1.0 s`, frame(c, 100, 12, began))
	require.False(t, c.Find("unknown"))
}

func TestTwoMarksSelectARange(t *testing.T) {
	t.Parallel()
	c := chartOf([]timeline.Call{call(1, "a", 0, time.Second), call(2, "b", 5*time.Second, 2*time.Second)})
	frame(c, 100, 8, began)
	_, _, done := c.Mark()
	require.False(t, done)
	require.True(t, c.Unmark())
	c.Mark()
	c.MoveTo(0)
	from, to, done := c.Mark()
	require.True(t, done)
	require.Equal(t, began, from)
	require.Equal(t, began.Add(5*time.Second), to)
	require.False(t, c.Unmark())
}

func TestEqualProgressIsDrawnAtBothEnds(t *testing.T) {
	t.Parallel()
	note := &registry.TrafficRecord{
		Parent: 1, Method: "notifications/progress", Status: registry.StatusNotification, Count: 5,
		Time: began.Add(2 * time.Second), Last: began.Add(8 * time.Second),
	}
	require.Regexp(t, `progress +\*-+\*`, frame(chartOf([]timeline.Call{call(1, "a", 0, 10*time.Second)}, note), 100, 8, began))
}

func TestConcurrencyIsDrawnPerServer(t *testing.T) {
	t.Parallel()
	const s = time.Second
	calls := []timeline.Call{
		call(1, "a", 0, 10*s), call(2, "b", 2*s, 4*s), call(3, "c", 4*s, s), call(4, "d", 5*s, s), // one after the other
		with(call(5, "e", 8*s, s), func(r *registry.TrafficRecord) { r.Server = "files" }),
		with(call(6, "f", 8*s, 2*s), func(r *registry.TrafficRecord) { r.Server, r.QueueWait = "files", s }),
	}
	text := frame(chartOf(calls), 120, 24, began)
	require.Contains(t, text, "odd in flight, max 3")
	require.Contains(t, text, "files in flight, max 1")
	require.Contains(t, text, "queue waiting, max 1")
}

func TestAFrameHasItsSizeAndNoControlCharacters(t *testing.T) {
	t.Parallel()
	evil := "\x1b[2J\u202eevil\n日本"
	calls := []timeline.Call{
		with(call(1, evil, 0, -time.Hour), func(r *registry.TrafficRecord) { r.Server, r.Method = evil, evil }),
		with(call(2, evil, 1<<62, 1<<62), func(r *registry.TrafficRecord) { r.StartWait, r.UserWait, r.QueueWait = 1<<62, 1<<62, 1<<62 }),
		with(call(3, "old", 0, time.Hour), func(r *registry.TrafficRecord) { r.Time = time.Date(1, 1, 1, 1, 0, 0, 0, time.UTC) }),
	}
	for _, ascii := range []bool{false, true} {
		lk := themeOf(ascii)
		for w := 4; w < 130; w += 7 {
			for h := range 20 {
				c := chartOf(calls)
				for range 4 {
					lines := c.Lines(lk, w, h, true, began)
					require.Len(t, lines, h)
					for _, line := range lines {
						require.Equal(t, w, theme.Width(line), "%q", line)
						require.NotContains(t, line, "\x1b[2J")
						require.NotContains(t, line, "\u202e")
					}
					c.Move(-1)
					c.Fit()
					c.Zoom(true)
				}
			}
		}
	}
}
