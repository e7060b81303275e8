package query_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goblin/registry/query"
)

// times returns the fields of one request, in a zone with daylight saving time.
func times(at time.Time, took time.Duration, args map[string][]string) []query.Field {
	return []query.Field{
		{Name: "body", Kind: query.Text, Costly: true, Text: func(int) string { return strings.Join(args["body"], " ") }},
		{Name: "since", Kind: query.Since, Time: func(int) time.Time { return at }},
		{Name: "at", Kind: query.Range, Time: func(int) time.Time { return at }},
		{Name: "ms", Kind: query.Duration, Number: func(int) float64 { return float64(took) / 1e6 }},
		{Name: "arg", Kind: query.Texts, Path: "NAME", Texts: func(_ int, path string) []string { return args[path] }},
	}
}

func TestTimesAndDurations(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, berlin)
	at := func(s string) time.Time {
		at, err := time.ParseInLocation("2006-01-02 15:04:05.000", s, berlin)
		require.NoError(t, err)
		return at
	}
	for _, c := range []struct {
		filter, at string
		fits       bool
	}{
		{"since:10m", "2026-05-04 11:50:00.000", true},
		{"since:10m", "2026-05-04 11:49:59.999", false},
		{"since:1h30m", "2026-05-04 10:30:00.000", true},
		{"since:02:06", "2026-05-04 02:06:00.000", true},
		{"since:13:00", "2026-05-03 13:00:00.000", true}, // the last 13:00 was yesterday
		{"since:13:00", "2026-05-03 12:59:00.000", false},
		{"since:2026-05-01", "2026-05-01 00:00:00.000", true},
		{"since:2026-05-04T09:00:00Z", "2026-05-04 11:00:00.000", true},
		{"since:2026-05-04T09:00:00Z", "2026-05-04 10:59:59.000", false},
		{"-since:10m", "2026-05-04 11:49:00.000", true},
		{"at:02:06..02:07", "2026-05-04 02:05:59.999", false},
		{"at:02:06..02:07", "2026-05-04 02:06:00.000", true},
		{"at:02:06..02:07", "2026-04-01 02:07:59.999", true},
		{"at:02:06..02:07", "2026-05-04 02:08:00.000", false},
		{"at:2:06", "2026-05-04 02:06:59.000", true},
		{"at:02:06:30.5", "2026-05-04 02:06:30.599", true},
		{"at:02:06:30.5", "2026-05-04 02:06:30.600", false},
		{"at:02:06..", "2026-05-04 23:59:59.999", true},
		{"at:02:06..", "2026-05-04 02:05:59.999", false},
		{"at:..02:06", "2026-05-04 00:00:00.000", true},
		{"at:..02:06", "2026-05-04 02:07:00.000", false},
		{"at:23:50..00:10", "2026-05-04 23:55:00.000", true},
		{"at:23:50..00:10", "2026-05-04 00:10:30.000", true},
		{"at:23:50..00:10", "2026-05-04 12:00:00.000", false},
		{"at:02:06 at:03:00..04:00", "2026-05-04 03:30:00.000", true}, // any of them
		{"at:2026-05-03T23:50..00:10", "2026-05-04 00:10:00.000", true},
		{"at:2026-05-03T23:50..00:10", "2026-05-03 00:10:00.000", false},
		{"at:2026-05-03", "2026-05-03 23:59:59.999", true},
		{"at:2026-05-03..2026-05-04", "2026-05-04 23:59:59.999", true},
		{"at:2026-05-03..", "2026-05-02 23:59:59.999", false},
		{"at:..2026-05-03", "2026-05-04 00:00:00.000", false},
		{`at:"2026-05-03 02:06"`, "2026-05-03 02:06:30.000", true},
		{"at:2026-05-03T00:06:00z..2026-05-03T00:07:00Z", "2026-05-03 02:06:59.000", true},
		{"at:2026-10-25T01:30:00+02:00", "2026-10-25 01:30:00.000", true},
		{"-at:02:06", "2026-05-04 02:06:00.000", false},
		{"at: since: at:..", "2026-05-04 02:06:00.000", true}, // unfinished
		{"ms:>1s", "2026-05-04 02:06:00.000", true},
		{"ms:>1.5s", "2026-05-04 02:06:00.000", false},
		{"ms:1500", "2026-05-04 02:06:00.000", true},
		{"ms:>=1s500ms ms:<1m", "2026-05-04 02:06:00.000", true},
		{"ms:<1k", "2026-05-04 02:06:00.000", false},
		{"arg.a.b:app", "2026-05-04 02:06:00.000", true},
		{"arg.tags:=two", "2026-05-04 02:06:00.000", true},
		{"arg.tags:=two arg.a.b:x", "2026-05-04 02:06:00.000", false}, // paths are ANDed
		{"arg.a.b:x arg.a.b:APPLE", "2026-05-04 02:06:00.000", true},
		{`arg.none:""`, "2026-05-04 02:06:00.000", true},
		{`arg.a.b:""`, "2026-05-04 02:06:00.000", false},
		{"-arg.none:x", "2026-05-04 02:06:00.000", true},
	} {
		fs := times(at(c.at), 1500*time.Millisecond, map[string][]string{"a.b": {"apple"}, "tags": {"one", "two"}})
		q := query.Parse(c.filter, fs)
		require.Empty(t, q.Problem(), c.filter)
		require.Equal(t, c.fits, q.Matches("", noon), "%s at %s", c.filter, c.at)
	}
	fs := times(time.Time{}, 0, nil)
	require.False(t, query.Parse("at:..23:59", fs).Matches("", noon), "without a time")
}

