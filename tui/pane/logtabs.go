package pane

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/tui/exchange"
	"goblin/tui/list"
	"goblin/tui/theme"
	"goblin/tui/uicontext"
	"goblin/tui/viewer"
)

// Limits of the Logs pane, which are independent of the journals'.
const (
	MaxLogs          = 5000
	MaxTraffic       = 5000 // requests
	maxNotifications = 500
	// last rows searched for an equal log line
	foldsWithin = 256
	// asyncIndexSize is the text from which indexing runs in a command instead of Update,
	// in bytes.
	asyncIndexSize = 256 << 10
	// bytes of a log line that a row draws
	maxDrawnText = 1024
)

// records holds the rows of one tab: the last ones of a journal. A server has at most its
// share while other servers have rows. Its work for new rows depends on the number of
// held rows, not on the journal.
type records[R any] struct {
	Table         *list.Table[R]
	limit         int
	server        func(R) string
	separate      func(R) bool // rows with their own limit; may be nil
	separateLimit int
	filter        func(R) bool // nil: all
	size          func(R) int  // bytes of text; nil if texts are short

	Held    []R // replaced, never changed: commands read it
	extra   []R // additional rows; replaced, never changed
	bytes   int
	evicted int
	unread  int  // since the tab was visible
	changed bool // Held differs from the table
	reading bool // a command updates the table
}

func (f *records[R]) setHeld(rows []R) {
	f.Held, f.changed, f.bytes = rows, true, 0
	if f.size != nil {
		for _, r := range rows {
			f.bytes += f.size(r)
		}
	}
	f.trim(false, f.limit)
	if f.separate != nil {
		f.trim(true, f.separateLimit)
	}
}

// trim evicts the oldest rows of servers over their share, among the rows for which
// f.separate returns apart.
func (f *records[R]) trim(apart bool, most int) {
	has, n := map[string]int{}, 0
	mine := func(r R) bool { return f.separate == nil || f.separate(r) == apart }
	for _, r := range f.Held {
		if mine(r) {
			has[f.server(r)]++
			n++
		}
	}
	if n <= most {
		return
	}
	share := fairShare(most, slices.Collect(maps.Values(has)))
	kept := make([]R, 0, len(f.Held)) // commands read the old slice
	for _, r := range f.Held {
		server := f.server(r)
		if !mine(r) || has[server] <= share {
			kept = append(kept, r)
			continue
		}
		has[server]--
		if f.size != nil {
			f.bytes -= f.size(r)
		}
	}
	f.Held, f.evicted = kept, f.evicted+len(f.Held)-len(kept)
}

// fairShare returns the limit for each of several owners so that all fit into a total.
func fairShare(places int, needs []int) (share int) {
	slices.Sort(needs)
	for i, n := range needs {
		if share = places / (len(needs) - i); n > share {
			break
		}
		places -= n
	}
	return share
}

func (f *records[R]) Publish() tea.Cmd {
	if f.reading || !f.changed {
		return nil
	}
	f.changed = false
	rows := f.Held[:len(f.Held):len(f.Held)]
	if f.filter != nil {
		rows = nil
		for _, r := range f.Held {
			if f.filter(r) {
				rows = append(rows, r)
			}
		}
	}
	if len(f.extra) > 0 {
		rows = slices.Concat(rows, f.extra)
	}
	expected := len(rows)
	if f.bytes > asyncIndexSize {
		expected = max(expected, list.MaxSyncRows+1)
	}
	f.reading = true
	return f.Table.Refresh(expected, func() []R { return rows }, func() tea.Cmd {
		f.reading = false
		return f.Publish()
	})
}

type tabList interface {
	Rows() list.Rows
	Lines(lk *theme.Theme, w, h int, focused bool) []string
	Publish() tea.Cmd
	Count() int
	ClearUnread()
	Trimmed() int
	Unread() int
	Following() bool
	Follow(on bool) tea.Cmd
	CursorMoved()
	Click(x, y int) (bool, tea.Cmd)
}

