package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

type report struct {
	to          io.Writer
	met, missed int
}

func (r *report) section(title string, columns ...string) {
	r.line("\n" + title)
	r.row(columns...)
}

// line writes a line. It ignores errors: then stdout is closed.
func (r *report) line(text string) { _, _ = fmt.Fprintln(r.to, text) }

func (r *report) row(columns ...string) {
	var line strings.Builder
	for i, c := range columns {
		switch {
		case i == 0:
			fmt.Fprintf(&line, "  %-26s", c)
		case i == len(columns)-1:
			fmt.Fprintf(&line, "  %s", c)
		default:
			fmt.Fprintf(&line, " %12s", c)
		}
	}
	r.line(strings.TrimRight(line.String(), " "))
}

func most[T cmp.Ordered](r *report, name string, value, limit T) string {
	return r.budget(value <= limit, fmt.Sprintf("%s %s, budget ≤ %s", name, show(value), show(limit)))
}

func least[T cmp.Ordered](r *report, name string, value, limit T) string {
	return r.budget(value >= limit, fmt.Sprintf("%s %s, budget ≥ %s", name, show(value), show(limit)))
}

func (r *report) budget(ok bool, text string) string {
	if ok {
		r.met++
		return text + ": met"
	}
	r.missed++
	return text + ": MISSED"
}

func (r *report) verdict(took time.Duration) {
	r.line(fmt.Sprintf("\n%d budgets met, %d missed; %s", r.met, r.missed, took.Round(time.Second)))
}

func show(v any) string {
	switch v := v.(type) {
	case time.Duration:
		return duration(v)
	case float64:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprint(v)
}

func duration(d time.Duration) string {
	switch a := d.Abs(); {
	case a < 100*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case a < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	case a < 100*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.0f ms", float64(d)/1e6)
}

func quantile[T cmp.Ordered](all []T, q float64) T {
	var none T
	if len(all) == 0 {
		return none
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median[T cmp.Ordered](all []T) T { return quantile(all, 0.5) }
