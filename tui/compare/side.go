// Package compare shows two calls or two definitions side by side, with their differences.
//
// [Marks] holds the marked side of one UI and opens a [View] for the second one. Both must
// run on the UI's Update goroutine; comparisons run in commands. Package registry/compare
// finds the differences. This package must not import panes.
package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"goblin/registry"
	"goblin/registry/compare"
	"goblin/tui/uicontext"
)

// Side is one of two compared calls or definitions. Its texts are untrusted.
type Side struct {
	Key   string // identifies its row
	Title string
	Facts string // time, client, duration, size
	// Subject is the server and the name, for which ignored paths are kept.
	Subject string

	call *compare.Call // or nil
	at   time.Time
	args json.RawMessage // of a call
	item uicontext.Item  // empty if it cannot be called again

	definition []byte
	kind       string // of the definition

	isGone func() bool // the row was evicted; may be nil
	note   string
}

// newCall returns a side with a recorded request and its answer.
func newCall(rec *registry.TrafficRecord, it uicontext.Item, client string) *Side {
	name := cmp.Or(rec.Original, it.Name, rec.Name)
	s := &Side{
		Key: RecordKey(rec), Title: strings.TrimRight(rec.Method+" "+rec.Name, " "), Facts: callFacts(rec.Time, client, rec.Duration-rec.UserWait, rec.Size),
		Subject: rec.Server + " " + name, at: rec.Time, item: it,
	}
	s.call = &compare.Call{
		Server: rec.Server, Method: rec.Method, Name: name, Params: rec.Request, Answer: rec.Response, IsError: compare.HasErrorObject(rec),
		ParamsCut: len(rec.Request) < rec.RequestSize, AnswerCut: len(rec.Response) < rec.ResponseSize,
	}
	if !s.call.ParamsCut && len(rec.Request) > 0 {
		s.args = s.call.Arguments()
	}
	if s.call.ParamsCut || s.call.AnswerCut {
		s.note = "only the first " + uicontext.FormatSize(int64(max(len(rec.Request), len(rec.Response)))) + " are compared"
	}
	return s
}

// RecordKey identifies a record of Traffic. Equal notifications share one.
func RecordKey(r *registry.TrafficRecord) string {
	return "record " + strconv.FormatUint(cmp.Or(r.First, r.Seq), 10)
}

// WhyNot explains why a record of Traffic cannot be compared, or returns "".
func WhyNot(r *registry.TrafficRecord) string {
	switch {
	case r.Status == registry.StatusInFlight || r.Seq == 0:
		return "the request is running; wait for its answer"
	case r.Status == registry.StatusNotification:
		return "only requests can be compared"
	}
	return ""
}

// methods are the requests of the UI by kind.
var methods = map[registry.Kind]string{registry.Tool: "tools/call", registry.Prompt: "prompts/get", registry.Resource: "resources/read", registry.Template: "resources/read"}

// newInvocation returns a side with a call of this UI.
func newInvocation(it uicontext.Item, inv *registry.Invocation) *Side {
	method := methods[inv.Kind]
	s := &Side{
		Key: InvocationKey(inv), Title: method + " " + inv.Listed, Subject: inv.Server + " " + inv.Name,
		at: inv.Time, args: inv.Params, item: it,
	}
	input := map[string]any{}
	switch {
	case inv.Kind == registry.Resource || inv.Kind == registry.Template:
		input["uri"] = cmp.Or(inv.Expanded, inv.Listed)
	case len(inv.Params) > 0:
		input["arguments"] = inv.Params
	}
	params, _ := json.Marshal(input) // strings and valid JSON
	s.call = &compare.Call{Server: inv.Server, Method: method, Name: inv.Name, Params: params, Answer: inv.Result}
	if inv.Error != "" {
		s.call.IsError = true
		s.call.Answer, _ = json.Marshal(map[string]any{"code": inv.ErrorCode, "message": inv.Error})
	}
	s.Facts = callFacts(inv.Time, "you", inv.Duration, int64(len(s.call.Answer)))
	return s
}

// InvocationKey returns the key of a call of this UI.
func InvocationKey(inv *registry.Invocation) string {
	return fmt.Sprintf("past %s %s %d", inv.Server, inv.Name, inv.Time.UnixNano())
}

// NewDefinition returns a side with an entry of the catalog.
func NewDefinition(e *registry.Entry) *Side {
	kind := e.Kind.String()
	return &Side{
		Key: DefinitionKey(e), Title: kind + " " + e.Listed, Subject: "definitions", Facts: e.Listed + "  of " + e.Server,
		definition: e.JSON(), kind: kind,
	}
}

// DefinitionKey returns the key of a side with an entry.
func DefinitionKey(e *registry.Entry) string {
	return "definition " + e.Kind.String() + " " + e.Server + " " + e.Name
}

func callFacts(at time.Time, client string, took time.Duration, size int64) string {
	parts := []string{at.Format("15:04:05.000")}
	if client != "" {
		parts = append(parts, client)
	}
	return strings.Join(append(parts, uicontext.FormatDuration(took), uicontext.FormatSize(size)), "  ")
}