func (f *records[R]) Rows() list.Rows { return tabRows[R]{f.Table} }
func (f *records[R]) Count() int      { return len(f.Held) }
func (f *records[R]) ClearUnread()    { f.unread = 0 }
func (f *records[R]) Trimmed() int    { return f.evicted }
func (f *records[R]) Unread() int     { return f.unread }
func (f *records[R]) Following() bool { return f.Table.Following }
func (f *records[R]) CursorMoved() {
	f.Table.Following = f.Table.NewestLast() && f.Table.Cursor() >= f.Table.Len()-1
}

func (f *records[R]) Lines(lk *theme.Theme, w, h int, focused bool) []string {
	return f.Table.Grid(lk, w, h, focused)
}

func (f *records[R]) Click(x, y int) (bool, tea.Cmd) {
	row, cmd := f.Table.Click(x, y)
	if !row && !f.Table.NewestLast() {
		f.Table.StopFollowing()
	}
	return row, cmd
}

// Follow moves to the newest row and follows it, or stops following.
func (f *records[R]) Follow(on bool) tea.Cmd {
	f.Table.Following = on
	if !on {
		return nil
	}
	if f.Table.Order != 0 || f.Table.Reversed {
		f.Table.Order, f.Table.Reversed = 0, false
		return f.Table.Rerun()
	}
	f.Table.MoveTo(f.Table.Len() - 1)
	return nil
}

type tabRows[R any] struct{ *list.Table[R] }

func (b tabRows[R]) Position() int { return b.Table.Position() + 1 }

func (b tabRows[R]) Filter(typed string) tea.Cmd {
	if b.Following && query.Parse(typed, b.Fields(nil)).IsRanked() {
		b.StopFollowing()
	}
	return b.Table.Filter(typed)
}

// SortNext sorts and shows the start of the list, like the other Sort methods.
func (b tabRows[R]) SortNext() tea.Cmd { return b.sorted(b.Table.SortNext) }

func (b tabRows[R]) SortNextColumn() tea.Cmd { return b.sorted(b.Table.SortNextColumn) }

func (b tabRows[R]) Sort(name string) tea.Cmd {
	return b.sorted(func() tea.Cmd { return b.Table.Sort(name) })
}

func (b tabRows[R]) sorted(by func() tea.Cmd) tea.Cmd {
	b.StopFollowing()
	return by()
}

type logRow struct {
	registry.LogRecord
	key   string
	line  string // drawn part of the text
	times int    // equal lines in the row; 0 means one
	last  time.Time
}

type sameLine struct {
	server, source, session, text string
	level                         slog.Level
}

// foldLines joins recent lines that differ only in times and process ids. So a crash loop
// is one row, the newest.
func foldLines(held, came []*logRow) []*logRow {
	all := slices.Concat(held, came)[:len(held)]
	recent := make(map[sameLine]int, foldsWithin)
	of := func(r *logRow) sameLine { return sameLine{r.Server, r.Source, r.Session, foldKey(r.Text), r.Level} }
	for i := max(0, len(held)-foldsWithin); i < len(held); i++ {
		recent[of(held[i])] = i
	}
	gone := false
	for _, r := range came {
		if i, ok := recent[of(r)]; ok && len(all)-i <= foldsWithin {
			was := all[i]
			next := *was // commands read the old row
			next.times, next.last = max(was.times, 1)+1, r.Time
			if next.Text != r.Text {
				next.Text, next.line = r.Text, ""
			}
			r, all[i], gone = &next, nil, true
		}
		recent[of(r)] = len(all)
		all = append(all, r)
	}
	if gone {
		all = slices.DeleteFunc(all, func(r *logRow) bool { return r == nil })
	}
	return all
}

// timesNote returns "" for a single record. In a narrow row, which the text itself needs,
// it omits the time.
func timesNote(lk *theme.Theme, n int, last time.Time, w int) string {
	if n < 2 {
		return ""
	}
	text := lk.Own("× ") + uicontext.FormatInt(n)
	if w >= 50 {
		text += ", last " + clockText(last, 8)
	}
	return lk.Dim.On(text)
}

