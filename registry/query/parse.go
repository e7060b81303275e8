// Package query parses filters and matches rows that offer named fields.
//
// It depends on neither terminals nor rows: an [Index] holds their text, and each [Field]
// reads one value of a row. Queries and indexes are immutable. Any text is a valid query,
// and its length bounds the work per row.
package query

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"goblin/registry/suggest"
)

// Query is a parsed filter. The zero value matches every row. An [Index] and a Query are
// immutable and may be used from any goroutine.
//
// [Query.Match] and [Query.ExcludingTerm] read every row, in a few milliseconds per
// hundred thousand. They belong into a command with a context that cancels them.
// Everything else is fast enough for drawing. Match calls the functions of a [Field] on
// its own goroutine. Different Unicode normal forms do not match each other.
type Query struct {
	words   []word
	fuzzies []fuzzyWord
	conds   []cond
	problem Problem
}

// Problem is an invalid term.
type Problem struct {
	Text   string // the reason and the fix
	Term   string // as typed
	Column int    // of the term, from 1, in characters
}

type word struct {
	text, low string // as typed and folded
	exact     bool   // case-sensitive
	byMask    bool   // the mask alone decides
	mask      uint64
	not       bool
	source    string // the term as typed
}

// fuzzyWord is a ~word: characters in order.
type fuzzyWord struct {
	low    string
	runes  []string
	mask   uint64
	not    bool
	source string
}

type cond struct {
	field  *Field
	path   string
	not    bool
	texts  []pattern // any of them, for Text and Texts fields
	tests  []test    // any of them, for other fields
	spans  []span    // any of them, for Since and Range fields
	source string
}

type test func(row int, now time.Time) bool

// Parse parses a filter. It never fails; see [Query.Problem].
//
//	config main          both, in any order, anywhere in the row's text
//	Config               an upper-case letter makes that word case-sensitive
//	"two words"          one word with a space; "" inside it is a quote
//	~cfgmain             its characters in this order; the best match first
//	server:gi            the field contains it; its case does not matter
//	mime:text/*          with a *, the whole value; * also crosses a /
//	server:=git          the whole value, nothing else
//	mime:""              no value
//	server:a server:b    several of one field: any of them
//	sub:yes  sub:no
//	updated:<5m          in the last 5 minutes; >1h: longer ago (s, m, h, d)
//	ms:>500 size:<=1.5M  numbers: < > <= >= =, with k, M, G or Ki, Mi, Gi
//	ms:>1.5s             durations also with ms, s, m, h, d
//	since:10m            at most 10 minutes ago; or since 02:06, a date, RFC 3339
//	at:02:06..02:07      from 02:06:00 until the end of 02:07 of any day; either side may
//	                     be missing or have a date; it may cross midnight
//	arg.a.b:x            the values at a path of a set
//	-word  -mime:json    not these
//
// All other terms are ANDed, including comparisons of one number or age field, so ms:>100
// ms:<500 is a range. Unfinished terms (-, ~, server:, updated:<) match everything. An
// unknown field name with nothing after its colon is text, such as the scheme of a URI.
// An invalid term hides nothing.
func Parse(text string, fields []Field) *Query {
	p := parser{fields: fields, any: make(map[ored]int)}
	for _, t := range tokens(text) {
		p.token = t
		p.add(t)
	}
	slices.SortStableFunc(p.q.conds, func(a, b cond) int { return costOf(a.field) - costOf(b.field) })
	return &p.q
}

func costOf(f *Field) int {
	if f.Costly {
		return 1
	}
	return 0
}

// Problem describes the first invalid term, or returns "".
func (q *Query) Problem() string { return q.problem.Text }

// FirstProblem returns the first invalid term. Its text is "" if all are valid.
func (q *Query) FirstProblem() Problem { return q.problem }

// IsCostly reports whether matching reads bodies.
func (q *Query) IsCostly() bool {
	return slices.ContainsFunc(q.conds, func(c cond) bool { return c.field.Costly })
}

// IsEmpty reports whether the query matches every row.
func (q *Query) IsEmpty() bool { return len(q.words)+len(q.fuzzies)+len(q.conds) == 0 }

// IsRanked reports whether results are sorted by score, because there is a ~word.
func (q *Query) IsRanked() bool {
	return slices.ContainsFunc(q.fuzzies, func(f fuzzyWord) bool { return !f.not })
}

// HasWords reports whether the query has words, which order the rows.
func (q *Query) HasWords() bool {
	return slices.ContainsFunc(q.words, func(w word) bool { return !w.not })
}

type parser struct {
	fields []Field
	q      Query
	any    map[ored]int // index of the ORed condition
	token  token        // current
}

type ored struct {
	field *Field
	path  string
}

func (p *parser) add(t token) {
	switch {
	case t.fuzzy:
		p.fuzzy(t)
	case t.name == "":
		p.word(t)
	default:
		for i := range p.fields {
			f := &p.fields[i]
			path, ok := f.called(t.name)
			if !ok {
				continue
			}
			if !t.unfinished() && f.usable() {
				p.value(f, path, t)
			}
			return
		}
		if t.likeURI() || t.unfinished() { // or an incomplete URI
			p.word(t)
		} else {
			p.unknown(t.name)
		}
	}
}

