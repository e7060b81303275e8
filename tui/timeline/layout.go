// Package timeline lays out requests in rows on a time axis and draws them.
//
// A [Layout] is immutable and follows from records alone. A [Chart] shows one: it has the
// cursor and the visible part of the axis. It must run on the UI's Update goroutine. Work
// per frame depends on the visible rows; only concurrency reads all records. The package
// does no I/O and must not know panes. Records are untrusted: it sanitizes their texts.
package timeline

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/recording"
)

// Grouping is the property that puts calls into one group.
type Grouping int

// Values of [Grouping].
const (
	ByClient Grouping = iota
	ByServer
	BySession
	Ungrouped
	groupings
)

var groupingNames = [groupings]string{"client", "server", "session", "time"}

func (g Grouping) String() string { return groupingNames[g] }

// Groupings returns the names of all groupings.
func Groupings() []string { return groupingNames[:] }

// Call is a request or a notification of the journal, or a request in flight.
type Call struct {
	Record *registry.TrafficRecord
	Key    string // identifies the call
	Client string // as shown
	Name   string // at its server
	Source any    // belongs to the caller

	// Arguments and Failure are short texts beside the name and the bar. The chart
	// requests them by [Chart.Describe] when it first draws the call.
	Arguments, Failure string
	described          bool
}

// Role is the meaning of a row.
type Role int

// Values of [Role].
const (
	Heading      Role = iota // of a group
	Request                  // of a client, or of a script
	Retry                    // of a failed request
	Poll                     // of a task
	FromServer               // elicitation, sampling or roots
	Progress                 // notifications of a request; belongs to the row of that request
	Notification             // any other
)

// Row is one line of a layout.
type Row struct {
	Role     Role
	Call     *Call // of a progress row, the call with the progress; nil for a heading
	Depth    int   // 0 for calls that no other call caused
	Title    string
	Count    int // calls of a heading's group, retries before this one, or polls
	Usual    Usual
	Polls    []*Call                   // polls of the same task before Call
	Progress []*registry.TrafficRecord // of a progress row, oldest first
	waits    []interval                // for the user
}

type interval struct{ start, end time.Time }

// Layout is the order of all rows.
type Layout struct {
	Rows    []Row
	byStart []*Call // requests only
	newest  int     // row of the last started call that is no request of a server, or -1
	First   time.Time
	End     time.Time // of the last finished call
	Running int
	lanes   []lane
	queue   lane
}

// Limits for times of untrusted records.
const maxDuration = 10 * 365 * 24 * time.Hour

// retryWithin is the maximum time from the end of a failed call to its retry.
const retryWithin = 30 * time.Second

func isNotification(r *registry.TrafficRecord) bool { return recording.IsNotification(r) }

func isRunning(r *registry.TrafficRecord) bool { return r.Status == registry.StatusInFlight }

func isFailed(r *registry.TrafficRecord) bool { return recording.IsFailure(r) }

func isForUser(r *registry.TrafficRecord) bool {
	return r.Direction == registry.ToClient && (r.Method == "elicitation/create" || r.Method == "sampling/createMessage")
}

// end returns the end of a request, or the last time of a notification.
func end(r *registry.TrafficRecord, now time.Time) time.Time {
	switch {
	case isRunning(r):
		if now.Before(r.Time) {
			return r.Time
		}
		return now
	case isNotification(r):
		if r.Last.After(r.Time) {
			return r.Last
		}
		return r.Time
	}
	return r.Time.Add(bounded(r.Duration))
}

func bounded(d time.Duration) time.Duration { return max(0, min(d, maxDuration)) }

type node struct {
	row      Row
	parent   *node
	children []*node
	progress []*registry.TrafficRecord
	failedAt time.Time // of the last attempt
	attempts int
}

type attemptKey struct {
	parent                        uint64
	session, server, method, name string
}

type pollKey struct{ session, task string }

type builder struct {
	byNumber map[uint64]*node
	failed   map[attemptKey]*node
	polls    map[pollKey]*node
	usual    usualTable
	same     func(a, b *Call) bool
	roots    []*node
}

// New lays out calls. progress contains progress notifications in order; others are
// ignored. same reports whether two calls of the same target have equal arguments, so that
// the second one repeats the first.
func New(calls []Call, progress []*registry.TrafficRecord, by Grouping, same func(a, b *Call) bool) *Layout {
	l := &Layout{newest: -1}
	order := make([]*Call, 0, len(calls))
	for i := range calls {
		if !calls[i].Record.Time.IsZero() {
			order = append(order, &calls[i])
		}
	}
	slices.SortStableFunc(order, func(a, b *Call) int {
		x, y := a.Record, b.Record
		return cmp.Or(x.Time.Compare(y.Time), cmp.Compare(x.Number-1, y.Number-1), cmp.Compare(x.Seq-1, y.Seq-1)) // 0 comes last
	})
	b := &builder{
		byNumber: make(map[uint64]*node, len(order)), failed: map[attemptKey]*node{}, polls: map[pollKey]*node{}, usual: usualTable{}, same: same,
	}
	for _, c := range order {
		l.count(c)
		b.add(c)
	}
	for _, note := range progress {
		if n := b.byNumber[note.Parent]; n != nil && IsProgress(note) {
			n.progress = append(n.progress, note)
		}
	}
	l.flatten(b.roots, by)
	l.lanes, l.queue = newLanes(l.byStart)
	return l
}

