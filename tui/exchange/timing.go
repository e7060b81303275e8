package exchange

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// barCells is the width of a bar, in cells. maxChildren is the number of requests and
// notifications below it.
const (
	barCells    = 20
	maxChildren = 100
)

// phase is a part of a request's duration.
type phase struct {
	label      string
	start, end time.Duration // since the request
	style      theme.Style
}

// timing shows what the duration consists of, then the records that the request caused.
func (e Exchange) timing(now time.Time) []viewer.Section {
	r, lk := &e.Record, e.Theme
	total := max(r.Duration, 0)
	if r.Status == registry.StatusInFlight {
		total = max(now.Sub(r.Time), 0)
	}
	var rows []viewer.Field
	for _, p := range phases(r, lk, total) {
		rows = append(rows, bar(lk, p, total))
	}
	facts := []viewer.Field{{Label: "began", Value: FormatTime(r.Time)}, {Label: "ended", Value: endText(r)}}
	blocks := append(e.usual(now), viewer.Section{Kind: viewer.Fields, Fields: rows}, viewer.Section{Kind: viewer.Fields, Fields: facts})
	return slices.Concat(blocks, e.children(total, now), ruleBlocks(r))
}

// phases returns the parts of a duration in order. The server may wait for the user
// at any time; that part is drawn last.
func phases(r *registry.TrafficRecord, lk *theme.Theme, total time.Duration) []phase {
	all := []phase{{label: "total", end: total}}
	at := time.Duration(0)
	add := func(label string, took time.Duration, style theme.Style) {
		took = min(max(took, 0), total-at)
		if took > 0 {
			all = append(all, phase{label, at, at + took, style})
			at += took
		}
	}
	add("server starts", r.StartWait, lk.Warn)
	add("waits for a slot", r.QueueWait, lk.Warn)
	works := "server works"
	if r.Server == "" || r.Server == registry.Local {
		works = "Goblin works"
	}
	add(works, total-r.StartWait-r.QueueWait-r.UserWait, lk.Good)
	add("waits for the user", r.UserWait, lk.Accent)
	return all
}

func bar(lk *theme.Theme, p phase, total time.Duration) viewer.Field {
	text := uicontext.FormatDuration(p.end - p.start)
	if total <= 0 {
		return viewer.Field{Label: p.label, Value: text}
	}
	cell := func(d time.Duration) int { return int(float64(barCells) * float64(d) / float64(total)) }
	from := min(max(cell(p.start), 0), barCells-1)
	to := min(max(cell(p.end), from+1), barCells)
	full, empty := "█", "·"
	if lk.ASCII {
		full, empty = "#", "."
	}
	value := strings.Repeat(empty, from) + strings.Repeat(full, to-from) + strings.Repeat(empty, barCells-to)
	return viewer.Field{Label: p.label, Value: fmt.Sprintf("%s  %7s", value, text), Style: p.style}
}

// children shows the requests and notifications that the request caused.
func (e Exchange) children(total time.Duration, now time.Time) []viewer.Section {
	r := &e.Record
	if r.Number == 0 {
		return nil
	}
	var rows []viewer.Field
	found := 0
	for _, o := range e.Others() {
		if o.Parent != r.Number {
			continue
		}
		if found++; found > maxChildren {
			continue
		}
		name := strings.TrimSpace(uicontext.SanitizeLine(o.Method) + " " + uicontext.SanitizeLine(cmp.Or(o.Original, o.Name)))
		start := min(max(o.Time.Sub(r.Time), 0), total)
		end := start + max(o.Duration, 0)
		if o.Status == registry.StatusInFlight {
			end = max(now.Sub(r.Time), start)
		}
		f := bar(e.Theme, phase{label: clock(o.Time, millis), start: start, end: min(end, total)}, total)
		if recording.IsNotification(o) {
			f.Value = strings.TrimRight(f.Value[:strings.Index(f.Value, "  ")], " ")
		}
		f.Value += "  " + name
		if recording.IsFailure(o) {
			f.Value, f.Style = f.Value+"  ! "+failureText(o), e.Theme.Bad
		}
		rows = append(rows, f)
	}
	if len(rows) == 0 {
		return nil
	}
	title := "Caused by it"
	if found > maxChildren {
		title += fmt.Sprintf(" (the first %d of %d)", maxChildren, found)
	}
	return []viewer.Section{{Title: title, Kind: viewer.Fields, Fields: rows}}
}