func (p *parser) word(t token) {
	if t.body == "" {
		return
	}
	low, _ := fold(t.body)
	exact := strings.IndexFunc(t.body, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsTitle(r) }) >= 0
	p.q.words = append(p.q.words, word{
		text:   t.body,
		low:    low,
		exact:  exact,
		byMask: !exact && len(low) == 1 && letters.own[low[0]],
		mask:   maskOf(low),
		not:    t.not,
		source: t.raw,
	})
}

func (p *parser) fuzzy(t token) {
	if t.value == "" {
		return
	}
	low, _ := fold(t.value)
	p.q.fuzzies = append(p.q.fuzzies, fuzzyWord{
		low: low, runes: strings.Split(low, ""), mask: maskOf(low), not: t.not, source: t.raw,
	})
}

func (p *parser) value(f *Field, path string, t token) {
	switch f.Kind {
	case Text, Texts:
		if pat, ok := newPattern(t.value, t.quoted); ok {
			c := p.cond(f, path, t, true)
			c.texts = append(c.texts, pat)
		}
	case YesNo:
		want, ok := parseYesNo(t.value)
		if !ok {
			p.setProblem("%s must be yes or no, not %s", f.Name, short(t.value))
			return
		}
		p.test(f, t, true, func(row int, _ time.Time) bool { return f.YesNo(row) == want })
	case Age:
		p.age(f, t)
	case Number, Duration:
		p.number(f, t)
	case Since:
		if s, ok := parseSince(t.value); ok {
			p.span(f, t, false, s)
		} else {
			p.setProblem("%s must be an age such as 10m (s, m, h, d), a time such as 02:06 or a date such as 2026-01-02T02:06, not %s", f.Name, short(t.value))
		}
	case Range:
		p.moments(f, t)
	}
}

func (p *parser) age(f *Field, t token) {
	op, rest := operator(t.value)
	age, ok := parseAge(rest)
	switch {
	case rest == "" && op != "": // still typing
	case !ok || op == "=":
		p.setProblem("%s must be an age such as <5m or >2h (s, m, h, d), not %s", f.Name, short(t.value))
	default:
		p.test(f, t, false, testAge(f, op, age))
	}
}

func (p *parser) number(f *Field, t token) {
	op, rest := operator(t.value)
	parse, hint := parseNumber, "a number such as >500 or <=2k"
	if f.Kind == Duration {
		parse, hint = parseDuration, "a duration such as >500 (ms), >1.5s or <=2m"
	}
	number, ok := parse(rest)
	switch {
	case rest == "" && op != "":
	case !ok:
		p.setProblem("%s must be %s, not %s", f.Name, hint, short(t.value))
	default:
		p.test(f, t, op == "" || op == "=", testNumber(f, op, number))
	}
}

func (p *parser) moments(f *Field, t token) {
	s, reason, ok := parseRange(t.value)
	switch {
	case ok && s.from == nil && s.to == nil: // still typing
	case ok:
		p.span(f, t, true, s)
	case reason != "":
		p.setProblem("the range %s of %s %s, such as 2026-01-02T23:50..00:10", short(t.value), f.Name, reason)
	default:
		p.setProblem("%s must be a time such as 02:06, or a range such as 02:06..02:07, 02:06.. or 2026-01-02T23:50..00:10, not %s", f.Name, short(t.value))
	}
}

// Positive terms of a field and path share a condition if they are ORed.
func (p *parser) cond(f *Field, path string, t token, alternative bool) *cond {
	alternative = alternative && !t.not
	key := ored{f, path}
	if i, ok := p.any[key]; ok && alternative {
		c := &p.q.conds[i]
		c.source += " " + t.raw
		return c
	}
	if alternative {
		p.any[key] = len(p.q.conds)
	}
	p.q.conds = append(p.q.conds, cond{field: f, path: path, not: t.not, source: t.raw})
	return &p.q.conds[len(p.q.conds)-1]
}

func (p *parser) test(f *Field, t token, alternative bool, fit test) {
	c := p.cond(f, "", t, alternative)
	c.tests = append(c.tests, fit)
}

func (p *parser) span(f *Field, t token, alternative bool, s span) {
	c := p.cond(f, "", t, alternative)
	c.spans = append(c.spans, s)
}

func (p *parser) unknown(name string) {
	var all []string
	near := suggest.New(strings.ToLower(name))
	for i := range p.fields {
		all = append(all, p.fields[i].Name)
		near.Add(p.fields[i].Name, append([]string{p.fields[i].Name}, p.fields[i].Aliases...)...)
	}
	text := fmt.Sprintf("no field %s here; quote it to search for text", short(name))
	if found := near.Best(); len(found) > 0 {
		text = fmt.Sprintf("no field %s here; did you mean %s:? Quote it to search for text", short(name), found[0])
	} else if len(all) > 0 {
		text += "; fields: " + strings.Join(all, ", ")
	}
	p.setProblem("%s", text)
}

func (p *parser) setProblem(format string, args ...any) {
	if p.q.problem.Text == "" {
		p.q.problem = Problem{Text: fmt.Sprintf(format, args...), Term: p.token.raw, Column: p.token.column}
	}
}

func short(s string) string {
	if r := []rune(s); len(r) > 32 {
		s = string(r[:31]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
