package rule

import (
	"slices"
	"strings"
	"time"

	"goblin/registry"
	"goblin/registry/query"
	"goblin/registry/recording"
)

// Subject is a request, with its answer for OnAnswer.
type Subject struct {
	Record registry.TrafficRecord // without bodies
	// Names are the spellings of Record.Name: as sent, as listed, the server's own.
	Names                 []string
	Params, Answer        []byte
	Destructive, ReadOnly bool // annotations of a tool
}

// alwaysPassed lists methods that only rules with a method: term select. Without them, no
// client can connect.
var alwaysPassed = []string{"initialize", "server/discover", "ping"}

// useless lists fields of traffic that mean nothing for a request that just arrived.
var useless = []string{"dir", "since", "at", "rule"}

// answerFields lists fields that only answers have.
var answerFields = []string{"status", "err", "error", "ms", "size", "result"}

// Fields that read hints of tools.
const (
	fieldDestructive = "destructive"
	fieldReadOnly    = "readonly"
)

// fields returns the fields of rules: those of filters of traffic, with all spellings of
// a name, and the hints of tools.
func fields(of func() *Subject) []query.Field {
	all := slices.DeleteFunc(recording.Fields(
		func(int) *registry.TrafficRecord { return &of().Record },
		func(int) (params, answer []byte) { return of().Params, of().Answer },
	), func(f query.Field) bool { return slices.Contains(useless, f.Name) })
	for i := range all {
		switch f := &all[i]; f.Name {
		case "name":
			f.Kind, f.Text = query.Texts, nil
			f.Texts = func(int, string) []string { return of().Names }
		case "arg":
			f.Texts = func(_ int, path string) []string { return recording.AllArguments(of().Params, path) }
		}
	}
	yes := func(name, help string, value func(*Subject) bool) query.Field {
		return query.Field{Name: name, Kind: query.YesNo, Help: help, YesNo: func(int) bool { return value(of()) }}
	}
	return append(all,
		query.Field{Name: "result", Kind: query.Text, Help: "ok or error; only of answers", Text: func(int) string {
			if recording.IsFailure(&of().Record) {
				return "error"
			}
			return "ok"
		}},
		query.Field{Name: "profile", Kind: query.Text, Help: "the client's profile", Text: func(int) string { return of().Record.Profile }},
		yes(fieldDestructive, "the tool may destroy data, or does not state it: yes or no", func(s *Subject) bool { return s.Destructive }),
		yes(fieldReadOnly, "the tool states that it changes nothing: yes or no", func(s *Subject) bool { return s.ReadOnly }),
	)
}

// noValues returns the fields of rules for reading a text.
func noValues() []query.Field { return fields(func() *Subject { return &Subject{} }) }

// matcher is a parsed text with the subject that its fields read.
type matcher struct {
	query   *query.Query
	subject *Subject
}

func newMatcher(when string) *matcher {
	m := new(matcher)
	m.query = query.Parse(when, fields(func() *Subject { return m.subject }))
	return m
}

// Matches reports whether the rule selects a subject of its On. It ignores P and Count.
func (r *Rule) Matches(s *Subject, now time.Time) bool {
	if !r.methods && slices.Contains(alwaysPassed, s.Record.Method) {
		return false
	}
	m := r.matchers.Get().(*matcher)
	defer r.matchers.Put(m)
	m.subject = s
	defer func() { m.subject = nil }()
	return m.query.Matches(s.Record.Method+" "+strings.Join(s.Names, " "), now)
}

// ReadsHints reports whether the hints of the subject's tool can decide if the rule
// matches. Rules on answers may have other terms that only the answer decides.
func (r *Rule) ReadsHints(s *Subject, now time.Time) bool {
	if !r.hints || r.On == OnAnswer {
		return r.hints
	}
	for _, hints := range [][2]bool{{true, false}, {false, true}, {false, false}} {
		c := *s
		c.Destructive, c.ReadOnly = hints[0], hints[1]
		if r.Matches(&c, now) {
			return true
		}
	}
	return false
}