// Marks holds the marked side of one UI, and the ignored paths by subject.
type Marks struct {
	app     *uicontext.Context
	marked  *Side
	ignored map[string][]string
}

// NewMarks returns Marks without a mark.
func NewMarks(a *uicontext.Context) *Marks {
	return &Marks{app: a, ignored: map[string][]string{}}
}

// IsMarked reports whether the row with a key is marked.
func (m *Marks) IsMarked(key string) bool { return m.marked != nil && m.marked.Key == key }

// Toggle marks a side, removes its mark, or compares it with the marked one. A mark on a
// call is replaced by one on a definition, and vice versa. keyID is the action, for texts.
func (m *Marks) Toggle(s *Side, keyID string) tea.Cmd {
	a, key := m.marked, m.app.KeyOf(keyID)
	switch {
	case a != nil && a.Key == s.Key:
		m.marked = nil
		return m.app.Say("Mark removed")
	case a == nil || (a.call == nil) != (s.call == nil):
		m.marked = s
		return m.app.Say("Marked as A: %s; %s on another compares", uicontext.SanitizeLine(s.Title), key)
	}
	return m.open(a, s)
}

// ForgetOthers removes a mark on a request about another item, such as one in the history
// of another resource.
func (m *Marks) ForgetOthers(it uicontext.Item) {
	if m.marked != nil && m.marked.item != it {
		m.marked = nil
	}
}

// ToggleRecord toggles a request of Traffic about an item. client is its client as shown.
func (m *Marks) ToggleRecord(r *registry.TrafficRecord, it uicontext.Item, client string) tea.Cmd {
	journal, seq := m.app.Reg.Traffic(), r.Seq
	full, ok := journal.Record(seq)
	switch {
	case !ok:
		return m.app.Complain("the request was evicted by newer traffic")
	case full.RequestSize > 0 && len(full.Request) == 0 || full.ResponseSize > 0 && len(full.Response) == 0:
		return m.app.Complain("its params or answer: %s", m.app.MissingBody())
	}
	s := newCall(&full, it, client)
	s.isGone = func() bool {
		_, ok := journal.Record(seq)
		return !ok
	}
	return m.Toggle(s, "compare")
}

// ToggleInvocation toggles a call of this UI.
func (m *Marks) ToggleInvocation(it uicontext.Item, inv *registry.Invocation) tea.Cmd {
	if inv.Cancelled {
		return m.app.Complain("a cancelled call has no result")
	}
	return m.Toggle(newInvocation(it, inv), "past.compare")
}

// callSame reports whether both sides are calls of one known target.
func callSame(a, b *Side) bool {
	return a.call != nil && b.call != nil && !a.item.IsEmpty() &&
		a.call.Server == b.call.Server && a.call.Name == b.call.Name && a.call.Method == b.call.Method
}

// definitionNote reports whether the definition of a tool changed between two calls, or
// returns "" if that is unknown.
func definitionNote(reg *registry.Registry, a, b *Side) string {
	if !callSame(a, b) || a.item.Kind != registry.Tool && a.item.Kind != registry.Prompt {
		return ""
	}
	kind := a.item.Kind
	from, to := a.at, b.at
	if to.Before(from) {
		from, to = to, from
	}
	journal := reg.ListChanges()
	if journal.Stats().Dropped > 0 {
		if first := journal.Window(0, 1); len(first) > 0 && first[0].Time.After(from) {
			return "" // older changes may be missing
		}
	}
	var what []string
	changed, later := false, false
	for _, c := range journal.Window(0, -1) {
		switch {
		case c.Server != a.call.Server || c.Kind != kind || c.Name != a.call.Name && c.Count == 0:
		case c.Time.After(to):
			later = true
		case c.Time.After(from) && c.Count > 0:
			return "" // a summary does not name what changed
		case c.Time.After(from):
			changed = true
			what = append(what, cmp.Or(strings.Join(c.What, ", "), c.Op))
		}
	}
	switch {
	case changed:
		return "definition changed since A: " + uicontext.SanitizeLine(strings.Join(slices.Compact(what), "; "))
	case later:
		return "same definition"
	}
	return "same definition" + hashNote(reg.Load().ByServerName(a.call.Server, kind, a.call.Name))
}

// hashNote returns the hash of a definition in parentheses, or "".
func hashNote(e *registry.Entry) string {
	if e == nil {
		return ""
	}
	hash := compare.DefinitionHash(e.JSON())
	if hash == "" {
		return ""
	}
	return " (hash " + hash + ")"
}

// evictedNote names the sides whose rows were evicted.
func evictedNote(a, b *Side) string {
	var gone []string
	for i, s := range []*Side{a, b} {
		if s.isGone != nil && s.isGone() {
			gone = append(gone, string("AB"[i]))
		}
	}
	switch len(gone) {
	case 0:
		return ""
	case 1:
		return gone[0] + " was evicted from Traffic by newer requests"
	}
	return "both were evicted from Traffic by newer requests"
}

// cutNote describes bodies of which only the beginning is known.
func cutNote(a, b *Side) string { return cmp.Or(a.note, b.note) }

func sameTitles(a, b *Side) string {
	if a.Title == b.Title {
		return a.Title
	}
	return a.Title + " and " + b.Title
}
