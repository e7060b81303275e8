// Package logs limits the size and the rate of Goblin's log.
//
// A [Limiter] is the handler in front of a log's sinks. Each source may log 100 lines at
// once and 10 a second after that; all sessions together 500 and 50. The source is the
// attribute server, otherwise session or endpoint. Lines without a source are limited per
// message, so that no source displaces Goblin's own. Every ten seconds, a line per source
// reports dropped lines. Attributes are cut at 2 KiB, those of errors at 16 KiB.
//
// All methods are safe for concurrent use. They block only while a sink writes.
package logs

import (
	"context"
	"encoding"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/time/rate"

	"goblin/registry/termtext"
)

const (
	burst             = 100
	perSecond         = 10
	sessionsBurst     = 500
	sessionsPerSec    = 50
	reportInterval    = 10 * time.Second
	maxAttribute      = 2 << 10  // bytes
	maxErrorAttribute = 16 << 10 // bytes; stack traces are longer
)

// Limiter is a [slog.Handler] that drops lines above the limits of the package.
type Limiter struct {
	next slog.Handler
	from source
	*limits
}

type source struct{ key, name string }

type limits struct {
	root   slog.Handler
	redact func(string) string

	mu       sync.Mutex
	sources  map[source]*budget // recent ones
	sessions *budget            // of all sessions together
	timer    *time.Timer        // of the next report, or nil
	closed   bool
}

type budget struct {
	*rate.Limiter
	dropped int
	level   slog.Level // the most severe dropped one
}

func newBudget(perSecond rate.Limit, burst int) *budget {
	return &budget{Limiter: rate.NewLimiter(perSecond, burst)}
}

// NewLimiter returns a handler in front of next. redact, which may be nil, masks secrets.
func NewLimiter(next slog.Handler, redact func(string) string) *Limiter {
	if redact == nil {
		redact = func(s string) string { return s }
	}
	return &Limiter{next: next, limits: &limits{
		root: next, redact: redact, sources: make(map[source]*budget), sessions: newBudget(sessionsPerSec, sessionsBurst),
	}}
}

// Enabled implements [slog.Handler].
func (l *Limiter) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (l *Limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	to := *l
	bounded := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		to.from = to.from.prefer(a)
		bounded[i] = l.truncated(a, maxAttribute)
	}
	to.next = l.next.WithAttrs(bounded)
	return &to
}

// WithGroup implements [slog.Handler].
func (l *Limiter) WithGroup(name string) slog.Handler {
	to := *l
	to.next = l.next.WithGroup(name)
	return &to
}

// prefer returns the source of a if it takes precedence over s. Lines about a session and
// a server count for the server.
func (s source) prefer(a slog.Attr) source {
	if s.key == "server" || a.Key != "server" && a.Key != "session" && a.Key != "endpoint" {
		return s
	}
	if name := a.Value.String(); name != "" {
		return source{a.Key, name}
	}
	return s
}

// Handle implements [slog.Handler].
func (l *Limiter) Handle(ctx context.Context, r slog.Record) error {
	from := l.from
	r.Attrs(func(a slog.Attr) bool {
		from = from.prefer(a)
		return true
	})
	if from.key == "" {
		from = source{"message", r.Message}
	}
	if !l.allow(from, r.Level) {
		return nil
	}
	most := maxAttribute
	if r.Level >= slog.LevelError {
		most = maxErrorAttribute
	}
	message := l.truncated(slog.String(slog.MessageKey, r.Message), most)
	out := slog.NewRecord(r.Time, r.Level, message.Value.String(), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(l.truncated(a, most))
		return true
	})
	return l.next.Handle(ctx, out)
}

// truncated cuts an attribute to most bytes and escapes non-ASCII characters. The sinks
// quote the others.
func (l *limits) truncated(a slog.Attr, most int) slog.Attr {
	v := a.Value.Resolve()
	var text string
	switch v.Kind() {
	case slog.KindString:
		text = v.String()
	case slog.KindAny:
		switch x := v.Any().(type) {
		case error:
			text = x.Error()
		case encoding.TextMarshaler:
			return a
		default:
			text = fmt.Sprintf("%+v", x)
		}
	default:
		return a
	}
	if len(text) > most {
		text = l.redact(text) // half a secret would not be found
		text = cut(text, most)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		text = termtext.Line(text)
	}
	return slog.String(a.Key, text)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

func (l *limits) allow(from source, level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer == nil && !l.closed {
		l.timer = time.AfterFunc(reportInterval, l.report)
	}
	b := l.sources[from]
	if b == nil {
		b = newBudget(perSecond, burst)
	}
	now := time.Now()
	if !b.AllowN(now, 1) {
		b.drop(level)
		return false
	}
	if from.key == "session" && !l.sessions.AllowN(now, 1) {
		l.sessions.drop(level) // storing b would let a flood of sessions take memory
		return false
	}
	l.sources[from] = b
	return true
}

func (b *budget) drop(level slog.Level) {
	if b.dropped == 0 || level > b.level {
		b.level = level
	}
	b.dropped++
}

// report logs the dropped lines and removes sources with a full budget.
func (l *limits) report() {
	var reports []slog.Record
	collect := func(from source, b *budget) {
		if b.dropped == 0 {
			return
		}
		r := slog.NewRecord(time.Now(), b.level, "log lines dropped: too many at once", 0)
		r.AddAttrs(slog.Int("more", b.dropped), l.truncated(slog.String(from.key, from.name), maxAttribute))
		reports = append(reports, r)
		b.dropped = 0
	}
	l.mu.Lock()
	for from, b := range l.sources {
		collect(from, b)
		if b.Tokens() >= burst {
			delete(l.sources, from)
		}
	}
	collect(source{"session", "others"}, l.sessions)
	l.timer = nil
	if len(l.sources) > 0 && !l.closed {
		l.timer = time.AfterFunc(reportInterval, l.report)
	}
	l.mu.Unlock()
	for _, r := range reports {
		_ = l.root.Handle(context.Background(), r) // no other sink for this error
	}
}

// Close reports the lines dropped so far. Lines are still accepted.
func (l *limits) Close() error {
	l.mu.Lock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.report()
	return nil
}