func TestWrongTimesSayWhereAndHowToFix(t *testing.T) {
	t.Parallel()
	fs := times(now, 0, nil)
	for text, want := range map[string]query.Problem{
		"é ms:>x":                          {Text: `ms must be a duration such as >500 (ms), >1.5s or <=2m, not ">x"`, Term: "ms:>x", Column: 3},
		"ms:5parsec":                       {Text: `ms must be a duration such as >500 (ms), >1.5s or <=2m, not "5parsec"`, Term: "ms:5parsec", Column: 1},
		"a  since:soon":                    {Text: `since must be an age such as 10m (s, m, h, d), a time such as 02:06 or a date such as 2026-01-02T02:06, not "soon"`, Term: "since:soon", Column: 4},
		"at:25:00":                         {Text: `at must be a time such as 02:06, or a range such as 02:06..02:07, 02:06.. or 2026-01-02T23:50..00:10, not "25:00"`, Term: "at:25:00", Column: 1},
		"at:02:00..2026-01-":               {Text: `at must be a time such as 02:06, or a range such as 02:06..02:07, 02:06.. or 2026-01-02T23:50..00:10, not "02:00..2026-01-"`, Term: "at:02:00..2026-01-", Column: 1},
		"at:02:00..2026-01-02":             {Text: `the range "02:00..2026-01-02" of at needs a date at its start, too, such as 2026-01-02T23:50..00:10`, Term: "at:02:00..2026-01-02", Column: 1},
		"at:2026-01-03..2026-01-02":        {Text: `the range "2026-01-03..2026-01-02" of at ends before it begins, such as 2026-01-02T23:50..00:10`, Term: "at:2026-01-03..2026-01-02", Column: 1},
		"sinc:10m":                         {Text: `no field "sinc" here; did you mean since:? Quote it to search for text`, Term: "sinc:10m", Column: 1},
		strings.Repeat("x ", 3) + "argh:y": {Text: `no field "argh" here; did you mean arg:? Quote it to search for text`, Term: "argh:y", Column: 7},
	} {
		require.Equal(t, want, query.Parse(text, fs).FirstProblem(), text)
	}
}

func TestBodiesAreReadLastAndOnlyForTheirTerms(t *testing.T) {
	t.Parallel()
	reads := 0
	fs := []query.Field{
		{Name: "body", Kind: query.Text, Costly: true, Text: func(int) string { reads++; return "abc" }},
		{Name: "n", Kind: query.Number, Number: func(i int) float64 { return float64(i) }},
	}
	ix := query.NewIndex(100, func(i int) string { return "row" })
	for text, want := range map[string]int{"n:>5": 0, "body:b n:<3": 3, "body:b zzz": 0, "body:b -row": 0} {
		reads = 0
		q := query.Parse(text, fs)
		_, err := q.Match(t.Context(), ix, now)
		require.NoError(t, err)
		require.Equal(t, want, reads, text)
		require.Equal(t, strings.Contains(text, "body"), q.IsCostly())
	}
}
