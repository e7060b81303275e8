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

// Limits of the registry's own log records.
const (
	// maxEvents is the maximum number of records per second for each class of frequent
	// events. The next record reports the number of suppressed ones.
	maxEvents = 50
	// updatePause is the minimum time between two records about one URI.
	updatePause = time.Second
	maxShort    = 120 // bytes of a name in a record
	maxNames    = 3   // names of added, and of removed, entries in a record
)

type rateGates struct {
	mu            sync.Mutex
	lists         rateGate
	updates       rateGate
	subscriptions rateGate
	cache         rateGate
}

type rateGate struct {
	second     int64
	allowed    int
	suppressed int // since the last allowed one
}

func (g *rateGate) allow(now time.Time) (suppressed int, ok bool) {
	if s := now.Unix(); s != g.second {
		g.second, g.allowed = s, 0
	}
	if g.allowed >= maxEvents {
		g.suppressed++
		return 0, false
	}
	g.allowed++
	suppressed, g.suppressed = g.suppressed, 0
	return suppressed, true
}

func (r *Registry) event(level slog.Level, server, text string) {
	r.logs.Append(LogRecord{
		Time: r.opt.Now(), Server: server, Level: level, Source: SourceEvent, Text: r.redact(text),
	})
}

func (r *Registry) redact(s string) string {
	if r.opt.Redact == nil {
		return s
	}
	return r.opt.Redact(s)
}

func (r *Registry) eventLimited(g *rateGate, level slog.Level, server, text string) {
	r.events.mu.Lock()
	suppressed, ok := g.allow(r.opt.Now())
	r.events.mu.Unlock()
	if !ok {
		return
	}
	if suppressed > 0 {
		text += fmt.Sprintf(" (%d similar records suppressed)", suppressed)
	}
	r.event(level, server, text)
}

func listName(k Kind) string { return k.String() + "s" }

// shortName redacts before it cuts. Cutting first could leave half a secret.
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

func byteCount(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

type listDiff struct {
	added, removed, changed int
	names                   [2][]string // up to maxNames added and removed ones
}

// Both lists must be sorted by Listed.
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
				d.names[1] = append(d.names[1], "-"+r.shortName(a[0].Name))
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

// logListChange also removes contents of entries that are no longer listed. changes are
// the server's own.
func (r *Registry) logListChange(t *table, kind Kind, was *run, changes []ListChange) {
	run := t.runs[kind]
	text := fmt.Sprintf("%s: %d → %d", listName(kind), was.len(), run.len())
	d := r.diffLists(was, run)
	if d.added+d.removed > 0 {
		text += fmt.Sprintf(" (+%d -%d)", d.added, d.removed)
	}
	if d.changed > 0 {
		text += fmt.Sprintf(", %d changed", d.changed)
	}
	if names := append(d.names[0], d.names[1]...); len(names) > 0 {
		text += ": " + strings.Join(names, " ")
	}
	text += r.changedTexts(changes)
	if d.added+d.removed+d.changed > 0 {
		r.eventLimited(&r.events.lists, slog.LevelInfo, t.name, text)
	}
	r.logRemoved(t.name, "dropped", r.contents.removeUnlisted(t, kind, was, r.opt.Now()), listName(kind)+" no longer listed")
}

// changedTexts returns the meaning of the first changed definitions.
func (r *Registry) changedTexts(changes []ListChange) (text string) {
	n := 0
	for i := range changes {
		c := &changes[i]
		if c.Op != OpChanged || c.Name == "" {
			continue
		}
		if n++; n > maxNames {
			return text + "; …"
		}
		text += fmt.Sprintf("; %s: %s", r.shortName(c.Name), r.redact(strings.Join(c.What[:min(len(c.What), maxNames)], ", ")))
	}
	return text
}

// logStateChange also updates the content cache.
func (r *Registry) logStateChange(server string, before, s ServerState) {
	if isRepeatedFailure(before, s) {
		return
	}
	text := fmt.Sprintf("%s → %s", before.State.Label(), s.State.Label())
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

// isRepeatedFailure reports whether a server fails again with the same error. Logging
// each attempt would fill the journal within a day.
func isRepeatedFailure(before, s ServerState) bool {
	if before.State == StateReady || s.LastError == "" || s.LastError != before.LastError {
		return false
	}
	return s.State == StateConnecting || s.State == StateFailed || s.State == StateRetrying || s.State == StateNeedsLogin
}

// logSubscription treats an empty status as the end of the subscription.
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

func (r *Registry) logStale(server string, n int, why string) {
	r.eventLimited(&r.events.cache, slog.LevelInfo, server, fmt.Sprintf("content stale: %d, %s", n, why))
}

func (r *Registry) logEvicted(n int) {
	if n > 0 {
		r.eventLimited(&r.events.cache, slog.LevelInfo, "",
			fmt.Sprintf("content evicted: %d, to stay within %s", n, byteCount(r.contents.max)))
	}
}

// logRemoved logs removed contents and notifies watchers, unless n is 0.
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