// IsProgress reports whether a record is drawn in the row of another one.
func IsProgress(r *registry.TrafficRecord) bool {
	return r.Parent != 0 && r.Method == "notifications/progress"
}

func (l *Layout) count(c *Call) {
	r := c.Record
	if l.First.IsZero() || r.Time.Before(l.First) {
		l.First = r.Time
	}
	if isRunning(r) {
		l.Running++
	} else if at := end(r, r.Time); at.After(l.End) {
		l.End = at
	}
	if !isNotification(r) {
		l.byStart = append(l.byStart, c)
	}
}

// add appends a call to its parent or to the roots. All earlier calls were added, so that
// parents are no cycle.
func (b *builder) add(c *Call) {
	r := c.Record
	n := &node{row: Row{Role: Request, Call: c}}
	parent := b.byNumber[r.Parent]
	switch {
	case isNotification(r):
		if IsProgress(r) && parent != nil {
			return // in the progress row
		}
		n.row.Role = Notification
	case r.Direction == registry.ToClient:
		n.row.Role = FromServer
	case strings.HasPrefix(r.Method, "tasks/") && r.Name != "":
		if b.addPoll(c) {
			return
		}
		n.row.Role, n.row.Count = Poll, 1
		b.polls[pollKey{r.Session, r.Name}] = n
	default:
		n.row.Usual = b.usual.next(r)
		if first := b.firstAttempt(n); first != nil {
			n.row.Role, n.row.Count, parent = Retry, first.attempts, first
		}
	}
	if r.Number != 0 && !isNotification(r) {
		b.byNumber[r.Number] = n
	}
	if parent == nil {
		b.roots = append(b.roots, n)
		return
	}
	n.parent, parent.children = parent, append(parent.children, n)
	for isForUser(r) && parent != nil {
		parent.row.waits = append(parent.row.waits, interval{r.Time, end(r, r.Time)})
		if parent.row.Role == Retry { // the first attempt had ended
			break
		}
		parent = parent.parent
	}
}

// addPoll adds a poll to the row of its task. It returns false if the task has no row.
func (b *builder) addPoll(c *Call) bool {
	n := b.polls[pollKey{c.Record.Session, c.Record.Name}]
	if n == nil {
		return false
	}
	n.row.Polls = append(n.row.Polls, n.row.Call)
	n.row.Call = c
	n.row.Count++
	if c.Record.Number != 0 {
		b.byNumber[c.Record.Number] = n
	}
	return true
}

// firstAttempt returns the failed call that the call of n repeats, or nil.
func (b *builder) firstAttempt(n *node) *node {
	r := n.row.Call.Record
	key := attemptKey{r.Parent, r.Session, r.Server, r.Method, r.Name}
	first := b.failed[key]
	if first != nil {
		wait := r.Time.Sub(first.failedAt)
		if wait < 0 || wait > retryWithin || !b.same(n.row.Call, first.row.Call) {
			first = nil
		}
	}
	if first != nil {
		first.attempts++
	}
	if !isFailed(r) {
		delete(b.failed, key)
		return first
	}
	next := first
	if next == nil {
		next = n
	}
	next.failedAt = end(r, r.Time)
	b.failed[key] = next
	return first
}

func (l *Layout) flatten(roots []*node, by Grouping) {
	l.Rows = make([]Row, 0, len(l.byStart)+16)
	if by == Ungrouped {
		for _, n := range roots {
			l.appendNode(n, 0)
		}
		return
	}
	var titles []string
	groups := map[string][]*node{}
	for _, n := range roots {
		title := groupTitle(n.row.Call, by)
		if groups[title] == nil {
			titles = append(titles, title)
		}
		groups[title] = append(groups[title], n)
	}
	for _, title := range titles {
		l.Rows = append(l.Rows, Row{Role: Heading, Title: title, Count: len(groups[title])})
		for _, n := range groups[title] {
			l.appendNode(n, 0)
		}
	}
}

func groupTitle(c *Call, by Grouping) string {
	switch by {
	case ByServer:
		return cmp.Or(c.Record.Server, "no server")
	case BySession:
		if c.Record.Session == "" {
			return cmp.Or(c.Client, "no session")
		}
		return strings.TrimSpace(c.Client + " " + c.Record.Session)
	}
	if c.Client == "" && c.Record.Direction == registry.ToClient {
		return "servers"
	}
	return cmp.Or(c.Client, "no client")
}

func (l *Layout) appendNode(n *node, depth int) {
	n.row.Depth = depth
	if n.row.Role != FromServer || depth == 0 {
		if l.newest < 0 || !n.row.Call.Record.Time.Before(l.Rows[l.newest].Call.Record.Time) {
			l.newest = len(l.Rows)
		}
	}
	l.Rows = append(l.Rows, n.row)
	if len(n.progress) > 0 {
		l.Rows = append(l.Rows, Row{Role: Progress, Call: n.row.Call, Depth: depth + 1, Progress: n.progress})
	}
	for _, child := range n.children {
		l.appendNode(child, depth+1)
	}
}

// selectable reports whether the cursor may be on a row.
func (r *Row) selectable() bool { return r.Role != Heading && r.Role != Progress }

// indexOf returns the selectable row with a call, or -1.
func (l *Layout) indexOf(key string) int {
	return slices.IndexFunc(l.Rows, func(r Row) bool {
		return r.selectable() && (r.Call.Key == key || slices.ContainsFunc(r.Polls, func(c *Call) bool { return c.Key == key }))
	})
}
