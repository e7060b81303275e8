package stack

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"goblin/gateway/upstream"
	"goblin/registry"
)

// journal also writes log lines into the registry's journal for the UI: info and above,
// or more if the log has a lower level. The attributes server and session become fields.
type journal struct {
	next   slog.Handler
	logs   *registry.LogJournal
	redact func(string) string

	server, session string
	attrs           string // rendered, each after a space
	group           string // prefix, ending with a dot
}

// Enabled implements [slog.Handler].
func (j *journal) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || j.next.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (j *journal) Handle(ctx context.Context, r slog.Record) error {
	if !upstream.IsJournaled(ctx) {
		to := *j
		r.Attrs(func(a slog.Attr) bool {
			to.add(j.group, a)
			return true
		})
		at := r.Time
		if at.IsZero() {
			at = time.Now()
		}
		j.logs.Append(registry.LogRecord{
			Time: at, Server: to.server, Session: to.session, Level: r.Level,
			Source: registry.SourceGoblin, Text: j.redact(r.Message + to.attrs),
		})
	}
	if !j.next.Enabled(ctx, r.Level) {
		return nil
	}
	return j.next.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (j *journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	to := *j
	to.next = j.next.WithAttrs(attrs)
	for _, a := range attrs {
		to.add(j.group, a)
	}
	return &to
}

// WithGroup implements [slog.Handler].
func (j *journal) WithGroup(name string) slog.Handler {
	to := *j
	to.next = j.next.WithGroup(name)
	if name != "" {
		to.group += name + "."
	}
	return &to
}

func (j *journal) add(group string, a slog.Attr) {
	v := a.Value.Resolve()
	switch {
	case v.Kind() == slog.KindGroup:
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, inner := range v.Group() {
			j.add(group, inner)
		}
	case a.Key == "":
	case group == "" && a.Key == "server":
		j.server = v.String()
	case group == "" && a.Key == "session":
		j.session = v.String()
	default:
		text := v.String()
		if text == "" || strings.ContainsAny(text, " =\"\n\t") {
			text = strconv.Quote(text)
		}
		j.attrs += " " + group + a.Key + "=" + text
	}
}
