// Package logs bounds what others make Goblin write into its log.
//
// A [Limiter] is the handler in front of a log's sinks. Each party that lines are
// about (their attribute server, else session or endpoint) may cause 100 at once
// and 10 a second after that; all sessions together 500 and 50. What is over is counted, and every ten seconds
// one line says of each party how many more there were. Lines about no party have
// such a bound for each message, so that no party can take the place of Goblin's
// own. Attributes are cut at 2 KiB, of errors at 16 KiB.
//
// A [File] bounds the file that a log is written to.
//
// All methods may be called from any goroutine. They wait for the sink only.
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

	"goblin/registry/termtext"
)

// Bounds of lines.
const (
	burst        = 100 // of one party at once
	rate         = 10  // of one party a second
	burstGuests  = 500 // of all sessions
	rateGuests   = 50
	maxSessions  = 1024 // that are told apart; servers are as many as the config has
	pause        = 10 * time.Second
	maxAttribute = 2 << 10
	maxOfError   = 16 << 10 // stack traces, too
)

// Limiter is a [slog.Handler] that lets so many lines through; see the package's
// documentation.
type Limiter struct {
	next  slog.Handler
	about who
	*limits
}

// who is a party: the attribute that names it, and its name.
type who struct{ key, name string }

// limits are shared by the handlers that come of one Limiter.
type limits struct {
	root   slog.Handler
	redact func(string) string
	now    func() time.Time

	mu      sync.Mutex
	parties map[who]*party
	open    int   // sessions among them
	guests  party // all sessions
	others  party // those for whom there is no place in parties
	swept   time.Time
	timer   *time.Timer // runs while there is something to be said
	closed  bool
}

// party is a bucket of tokens, and what found none.
type party struct {
	tokens float64
	filled time.Time
	more   int
	level  slog.Level // the most severe of them
}

// Limit returns the handler in front of next. redact hides secrets in texts that
// are about to be cut; nil if there are none.
func Limit(next slog.Handler, redact func(string) string) *Limiter {
	if redact == nil {
		redact = func(s string) string { return s }
	}
	return &Limiter{next: next, limits: &limits{root: next, redact: redact, now: time.Now, parties: make(map[who]*party)}}
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
		to.about = to.about.or(a)
		bounded[i] = l.bounded(a, maxAttribute)
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

// or is the party that an attribute names, if it matters more: what a session
// does to a server is about the server.
func (w who) or(a slog.Attr) who {
	if w.key == "server" || a.Key != "server" && a.Key != "session" && a.Key != "endpoint" {
		return w
	}
	if name := a.Value.String(); name != "" {
		return who{a.Key, name}
	}
	return w
}

// Handle implements [slog.Handler].
func (l *Limiter) Handle(ctx context.Context, r slog.Record) error {
	about := l.about
	r.Attrs(func(a slog.Attr) bool {
		about = about.or(a)
		return true
	})
	if about.key == "" {
		about = who{"message", r.Message}
	}
	if !l.pass(about, r.Level) {
		return nil
	}
	most := maxAttribute
	if r.Level >= slog.LevelError {
		most = maxOfError
	}
	message := l.bounded(slog.String(slog.MessageKey, r.Message), most)
	out := slog.NewRecord(r.Time, r.Level, message.Value.String(), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(l.bounded(a, most))
		return true
	})
	return l.next.Handle(ctx, out)
}

// bounded is an attribute whose text is cut at most bytes, and made visible where
// it is not ASCII; the sinks quote the rest.
func (l *limits) bounded(a slog.Attr, most int) slog.Attr {
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

// pass takes a token of a party, or counts a line that finds none.
func (l *limits) pass(about who, level slog.Level) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	p := l.partyLocked(about, now)
	ok := p.take(now, burst, rate)
	if ok && about.key == "session" {
		ok = l.guests.take(now, burstGuests, rateGuests)
	}
	if ok {
		return true
	}
	if p.more++; p.more == 1 || level > p.level {
		p.level = level
	}
	if l.timer == nil && !l.closed {
		l.timer = time.AfterFunc(pause, l.tell)
	}
	return false
}

// partyLocked finds or makes the bucket of a party.
func (l *limits) partyLocked(about who, now time.Time) *party {
	if p := l.parties[about]; p != nil {
		return p
	}
	if about.key == "session" {
		if l.open >= maxSessions && now.Sub(l.swept) >= time.Second {
			l.sweep(now)
		}
		if l.open >= maxSessions {
			return &l.others
		}
		l.open++
	}
	p := new(party)
	l.parties[about] = p
	return p
}

// sweep forgets the sessions that may cause as much as if they were new. The lock
// is held.
func (l *limits) sweep(now time.Time) {
	l.swept = now
	for w, p := range l.parties {
		if w.key == "session" && p.more == 0 && p.tokens+rate*now.Sub(p.filled).Seconds() >= burst {
			delete(l.parties, w)
			l.open--
		}
	}
}

// take takes a token out of a bucket, which is full at first.
func (p *party) take(now time.Time, burst, rate float64) bool {
	if p.filled.IsZero() {
		p.tokens = burst
	} else {
		p.tokens = min(burst, p.tokens+rate*now.Sub(p.filled).Seconds())
	}
	p.filled = now
	if p.tokens < 1 {
		return false
	}
	p.tokens--
	return true
}

// tell says what was left out.
func (l *limits) tell() {
	type left struct {
		who
		party
	}
	var all []left
	l.mu.Lock()
	l.timer = nil
	for w, p := range l.parties {
		if p.more > 0 {
			all = append(all, left{w, *p})
			p.more = 0
		}
	}
	if l.others.more > 0 {
		all = append(all, left{who{"session", "others"}, l.others})
		l.others.more = 0
	}
	l.mu.Unlock()
	for _, p := range all {
		r := slog.NewRecord(l.now(), p.level, "Lines were left out: too many at a time", 0)
		r.AddAttrs(slog.Int("more", p.more), l.bounded(slog.String(p.key, p.name), maxAttribute))
		_ = l.root.Handle(context.Background(), r) // there is no other place to tell it
	}
}

// Close says what was left out so far. Lines are still taken.
func (l *limits) Close() error {
	l.mu.Lock()
	l.closed = true
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	l.tell()
	return nil
}
