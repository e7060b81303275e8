package registry

import (
	"bytes"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Bounds of what the registry writes into the journal of logs.
const (
	// maxEvents is how many records of each class of fast events a second
	// may bring. What is over is counted and said with the next.
	maxEvents = 50
	// updatePause is the least time between two records about one URI.
	updatePause = time.Second
	maxShort    = 120 // bytes of a name in a record
	maxNames    = 3   // entryNames of added, and of removed, entries in a record
)

// events are the gates of what can happen fast.
type events struct {
	mu            sync.Mutex
	lists         gate
	updates       gate
	subscriptions gate
	cache         gate
}

// gate lets a number of events a second pass.
type gate struct {
	second int64
	passed int
	held   int // since the last that passed
}

// pass returns how many were held back before, when this one may go.
func (g *gate) pass(now time.Time) (held int, ok bool) {
	if s := now.Unix(); s != g.second {
		g.second, g.passed = s, 0
	}
	if g.passed >= maxEvents {
		g.held++
		return 0, false
	}
	g.passed++
	held, g.held = g.held, 0
	return held, true
}

// event writes a record about what changed.
func (r *Registry) event(level slog.Level, server, text string) {
	r.logs.Append(LogRecord{
		Time: r.opt.Now(), Server: server, Level: level, Source: SourceEvent, Text: r.redacted(text),
	})
}

func (r *Registry) redacted(s string) string {
	if r.opt.Redact == nil {
		return s
	}
	return r.opt.Redact(s)
}

// gated writes a record unless there were too many of its class.
func (r *Registry) gated(g *gate, level slog.Level, server, text string) {
	r.events.mu.Lock()
	held, ok := g.pass(r.opt.Now())
	r.events.mu.Unlock()
	if !ok {
		return
	}
	if held > 0 {
		text += fmt.Sprintf(" (%d more like it not written)", held)
	}
	r.event(level, server, text)
}

// plural is the name of a kind's list.
func plural(k Kind) string { return k.String() + "s" }

// short is a foreign name as a part of a record. What is cut has been
// redacted before, or half a secret would be left.
func (r *Registry) short(s string) string {
	s = r.redacted(s)
	if len(s) > maxShort {
		s = bounded(s, maxShort) + "…"
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return strconv.Quote(s)
	}
	return s
}

// byteCount is a size as people read it.
func byteCount(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// listDiff holds the entries that one list has and another has not.
type listDiff struct {
	added, removed, changed int
	names                   [2][]string // up to maxNames added and removed ones
}

// diff compares two lists in one pass: both are in the order of Listed.
func (r *Registry) diff(was, is *run) (d listDiff) {
	var a, b []Entry
	if was != nil {
		a = was.entries
	}
	if is != nil {
		b = is.entries
	}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(a) == 0 || len(b) > 0 && b[0].Listed < a[0].Listed:
			if d.added++; d.added <= maxNames {
				d.names[0] = append(d.names[0], "+"+r.short(b[0].Name))
			}
			b = b[1:]
		case len(b) == 0 || a[0].Listed < b[0].Listed:
			if d.removed++; d.removed <= maxNames {
				d.names[1] = append(d.names[1], "−"+r.short(a[0].Name))
			}
			a = a[1:]
		default:
			if !bytes.Equal(a[0].json, b[0].json) {
				d.changed++
			}
			a, b = a[1:], b[1:]
		}
	}
	return d
}

// relisted follows a list that came in place of was: t holds the new one.
func (r *Registry) relisted(t *table, kind Kind, was *run) {
	run := t.runs[kind]
	text := fmt.Sprintf("%s: %d → %d", plural(kind), was.len(), run.len())
	d := r.diff(was, run)
	if d.added+d.removed > 0 {
		text += fmt.Sprintf(" (+%d −%d)", d.added, d.removed)
	}
	if d.changed > 0 {
		text += fmt.Sprintf(", %d changed", d.changed)
	}
	if names := append(d.names[0], d.names[1]...); len(names) > 0 {
		text += ": " + strings.Join(names, " ")
	}
	if d.added+d.removed+d.changed > 0 {
		r.gated(&r.events.lists, slog.LevelInfo, t.name, text)
	}
	r.bulk(t.name, "dropped", r.contents.relisted(t, kind, was, r.opt.Now()), plural(kind)+" left the list")
}

// entered follows a change of a server's state.
func (r *Registry) entered(server string, before, s ServerState) {
	if again(before, s) {
		return
	}
	text := fmt.Sprintf("%s → %s", before.State, s.State)
	if s.LastError != "" && s.State != StateReady {
		text += ": " + s.LastError
	}
	level := slog.LevelInfo
	switch s.State {
	case StateRetrying, StateFailed, StateNeedsLogin:
		level = slog.LevelWarn
	}
	r.event(level, server, text)
	switch {
	case s.State == StateDisabled:
		r.bulk(server, "dropped", r.contents.forget(server), "disabled")
	case before.State == StateReady && s.State != StateSleeping:
		if n := r.contents.lose(server, r.opt.Now()); n > 0 {
			r.marked(server, n, StaleLost)
			r.feed.publish(Cached)
		}
	}
}

// again reports whether a change of state is one more attempt of a server that
// fails as it did before. Told each time, they would push all else out of the
// journal in a day.
func again(before, s ServerState) bool {
	if before.State == StateReady || s.LastError == "" || s.LastError != before.LastError {
		return false
	}
	return s.State == StateConnecting || s.State == StateFailed || s.State == StateRetrying || s.State == StateNeedsLogin
}

// subscribed follows a change of a subscription's status; "" is its end.
func (r *Registry) subscribed(s *SubscriptionState) {
	level, text := slog.LevelInfo, "subscription "+s.Status
	if s.Status == "" {
		text = "subscription ended"
		if s.Updates > 0 {
			text += fmt.Sprintf(" after %s", count(s.Updates, "update"))
		}
	}
	text += ": " + r.short(s.Listed)
	if s.Error != "" {
		text += ": " + s.Error
	}
	if s.Status == SubscriptionRefused {
		level = slog.LevelWarn
	}
	r.gated(&r.events.subscriptions, level, s.Server, text)
}

func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// stored follows an invocation into the cache.
func (r *Registry) stored(inv *Invocation, replaced bool) {
	level, verb := slog.LevelInfo, "stored"
	if replaced {
		verb = "replaced"
	}
	text := fmt.Sprintf("content %s: %s %s", verb, inv.Kind, r.short(inv.Name))
	if inv.Success {
		text += ", " + byteCount(int64(len(inv.Result)))
	} else {
		level = slog.LevelWarn
		text += ", failed"
		if inv.Error != "" {
			text += ": " + bounded(r.redacted(inv.Error), maxField)
		}
	}
	r.gated(&r.events.cache, level, inv.Server, text)
}

func (r *Registry) marked(server string, n int, why string) {
	r.gated(&r.events.cache, slog.LevelInfo, server, fmt.Sprintf("content stale: %d, %s", n, why))
}

func (r *Registry) evicted(n int) {
	if n > 0 {
		r.gated(&r.events.cache, slog.LevelInfo, "",
			fmt.Sprintf("content evicted: %d, to stay within %s", n, byteCount(r.contents.max)))
	}
}

// bulk writes one record about n invocations that left the cache, if any did,
// and wakes its watchers.
func (r *Registry) bulk(server, verb string, n int, why string) {
	if n == 0 {
		return
	}
	text := fmt.Sprintf("content %s: %d", verb, n)
	if why != "" {
		text += ", " + why
	}
	r.event(slog.LevelInfo, server, text)
	r.feed.publish(Cached)
}
