// Package query parses filters and matches rows that offer named fields.
//
// It knows neither terminals nor the rows: an [Index] holds their text, and each [Field]
// reads one value of a row. Queries and indexes are immutable. Any text is a valid query,
// and its length bounds the work per row.
package query

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
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
	problem string
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
	not    bool
	texts  []pattern // any of them, for a Text field
	tests  []test    // any of them, for other fields
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
//	-word  -mime:json    not these
//
// All other terms are ANDed, including comparisons of one number or age field, so ms:>100
// ms:<500 is a range. Unfinished terms (-, ~, server:, updated:<) match everything. An
// unknown field name with nothing after its colon is text, such as the scheme of a URI.
// An invalid term hides nothing.
func Parse(text string, fields []Field) *Query {
	p := parser{fields: fields, any: make(map[*Field]int)}
	for _, t := range tokens(text) {
		p.add(t)
	}
	return &p.q
}

// Problem describes the first invalid term, or returns "".
func (q *Query) Problem() string { return q.problem }

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
	any    map[*Field]int // index of the ORed condition
}

func (p *parser) add(t token) {
	switch {
	case t.fuzzy:
		p.fuzzy(t)
	case t.name == "":
		p.word(t)
	default:
		for i := range p.fields {
			if f := &p.fields[i]; f.called(t.name) {
				if !t.unfinished() && f.usable() {
					p.value(f, t)
				}
				return
			}
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

func (p *parser) value(f *Field, t token) {
	switch f.Kind {
	case Text:
		if pat, ok := newPattern(t.value, t.quoted); ok {
			c := p.cond(f, t, true)
			c.texts = append(c.texts, pat)
		}
	case YesNo:
		want, ok := parseYesNo(t.value)
		if !ok {
			p.setProblem("%s must be yes or no, not %s", f.Name, t.value)
			return
		}
		p.test(f, t, true, func(row int, _ time.Time) bool { return f.YesNo(row) == want })
	case Age:
		op, rest := operator(t.value)
		age, ok := parseAge(rest)
		switch {
		case rest == "" && op != "": // still typing
		case !ok || op == "=":
			p.setProblem("%s must be an age such as <5m or >2h (s, m, h, d), not %s", f.Name, t.value)
		default:
			p.test(f, t, false, testAge(f, op, age))
		}
	case Number:
		op, rest := operator(t.value)
		number, ok := parseNumber(rest)
		switch {
		case rest == "" && op != "":
		case !ok:
			p.setProblem("%s must be a number such as >500 or <=2k, not %s", f.Name, t.value)
		default:
			p.test(f, t, op == "" || op == "=", testNumber(f, op, number))
		}
	}
}

// Positive terms of a field share a condition if they are ORed.
func (p *parser) cond(f *Field, t token, ored bool) *cond {
	ored = ored && !t.not
	if i, ok := p.any[f]; ok && ored {
		c := &p.q.conds[i]
		c.source += " " + t.raw
		return c
	}
	if ored {
		p.any[f] = len(p.q.conds)
	}
	p.q.conds = append(p.q.conds, cond{field: f, not: t.not, source: t.raw})
	return &p.q.conds[len(p.q.conds)-1]
}

func (p *parser) test(f *Field, t token, ored bool, fit test) {
	c := p.cond(f, t, ored)
	c.tests = append(c.tests, fit)
}

func (p *parser) unknown(name string) {
	if p.q.problem != "" {
		return
	}
	p.q.problem = fmt.Sprintf("no field %s here; quote it to search for text", short(name))
	for i := range p.fields {
		sep := ", "
		if i == 0 {
			sep = "; fields: "
		}
		p.q.problem += sep + p.fields[i].Name
	}
}

func (p *parser) setProblem(format, field, value string) {
	if p.q.problem == "" {
		p.q.problem = fmt.Sprintf(format, field, short(value))
	}
}

func short(s string) string {
	if r := []rune(s); len(r) > 32 {
		s = string(r[:31]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
