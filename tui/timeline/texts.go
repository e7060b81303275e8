package timeline

import (
	"fmt"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/termtext"
)

// maxProgress is a number in a progress notification, maxMessage its text, in bytes.
const (
	maxProgress = 20
	maxMessage  = 60
)

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return termtext.Truncate(s, most) + "…"
}

// ProgressText returns the progress in the params of a notification, such as 3/10, and its
// message.
func ProgressText(params []byte) string {
	if rawjson.Valid(params) != nil {
		return ""
	}
	text := string(rawjson.Get(params, "progress"))
	if total := rawjson.Get(params, "total"); total != nil {
		text += "/" + string(total)
	}
	text = shorten(text, maxProgress) + " " + rawjson.GetString(params, "message")
	return termtext.Line(shorten(strings.TrimSpace(text), maxMessage))
}

// RangeText formats a range as a value of the filter at, with dates unless it is today.
func RangeText(from, to, now time.Time) string {
	const day, clock = "2006-01-02T", "15:04:05.000"
	layout := clock
	if today := now.Format(day); from.Format(day) != today || to.Format(day) != today {
		layout = day + clock
	}
	return from.Format(layout) + ".." + to.Format(layout)
}

// UsualText compares the duration of a slow request with earlier records. It returns ""
// for others.
func UsualText(r *registry.TrafficRecord, records []*registry.TrafficRecord, now time.Time) string {
	if isNotification(r) || r.Direction == registry.ToClient {
		return ""
	}
	u := UsualOf(r, records)
	f := u.Factor(Work(r, now))
	if f == 0 {
		return ""
	}
	return fmt.Sprintf("median of %s: %s; this one is %d times as long", termtext.Count(u.Calls, "earlier call"), termtext.Duration(u.Median), f)
}
