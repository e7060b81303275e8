// Package chart draws values over time and distributions of durations in characters.
//
// Its functions return lines of exactly the requested width, without styles. They need no
// terminal: only the theme's choice between ASCII and block characters counts.
package chart

import (
	"cmp"
	"math"
	"strings"

	"goblin/registry/report"
	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// The lowest mark means a value at the lower end of the scale.
var (
	blocks      = []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
	asciiBlocks = []string{"_", ".", ":", "#"}
)

// Series is a list of values over time.
type Series struct {
	Values []float64 // oldest first; NaN is a gap
	// FromZero starts the scale at 0 instead of the smallest value.
	FromZero bool
	Format   func(float64) string // of the labels
	// From and To label the ends of the time axis.
	From, To string
}

// minPlot is the minimum width of the part with the values, in cells.
const minPlot = 8

// Plot draws a series in h lines of values and one with the time axis, all w cells wide.
// The labels at the left are the ends of the scale. Plot returns nil without values, or if
// w or h is too small.
func Plot(lk *theme.Theme, s Series, w, h int) []string {
	low, high, ok := Range(s.Values)
	if !ok || h < 1 {
		return nil
	}
	if s.FromZero {
		low = min(low, 0)
		high = max(high, 0)
	}
	top, bottom := cmp.Or(s.Format(high), "0"), cmp.Or(s.Format(low), "0")
	label := max(theme.Width(top), theme.Width(bottom))
	plot := w - label - 2
	if plot < minPlot {
		return nil
	}
	columns := spread(s.Values, plot)
	marks := blocks
	if lk.ASCII {
		marks = asciiBlocks
	}
	rows := make([]strings.Builder, h)
	for _, v := range columns {
		level := levelOf(v, low, high, h*len(marks))
		for y := range h {
			rows[y].WriteString(mark(marks, level-(h-1-y)*len(marks), y == h-1))
		}
	}
	out := make([]string, 0, h+1)
	for y := range h {
		text := ""
		switch y {
		case 0:
			text = top
		case h - 1:
			text = bottom
		}
		out = append(out, lk.Fit(lk.Right(text, label)+" "+lk.TeeRight+rows[y].String(), w))
	}
	if lk.ASCII {
		for i := range out {
			out[i] = strings.Replace(out[i], lk.TeeRight, lk.Vertical, 1)
		}
	}
	axis := lk.Sides(s.From, s.To, min(len(columns), plot))
	return append(out, lk.Fit(theme.Spaces(label+2)+axis, w))
}

// mark returns one cell of a column. fill is the number of its filled levels, which may be
// below 0 or above the number of marks.
func mark(marks []string, fill int, lowest bool) string {
	switch {
	case fill >= len(marks):
		return marks[len(marks)-1]
	case fill > 0:
		return marks[fill-1]
	case fill == 0 && lowest:
		return marks[0]
	}
	return " "
}

// levelOf returns the level of a value from 0 to levels, or a number far below 0 for a gap.
// The lowest value and gaps differ, and so do it and slightly higher values.
func levelOf(v, low, high float64, levels int) int {
	switch {
	case !isFinite(v):
		return math.MinInt32
	case v <= low:
		return 0
	}
	// Halves avoid an overflow of the difference.
	return max(2, int(math.Round((v/2-low/2)/(high/2-low/2)*float64(levels))))
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Range returns the smallest and the largest finite value. ok is false without any.
func Range(values []float64) (low, high float64, ok bool) {
	for _, v := range values {
		if !isFinite(v) {
			continue
		}
		if !ok {
			low, high, ok = v, v, true
		}
		low = min(low, v)
		high = max(high, v)
	}
	return low, high, ok
}

// spread returns at most w columns: each is the maximum of several values, or values are
// repeated an equal number of times.
func spread(values []float64, w int) []float64 {
	if len(values) <= w {
		times := max(w/max(len(values), 1), 1)
		out := make([]float64, 0, len(values)*times)
		for _, v := range values {
			for range times {
				out = append(out, v)
			}
		}
		return out
	}
	out := make([]float64, w)
	for i := range out {
		out[i] = math.NaN()
	}
	for i, v := range values {
		at := i * w / len(values)
		if isFinite(v) && !(out[at] >= v) {
			out[at] = v
		}
	}
	return out
}

const (
	maxBuckets = 10 // lines of a histogram
	minBar     = 8  // cells
)

// Histogram draws a distribution of durations: one line per bucket, with the marks of p50
// and p95, which are in milliseconds. Neighbouring bins share a line if there are many. It
// returns nil without calls, or if w is too small.
func Histogram(lk *theme.Theme, bins []report.Bin, p50, p95 float64, w int) []string {
	bins = merge(bins)
	var most, all uint64
	label, count := 0, 0
	for _, b := range bins {
		most = max(most, b.Calls)
		all += b.Calls
		label = max(label, theme.Width(termtext.Millis(b.UpTo)))
		count = max(count, theme.Width(termtext.FormatCount(int(b.Calls))))
	}
	const upTo, tail = "up to ", " p50 p95"
	bar := min(w-len(upTo)-label-count-len(tail)-3, 40)
	if all == 0 || bar < minBar {
		return nil
	}
	full := "█"
	if lk.ASCII {
		full = "#"
	}
	out := make([]string, len(bins))
	below := 0.0
	for i, b := range bins {
		cells := 0
		if b.Calls > 0 {
			cells = max(1, int(math.Round(float64(b.Calls)/float64(most)*float64(bar))))
		}
		marks := ""
		if p50 > below && p50 <= b.UpTo {
			marks += " p50"
		}
		if p95 > below && p95 <= b.UpTo {
			marks += " p95"
		}
		below = b.UpTo
		out[i] = lk.Fit(upTo+lk.Right(termtext.Millis(b.UpTo), label)+" "+lk.Vertical+lk.Fit(strings.Repeat(full, cells), bar)+" "+
			lk.Right(termtext.FormatCount(int(b.Calls)), count)+marks, w)
	}
	return out
}

// merge combines the same number of neighbouring bins so that at most maxBuckets remain.
func merge(bins []report.Bin) []report.Bin {
	n := (len(bins) + maxBuckets - 1) / maxBuckets
	if n <= 1 {
		return bins
	}
	var out []report.Bin
	for len(bins) > 0 {
		part := bins[:min(n, len(bins))]
		bins = bins[len(part):]
		one := report.Bin{UpTo: part[len(part)-1].UpTo}
		for _, b := range part {
			one.Calls += b.Calls
		}
		out = append(out, one)
	}
	return out
}
