package query

import (
	"strings"
	"time"
)

// moment is a time of day, or a time with a date. A time without a zone is in the zone of
// the current time that Match gets.
type moment struct {
	at    time.Time // without a zone, its components in UTC
	zoned bool
	clock bool // only the time of day counts
	width time.Duration
}

// moments are the accepted forms. A T may be a space.
var moments = []struct {
	layout       string
	clock, zoned bool
	width        time.Duration
}{
	{"15:04", true, false, time.Minute},
	{"15:04:05", true, false, time.Second},
	{"2006-01-02", false, false, 24 * time.Hour},
	{"2006-01-02T15:04", false, false, time.Minute},
	{"2006-01-02T15:04:05", false, false, time.Second},
	{"2006-01-02T15:04Z07:00", false, true, time.Minute},
	{"2006-01-02T15:04:05Z07:00", false, true, time.Second},
}

func parseMoment(s string) (m moment, ok bool) {
	s = strings.Replace(strings.ToUpper(s), " ", "T", 1)
	for _, form := range moments {
		at, err := time.Parse(form.layout, s)
		if err != nil {
			continue
		}
		m = moment{at: at, clock: form.clock, zoned: form.zoned, width: form.width}
		if at.Nanosecond() != 0 || strings.Contains(s, ".") {
			m.width = precision(s)
		}
		return m, true
	}
	return m, false
}

// precision returns the unit of the last digit of a fraction of a second.
func precision(s string) time.Duration {
	_, fraction, _ := strings.Cut(s, ".")
	width := time.Second
	for i := 0; i < len(fraction) && '0' <= fraction[i] && fraction[i] <= '9' && width > 1; i++ {
		width /= 10
	}
	return width
}

// in returns the time with the zone of now.
func (m moment) in(now time.Time) time.Time {
	if m.zoned {
		return m.at
	}
	return time.Date(m.at.Year(), m.at.Month(), m.at.Day(), m.at.Hour(), m.at.Minute(), m.at.Second(), m.at.Nanosecond(), now.Location())
}

// end returns the first time after the moment.
func (m moment) end(now time.Time) time.Time {
	if m.width == 24*time.Hour {
		return m.in(now).AddDate(0, 0, 1) // a day may have 23 hours
	}
	return m.in(now).Add(m.width)
}

func sinceMidnight(t time.Time) time.Duration {
	hour, minute, second := t.Clock()
	return time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second + time.Duration(t.Nanosecond())
}

// span is a parsed value of a Since or Range term.
type span struct {
	age      time.Duration // for Since, if isAge
	isAge    bool
	from, to *moment // nil: open
	since    bool
}

// bound is a span at a current time: a range of times, or of times of day.
type bound struct {
	from, to         time.Time // zero: open; to is excluded
	clock            bool
	fromClock, until time.Duration
	zone             *time.Location
}

// parseSince parses 10m, 02:06, 2026-05-04 and RFC 3339.
func parseSince(s string) (span, bool) {
	if age, ok := parseAge(s); ok {
		return span{since: true, isAge: true, age: age}, true
	}
	m, ok := parseMoment(s)
	return span{since: true, from: &m}, ok
}

// SinceTime returns the time that a value of a Since field means, such as 10m or 02:06.
func SinceTime(s string, now time.Time) (time.Time, bool) {
	parsed, ok := parseSince(s)
	if !ok {
		return time.Time{}, false
	}
	b := parsed.at(now)
	return b.from, true
}

// parseRange parses A, A..B, A.. and ..B. It returns a reason that is empty for an
// unknown form.
func parseRange(s string) (r span, reason string, ok bool) {
	first, last, isRange := strings.Cut(s, "..")
	if first != "" {
		m, ok := parseMoment(first)
		if !ok {
			return r, "", false
		}
		r.from = &m
	}
	if !isRange {
		r.to = r.from
		return r, "", true
	}
	if last != "" {
		m, ok := parseMoment(last)
		if !ok {
			return r, "", false
		}
		r.to = &m
	}
	switch {
	case r.from == nil || r.to == nil:
	case r.from.clock && !r.to.clock:
		return r, "needs a date at its start, too", false
	case !r.from.clock && !r.to.clock && r.from.zoned == r.to.zoned && !r.to.end(time.Time{}).After(r.from.in(time.Time{})):
		return r, "ends before it begins", false
	}
	return r, "", true
}

// at returns the bound of a span at a current time.
func (s *span) at(now time.Time) bound {
	b := bound{zone: now.Location()}
	switch {
	case s.isAge:
		b.from = now.Add(-s.age)
	case s.since && s.from.clock:
		b.from = onDay(now, s.from)
		if b.from.After(now) {
			b.from = onDay(now.AddDate(0, 0, -1), s.from)
		}
	case s.since:
		b.from = s.from.in(now)
	case s.from != nil && s.from.clock, s.from == nil && s.to != nil && s.to.clock:
		b.clock, b.until = true, 24*time.Hour
		if s.from != nil {
			b.fromClock = sinceMidnight(s.from.at)
		}
		if s.to != nil {
			b.until = sinceMidnight(s.to.at) + s.to.width
		}
	default:
		b.setTimes(s, now)
	}
	return b
}

func (b *bound) setTimes(s *span, now time.Time) {
	if s.from != nil {
		b.from = s.from.in(now)
	}
	switch {
	case s.to == nil:
	case s.to.clock: // on the first such time after the start
		day := b.from
		for b.to = onDay(day, s.to).Add(s.to.width); !b.to.After(b.from); b.to = onDay(day, s.to).Add(s.to.width) {
			day = day.AddDate(0, 0, 1)
		}
	default:
		b.to = s.to.end(now)
	}
}

// onDay returns the time of day of a moment on the day of a time.
func onDay(day time.Time, m *moment) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), m.at.Hour(), m.at.Minute(), m.at.Second(), m.at.Nanosecond(), day.Location())
}

func (b *bound) contains(t time.Time) bool {
	switch {
	case t.IsZero():
		return false
	case b.clock:
		c := sinceMidnight(t.In(b.zone))
		if b.until <= b.fromClock { // over midnight
			return c >= b.fromClock || c < b.until
		}
		return c >= b.fromClock && c < b.until
	}
	return (b.from.IsZero() || !t.Before(b.from)) && (b.to.IsZero() || t.Before(b.to))
}