func newLogRecords(a *Layout, tab int) *records[*logRow] {
	t := list.New(a.Ctx, a.Now,
		func(r *logRow) string { return r.key },
		func(r *logRow) string { return r.Text },
		logFields, list.Order[*logRow]{Name: "time"})
	t.Following = true
	t.Base = func(r *logRow) theme.Style {
		if r.Level < slog.LevelInfo {
			return a.Theme.Dim
		}
		return ""
	}
	t.Overlay = func(r *logRow, w int) string { return timesNote(a.Theme, r.times, r.last, w) }
	t.SetColumns(slices.DeleteFunc(logColumns(a), func(c list.Column[*logRow]) bool {
		return c.Name == "source" && tab != TabStderr || c.Name == "session" && tab != TabGoblin
	})...)
	return &records[*logRow]{Table: t, limit: MaxLogs, server: func(r *logRow) string { return r.Server }, size: func(r *logRow) int { return len(r.Text) }}
}

func logColumns(a *Layout) []list.Column[*logRow] {
	type column = list.Column[*logRow]
	return []column{
		{
			Name: "time", Priority: 2, NeededWidth: 12, MinWidth: 8, PreferredWidth: 8,
			Show: func(r *logRow, w int) (string, theme.Style) { return clockText(r.Time, w), a.Theme.Dim },
		},
		{
			Name: "level", NeededWidth: 6, Descending: true, Less: func(x, y *logRow) int { return cmp.Compare(x.Level, y.Level) },
			Show: func(r *logRow, _ int) (string, theme.Style) {
				switch lk := a.Theme; {
				case r.Level >= slog.LevelError:
					return "!" + levelName(r.Level), lk.Bad
				case r.Level >= slog.LevelWarn:
					return " " + levelName(r.Level), lk.Warn
				default:
					return " " + levelName(r.Level), lk.Dim
				}
			},
		},
		{Name: "server", Priority: 1, MinWidth: 6, PreferredWidth: 10, Text: func(r *logRow) string { return r.Server }},
		{Name: "source", Priority: 4, MinWidth: 3, PreferredWidth: 7, Dim: true, Text: func(r *logRow) string { return r.Source }},
		{Name: "session", Priority: 5, MinWidth: 4, PreferredWidth: 8, Dim: true, Text: func(r *logRow) string { return r.Session }},
		{
			Name: "message", MinWidth: 12, PreferredWidth: 34, Fills: true, Unsorted: true,
			Show: func(r *logRow, _ int) (string, theme.Style) {
				if r.line == "" {
					r.line = uicontext.SanitizeLine(uicontext.CutText(r.Text, maxDrawnText))
					if r.Source == registry.SourceGoblin || r.Source == registry.SourceEvent {
						r.line = a.Theme.Own(r.line)
					}
				}
				switch {
				case r.Level >= slog.LevelError:
					return r.line, a.Theme.Bad
				case r.Level >= slog.LevelWarn:
					return r.line, a.Theme.Warn
				}
				return r.line, ""
			},
		},
	}
}

func logFields(rows []*logRow) []list.Field {
	return []list.Field{
		{Name: "server", Aliases: []string{"srv"}, Kind: list.Text, Help: "the server", Text: func(i int) string { return rows[i].Server }},
		{Name: "level", Kind: list.Text, Help: "debug, info, warn or error", Text: func(i int) string { return levelName(rows[i].Level) }},
		{Name: "source", Kind: list.Text, Help: "stderr, message, goblin or event", Text: func(i int) string { return rows[i].Source }},
		{Name: "session", Kind: list.Text, Help: "the client's session", Text: func(i int) string { return rows[i].Session }},
		{Name: "at", Kind: query.Range, Help: "logged at: 02:06..02:07, 02:06.., also with dates", Time: func(i int) time.Time { return rows[i].Time }},
	}
}

var minLevels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warn"
	}
	return "error"
}

// clockText includes milliseconds if they fit w cells.
func clockText(t time.Time, w int) string {
	switch {
	case t.IsZero():
		return theme.Spaces(w)
	case w >= 12:
		return t.Format("15:04:05.000")
	}
	return t.Format("15:04:05")
}

