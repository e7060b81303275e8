package timeline

import (
	"fmt"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/rawjson"
	"goblin/registry/recording"
	"goblin/registry/termtext"
)

// maxArguments is the text of arguments beside a name, in bytes. maxFailure is the text of
// an error beside a bar, maxProgress a number in a progress notification.
const (
	maxArguments = 60
	maxFailure   = 200
	maxProgress  = 20
)

func shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return termtext.Truncate(s, most) + "…"
}

// ArgumentsText returns the arguments of a call as name=value, safe for the terminal. It
// returns "" for other requests and for incomplete params.
func ArgumentsText(r *registry.TrafficRecord) string {
	if rawjson.Valid(r.Request) != nil {
		return ""
	}
	var b strings.Builder
	for name, value := range rawjson.Members(rawjson.Get(r.Request, "arguments")) {
		if b.Len() > maxArguments {
			break
		}
		text, isText := rawjson.String(value)
		if !isText {
			text = string(value[:min(len(value), maxArguments)])
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(name.Name()) + "=" + termtext.Truncate(text, maxArguments))
	}
	return termtext.Line(shorten(b.String(), maxArguments))
}

// FailureText returns the message of a failed request, safe for the terminal, or "".
func FailureText(r *registry.TrafficRecord) string {
	if !isFailed(r) {
		return ""
	}
	text := recording.ErrorText(r, r.Response)
	if text == "" {
		text = "failed"
	}
	return termtext.Line(shorten(text, maxFailure))
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
	return termtext.Line(shorten(strings.TrimSpace(text), maxArguments))
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
