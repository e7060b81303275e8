package timeline

import (
	"slices"
	"strconv"
	"time"
)

// steps are the distances of ticks and the lengths of the visible part, ascending.
var steps = func() (all []time.Duration) {
	for unit := time.Microsecond; unit < time.Second; unit *= 10 {
		all = append(all, unit, 2*unit, 5*unit)
	}
	const day = 24 * time.Hour
	for _, more := range []struct {
		unit  time.Duration
		times []time.Duration
	}{
		{time.Second, []time.Duration{1, 2, 5, 10, 20, 30}},
		{time.Minute, []time.Duration{1, 2, 5, 10, 20, 30}},
		{time.Hour, []time.Duration{1, 2, 6, 12}},
		{day, []time.Duration{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}},
	} {
		for _, n := range more.times {
			all = append(all, n*more.unit)
		}
	}
	return all
}()

// stepOf returns the smallest step of at least d, or the greatest one.
func stepOf(d time.Duration) time.Duration {
	i, _ := slices.BinarySearch(steps, d)
	return steps[min(i, len(steps)-1)]
}

// Limits of the visible part. The smallest one has ticks of 1 µs.
const minSpan = 10 * time.Microsecond

// nextSpan returns the next shorter or longer part.
func nextSpan(span time.Duration, shorter bool) time.Duration {
	i, found := slices.BinarySearch(steps, span)
	switch {
	case shorter:
		return max(steps[max(i-1, 0)], minSpan)
	case found:
		i++
	}
	return steps[min(i, len(steps)-1)]
}

// axis maps times to cells.
type axis struct {
	from  time.Time
	span  time.Duration
	cells int
}

// at returns the position of a time in cells. It may be outside.
func (a axis) at(t time.Time) float64 {
	return float64(t.Sub(a.from)) / float64(a.span) * float64(a.cells)
}

func (a axis) end() time.Time { return a.from.Add(a.span) }

// time returns the time at the start of a cell.
func (a axis) time(cell int) time.Time {
	return a.from.Add(time.Duration(float64(a.span) / float64(a.cells) * float64(cell)))
}

// tick is a labelled position.
type tick struct {
	cell  int
	label string
}

// labelRoom is the minimum distance of ticks, in cells.
const labelRoom = 10

// ticks returns the ticks with labels that do not overlap, at most one per labelRoom.
func (a axis) ticks() []tick {
	if a.cells < labelRoom || a.span <= 0 {
		return nil
	}
	step := stepOf(time.Duration(float64(a.span) / float64(a.cells) * labelRoom))
	first := firstTick(a.from, step)
	var out []tick
	room := 0
	before := time.Time{}
	for i := range a.cells/labelRoom + 2 {
		at := tickAfter(first, step, i)
		cell := int(a.at(at))
		if at.Before(a.from) {
			continue
		}
		if cell >= a.cells {
			break
		}
		label := tickLabel(at, before, first, step, a.span)
		if cell < room || cell+len(label) > a.cells {
			label = ""
		} else {
			before, room = at, cell+len(label)+1
		}
		out = append(out, tick{cell, label})
	}
	return out
}

// firstTick returns the first tick at or after a time. Ticks of seconds and more are
// counted from midnight, local time.
func firstTick(from time.Time, step time.Duration) time.Time {
	if step < time.Second {
		at := from.Truncate(step)
		if at.Before(from) {
			at = at.Add(step)
		}
		return at
	}
	y, m, d := from.Date()
	midnight := time.Date(y, m, d, 0, 0, 0, 0, from.Location())
	if step >= 24*time.Hour {
		if midnight.Before(from) {
			return midnight.AddDate(0, 0, 1)
		}
		return midnight
	}
	n := (from.Sub(midnight) + step - 1) / step
	return midnight.Add(n * step)
}

func tickAfter(first time.Time, step time.Duration, i int) time.Time {
	if days := int(step / (24 * time.Hour)); days > 0 {
		return first.AddDate(0, 0, i*days)
	}
	return first.Add(time.Duration(i) * step)
}

// tickLabel repeats only the part of the time that differs from the label before.
func tickLabel(at, before, first time.Time, step, span time.Duration) string {
	const year = 366 * 24 * time.Hour
	sameDay := !before.IsZero() && at.YearDay() == before.YearDay() && at.Year() == before.Year()
	switch {
	case step >= 24*time.Hour && span > year:
		return at.Format("2006-01-02")
	case step >= 24*time.Hour, !before.IsZero() && !sameDay:
		return at.Format("Jan 2")
	case step >= time.Minute:
		return at.Format("15:04")
	case step >= time.Second && sameDay && at.Truncate(time.Minute).Equal(before.Truncate(time.Minute)):
		return at.Format(":05")
	case step >= time.Second:
		return at.Format("15:04:05")
	case before.IsZero():
		return at.Format("15:04:05.000")
	}
	after, unit, name := at.Sub(first), time.Millisecond, " ms"
	if after >= time.Second {
		unit, name = time.Second, " s"
	}
	return "+" + strconv.FormatFloat(float64(after)/float64(unit), 'g', 6, 64) + name
}
