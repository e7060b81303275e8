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
	maxNames    = 3   // names of added, and of removed, entries in a record
)

// rateGates limit the log records of frequent events.
type rateGates struct {
	mu            sync.Mutex
	lists         rateGate
	updates       rateGate
	subscriptions rateGate
	cache         rateGate
}

// rateGate limits the events of one class per second.
type rateGate struct {
	second     int64
	allowed    int
	suppressed int // suppressed events since the last that was allowed
}

// allow reports whether another event is allowed now, and how many were suppressed before it.
func (g *rateGate) allow(now time.Time) (held int, ok bool) {
	if s := now.Unix(); s != g.second {
		g.second, g.allowed = s, 0
	}
	if g.allowed >= maxEvents {
		g.suppressed++
		return 0, false
	}
	g.allowed++
	held, g.suppressed = g.suppressed, 0
	return held, true
}

// event writes a record about what changed.
func (r *Registry) event(level slog.Level, server, text string) {
	r.logs.Append(LogRecord{
		Time: r.opt.Now(), Server: server, Level: level, Source: SourceEvent, Text: r.redact(text),
	})
}

// redact applies [Options.Redact], if it is set.
func (r *Registry) redact(s string) string {
	if r.opt.Redact == nil {
		return s
	}
	return r.opt.Redact(s)
}

// eventLimited writes a record unless its class has had too many in this second.
func (r *Registry) eventLimited(g *rateGate, level slog.Level, server, text string) {
	r.events.mu.Lock()
	held, ok := g.allow(r.opt.Now())
	r.events.mu.Unlock()
	if !ok {
		return
	}
	if held > 0 {
		text += fmt.Sprintf(" (%d more like it not written)", held)
	}
	r.event(level, server, text)
}

// listName returns the name of a kind's list.
func listName(k Kind) string { return k.String() + "s" }

// shortName redacts a foreign name and then cuts it for a log record. Cutting first could leave half
// a secret.
func (r *Registry) shortName(s string) string {
	s = r.redact(s)
	if len(s) > maxShort {
		s = cutString(s, maxShort) + "…"
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

// diffLists compares two lists in one pass. Both are sorted by Listed.
func (r *Registry) diffLists(was, is *run) (d listDiff) {
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
				d.names[0] = append(d.names[0], "+"+r.shortName(b[0].Name))
			}
			b = b[1:]
		case len(b) == 0 || a[0].Listed < b[0].Listed:
			if d.removed++; d.removed <= maxNames {
				d.names[1] = append(d.names[1], "−"+r.shortName(a[0].Name))
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

// logListChange logs how a list differs from was and removes contents of entries that are no longer
// listed. t holds the new list.
func (r *Registry) logListChange(t *table, kind Kind, was *run) {
	run := t.runs[kind]
	text := fmt.Sprintf("%s: %d → %d", listName(kind), was.len(), run.len())
	d := r.diffLists(was, run)
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
		r.eventLimited(&r.events.lists, slog.LevelInfo, t.name, text)
	}
	r.logRemoved(t.name, "dropped", r.contents.removeUnlisted(t, kind, was, r.opt.Now()), listName(kind)+" left the list")
}

// logStateChange logs a change of a server's state, and updates the content cache.
func (r *Registry) logStateChange(server string, before, s ServerState) {
	if isRepeatedFailure(before, s) {
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
		r.logRemoved(server, "dropped", r.contents.removeServer(server), "disabled")
	case before.State == StateReady && s.State != StateSleeping:
		if n := r.contents.markLost(server, r.opt.Now()); n > 0 {
			r.logStale(server, n, StaleLost)
			r.feed.publish(Cached)
		}
	}
}

// isRepeatedFailure reports whether a server fails again with the same error. Logging every attempt
// would fill the journal within a day.
func isRepeatedFailure(before, s ServerState) bool {
	if before.State == StateReady || s.LastError == "" || s.LastError != before.LastError {
		return false
	}
	return s.State == StateConnecting || s.State == StateFailed || s.State == StateRetrying || s.State == StateNeedsLogin
}

// logSubscription logs a change of a subscription's status. An empty status means that it ended.
func (r *Registry) logSubscription(s *SubscriptionState) {
	level, text := slog.LevelInfo, "subscription "+s.Status
	if s.Status == "" {
		text = "subscription ended"
		if s.Updates > 0 {
			text += fmt.Sprintf(" after %s", count(s.Updates, "update"))
		}
	}
	text += ": " + r.shortName(s.Listed)
	if s.Error != "" {
		text += ": " + s.Error
	}
	if s.Status == SubscriptionRefused {
		level = slog.LevelWarn
	}
	r.eventLimited(&r.events.subscriptions, level, s.Server, text)
}

func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// logStored logs an invocation that was put into the cache.
func (r *Registry) logStored(inv *Invocation, replaced bool) {
	level, verb := slog.LevelInfo, "stored"
	if replaced {
		verb = "replaced"
	}
	text := fmt.Sprintf("content %s: %s %s", verb, inv.Kind, r.shortName(inv.Name))
	if inv.Success {
		text += ", " + byteCount(int64(len(inv.Result)))
	} else {
		level = slog.LevelWarn
		text += ", failed"
		if inv.Error != "" {
			text += ": " + cutString(r.redact(inv.Error), maxField)
		}
	}
	r.eventLimited(&r.events.cache, level, inv.Server, text)
}

// logStale logs that contents became stale.
func (r *Registry) logStale(server string, n int, why string) {
	r.eventLimited(&r.events.cache, slog.LevelInfo, server, fmt.Sprintf("content stale: %d, %s", n, why))
}

// logEvicted logs that contents were evicted.
func (r *Registry) logEvicted(n int) {
	if n > 0 {
		r.eventLimited(&r.events.cache, slog.LevelInfo, "",
			fmt.Sprintf("content evicted: %d, to stay within %s", n, byteCount(r.contents.max)))
	}
}

// logRemoved logs that n invocations were removed from the cache and notifies watchers, unless n is
// 0.
func (r *Registry) logRemoved(server, verb string, n int, why string) {
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