func (r *logRow) subject(tab string, reg *registry.Registry) Subject {
	rec, times, last := r.LogRecord, r.times, r.last
	return Subject{
		Key: "log " + r.key, Version: strconv.Itoa(times), Title: tab + " " + clockText(rec.Time, 12),
		Blocks: func(context.Context) []viewer.Section {
			facts := []viewer.Field{
				{Label: "time", Value: exchange.FormatTime(rec.Time)},
				{Label: "server", Value: rec.Server},
				{Label: "session", Value: exchange.SessionText(reg, rec.Session)},
				{Label: "level", Value: levelName(rec.Level)},
				{Label: "source", Value: rec.Source},
			}
			if times > 1 {
				facts = append(facts, viewer.Field{Label: "times", Value: fmt.Sprintf("%d, last %s", times, exchange.FormatTime(last))})
			}
			blocks := []viewer.Section{{Kind: viewer.Text, Text: rec.Text}}
			if text := strings.TrimSpace(rec.Text); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
				blocks = append(blocks, viewer.Section{Title: "As JSON", Kind: viewer.JSON, Data: []byte(text)})
			}
			return append(blocks, viewer.Section{Kind: viewer.Fields, Fields: facts})
		},
	}
}

func (r *logRow) plain() string {
	parts := []string{exchange.FormatTime(r.Time), levelName(r.Level)}
	for _, s := range []string{r.Server, r.Source, r.Session} {
		if s != "" {
			parts = append(parts, uicontext.SanitizeLine(s))
		}
	}
	parts = append(parts, uicontext.SanitizeLine(r.Text))
	if r.times > 1 {
		parts = append(parts, fmt.Sprintf("(× %d, last %s)", r.times, exchange.FormatTime(r.last)))
	}
	return strings.Join(parts, "  ")
}

func (p *Logs) readLog(upTo uint64) {
	if upTo <= p.Log.Read {
		return
	}
	recs := p.app.Reg.Logs().Window(p.Log.Read+1, int(min(upTo-p.Log.Read, 1<<30)))
	for len(recs) > 0 && recs[len(recs)-1].Seq > upTo {
		recs = recs[:len(recs)-1]
	}
	if len(recs) == 0 {
		p.missedRecords, p.Log.Read = p.missedRecords+upTo-p.Log.Read, upTo
		return
	}
	last := recs[len(recs)-1].Seq
	p.missedRecords, p.Log.Read = p.missedRecords+last-p.Log.Read-uint64(len(recs)), last
	rows := make([]logRow, len(recs))
	var parts [LogTabs][]*logRow
	for i := range recs {
		r := &rows[i]
		r.LogRecord, r.key = recs[i], strconv.FormatUint(recs[i].Seq, 10)
		if r.Source == registry.SourceStderr && r.Level == slog.LevelInfo {
			r.Level = lineLevel(r.Text)
		}
		tab := tabOfRecord(r.Source)
		parts[tab] = append(parts[tab], r)
		if r.Seq >= p.firstNumber {
			p.Logs[tab].unread++
		}
	}
	for tab, f := range p.Logs {
		if f != nil && len(parts[tab]) > 0 {
			f.setHeld(foldLines(f.Held, parts[tab]))
		}
	}
}

func tabOfRecord(source string) int {
	switch source {
	case registry.SourceEvent:
		return TabEvents
	case registry.SourceStderr, registry.SourceMessage:
		return TabStderr
	}
	return TabGoblin
}

// StderrOf shows the output of a server.
func (a *Layout) StderrOf(server string) tea.Cmd {
	of := query.Set("", "server", []string{"=" + server})
	if a.hasOutput(server) {
		return a.showLogs(TabStderr, of)
	}
	// A server that never started has events.
	return tea.Batch(a.showLogs(TabEvents, of), a.Say("%s has no output; showing its events", uicontext.SanitizeLine(server)))
}

func (a *Layout) hasOutput(server string) bool {
	for _, r := range a.Reg.Logs().Window(0, -1) {
		if r.Server == server && (r.Source == registry.SourceStderr || r.Source == registry.SourceMessage) {
			return true
		}
	}
	return false
}
