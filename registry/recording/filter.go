package recording

import (
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/query"
)

// maxFilteredBody is the largest body in a file that filters read, in bytes.
const maxFilteredBody = 16 << 20

// Filter selects lines of requests and notifications. It is not safe for concurrent use.
type Filter struct {
	query         *query.Query
	notifications bool
	line          *Line
	record        registry.TrafficRecord
	load          func(*Body) ([]byte, error)
	skipped       int
}

// NewFilter returns a filter for a text in the language of package query. load reads
// bodies that are in files; nil skips them. A filter with a problem matches everything.
func NewFilter(text string, load func(*Body) ([]byte, error)) *Filter {
	f := &Filter{load: load}
	fields := Fields(
		func(int) *registry.TrafficRecord { return &f.record },
		func(int) (params, response []byte) { return f.body(f.line.Params), f.body(f.line.Answer) })
	for i := range fields {
		if fields[i].Name == "error" {
			text := fields[i].Text
			fields[i].Text = func(i int) string {
				if f.line.Error != "" {
					return f.line.Error
				}
				return text(i)
			}
		}
	}
	f.query = query.Parse(text, fields)
	f.notifications = namesNotifications(text)
	return f
}

// namesNotifications reports whether a term of a filter asks for notifications.
func namesNotifications(text string) bool {
	for _, field := range []string{"status", "method"} {
		for _, value := range query.Values(text, field) {
			if strings.HasPrefix(strings.ToLower(strings.TrimPrefix(value, "=")), "notif") {
				return true
			}
		}
	}
	return false
}

// FilterFields returns the fields of filters of traffic, for help and completion.
func FilterFields() []query.Field { return Fields(nil, nil) }

// ShowNotifications includes notifications, which are only shown if a term names them.
func (f *Filter) ShowNotifications() { f.notifications = true }

// Problem returns the first invalid term of the filter.
func (f *Filter) Problem() query.Problem { return f.query.FirstProblem() }

// NeedsBodies reports whether matching reads bodies.
func (f *Filter) NeedsBodies() bool { return f.query.IsCostly() }

// Matches reports whether a line is a request or notification that the filter selects.
func (f *Filter) Matches(l *Line, now time.Time) bool {
	switch l.Type {
	case TypeRequest, TypeRunning:
	case TypeNotification:
		if !f.notifications {
			return false
		}
	default:
		return false
	}
	f.line, f.record = l, l.Record()
	if l.Type == TypeRunning {
		f.record.Status = registry.StatusInFlight
	}
	return f.query.Matches(Words(&f.record), now)
}

// Skipped returns the number of bodies that could not be searched, because they are over
// 16 MiB, missing or damaged.
func (f *Filter) Skipped() int { return f.skipped }

func (f *Filter) body(b *Body) []byte {
	switch {
	case b == nil:
		return nil
	case b.File == "":
		return b.JSON
	case b.Size > maxFilteredBody || f.load == nil:
		f.skipped++
		return nil
	}
	text, err := f.load(b)
	if err != nil {
		f.skipped++
	}
	return text
}

// ErrorText returns the error message of a failed request in a line. It is untrusted.
func (l *Line) ErrorText() string {
	if l.Error != "" || l.Answer == nil {
		return l.Error
	}
	rec := l.Record()
	return ErrorText(&rec, l.Answer.JSON)
}
