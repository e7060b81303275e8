package chart_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/chart"
	"goblin/tui/theme"
)

func themeOf(ascii bool) *theme.Theme {
	return theme.New(theme.Options{Theme: "none", ASCII: ascii, Getenv: func(string) string { return "" }})
}

func TestAPlotHasTheEndsOfBothScales(t *testing.T) {
	t.Parallel()
	s := chart.Series{Values: []float64{0, 50, math.NaN(), 100}, FromZero: true, Format: termtext.Millis, From: "-5 min", To: "now"}
	unicode := theme.New(theme.Options{Theme: "none", Getenv: func(name string) string { return map[string]string{"LANG": "C.UTF-8"}[name] }})
	require.Equal(t, []string{
		"100 ms ┤         ███  ",
		"       ┤   ▄▄▄   ███  ",
		"     0 ┤▁▁▁███   ███  ",
		"        -5 min   now  ",
	}, chart.Plot(unicode, s, 22, 3))
	require.Equal(t, []string{
		"100 ms |         ###  ",
		"       |   ...   ###  ",
		"     0 |___###   ###  ",
		"        -5 min   now  ",
	}, chart.Plot(themeOf(true), s, 22, 3))
}

func TestPlotsHaveTheirWidthWhateverTheValues(t *testing.T) {
	t.Parallel()
	lk := themeOf(true)
	many := make([]float64, 10_000)
	for i := range many {
		many[i] = float64(i)
	}
	for _, values := range [][]float64{
		nil, {math.NaN()}, {1}, {-math.MaxFloat64, math.MaxFloat64}, {math.Inf(1), 2, math.Inf(-1)}, {5, 5, 5}, {-3, -1}, many,
	} {
		for w := range 60 {
			lines := chart.Plot(lk, chart.Series{Values: values, Format: termtext.Millis, From: "12:00:00", To: "12:59:59"}, w, 3)
			require.True(t, len(lines) == 0 || len(lines) == 4)
			for _, line := range lines {
				require.Equal(t, w, theme.Width(line), "%v", line)
			}
		}
	}
	require.Nil(t, chart.Plot(lk, chart.Series{Values: []float64{math.NaN()}, Format: termtext.Millis}, 60, 3))
}

func TestAHistogramMarksTheQuantiles(t *testing.T) {
	t.Parallel()
	lk := themeOf(true)
	require.Equal(t, []string{
		"up to 1.1 ms |###########           10",
		"up to 1.6 ms |##################### 20 p50",
		"up to 2.3 ms |                       0",
		"up to 3.2 ms |#                      1 p95",
	}, rightTrimmed(chart.Histogram(lk, []report.Bin{{UpTo: 1.1, Calls: 10}, {UpTo: 1.6, Calls: 20}, {UpTo: 2.3}, {UpTo: 3.2, Calls: 1}}, 1.4, 3, 46)))

	var bins [report.Bins]uint64
	for i := range bins {
		bins[i] = uint64(i)
	}
	lines := chart.Histogram(lk, report.Distribution(&bins), 10, 1e5, 60)
	require.LessOrEqual(t, len(lines), 10)
	require.Equal(t, 1, strings.Count(strings.Join(lines, "\n"), "p95"))
	for w := range 80 {
		for _, line := range chart.Histogram(lk, report.Distribution(&bins), 10, 1e5, w) {
			require.Equal(t, w, theme.Width(line))
		}
	}
	require.Nil(t, chart.Histogram(lk, nil, 0, 0, 60))
}

func rightTrimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRight(line, " ")
	}
	return out
}

func BenchmarkPlot(b *testing.B) {
	lk := themeOf(false)
	values := make([]float64, 60)
	for i := range values {
		values[i] = float64(i * i % 17)
	}
	b.ReportAllocs()
	for b.Loop() {
		chart.Plot(lk, chart.Series{Values: values, FromZero: true, Format: termtext.Millis, From: "12:00", To: "now"}, 120, 6)
	}
}
