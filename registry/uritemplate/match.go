package uritemplate

import "strings"

// class is a set of bytes that a value may consist of.
type class uint8

const (
	classAny     class = 1 << iota
	classSegment       // not / ? #
	classPath          // not ? #
	classForm          // not & #
	classQuery         // not #
	classParam         // not ; / ? #
)

var classes = func() (t [256]class) {
	for c := range t {
		t[c] = classAny
		for _, x := range []struct {
			class class
			not   string
		}{{classSegment, "/?#"}, {classPath, "?#"}, {classForm, "&#"}, {classQuery, "#"}, {classParam, ";/?#"}} {
			if strings.IndexByte(x.not, byte(c)) < 0 {
				t[c] |= x.class
			}
		}
	}
	return t
}()

// set holds the positions of the URI that can be reached: set[i] means that
// everything so far can match the first i bytes.
type set []bool

func (a set) empty() bool {
	for _, x := range a {
		if x {
			return false
		}
	}
	return true
}

func (a set) add(b set) {
	for i, x := range b {
		if x {
			a[i] = true
		}
	}
}

// Match reports whether uri is an expansion of the template. Variables of
// simple and reserved expressions ({v}, {+v}) must not be empty; those of the
// other operators may be undefined.
func (t *Template) Match(uri string) bool {
	if len(uri) > MaxURI || !strings.HasPrefix(uri, t.Prefix()) {
		return false
	}
	n := len(uri) + 1
	var stack [5 * 200]bool
	space := stack[:]
	if 5*n > len(space) {
		space = make([]bool, 5*n)
	}
	m := matcher{s: uri}
	for i := range m.sets {
		m.sets[i] = space[i*n : (i+1)*n]
	}
	cur, next := m.sets[0], m.sets[1]
	cur[0] = true
	for i := range t.parts {
		p := &t.parts[i]
		if p.vars == nil {
			m.literal(next, cur, p.lit)
			if p.encoded != "" {
				m.literal(m.sets[2], cur, p.encoded)
				next.add(m.sets[2])
			}
		} else {
			m.expression(next, cur, p)
		}
		if cur, next = next, cur; cur.empty() {
			return false
		}
	}
	return cur[len(uri)]
}

// matcher holds the URI and room: two sets for Match, three for expressions.
type matcher struct {
	s    string
	sets [5]set
}

// literal sets to to what lit reaches from from.
func (m *matcher) literal(to, from set, lit string) {
	clear(to)
	for i, ok := range from {
		if ok && strings.HasPrefix(m.s[i:], lit) {
			to[i+len(lit)] = true
		}
	}
}

// span sets to to what a run of bytes of class c reaches from from; limit is
// the greatest number of characters, 0 for any. The run that began last is
// the shortest, so it stands for all others.
func (m *matcher) span(to, from set, c class, atLeast, limit int) {
	clear(to)
	running, chars := false, 0
	for i := range to {
		if i > 0 {
			if from[i-1] {
				running, chars = true, 0
			}
			if running = running && classes[m.s[i-1]]&c != 0; running && limit > 0 {
				chars += m.width(i - 1)
				running = chars <= limit
			}
		}
		to[i] = running || atLeast == 0 && from[i]
	}
}

// width is 1 where a character begins and 0 inside of one: in the middle of a
// percent triplet, of UTF-8, or of percent-encoded UTF-8.
func (m *matcher) width(i int) int {
	s := m.s
	if s[i]&0xc0 == 0x80 || i >= 1 && triplet(s, i-1) || i >= 2 && triplet(s, i-2) {
		return 0
	}
	if triplet(s, i) && strings.IndexByte("89abAB", s[i+1]) >= 0 {
		return 0
	}
	return 1
}

func (m *matcher) expression(to, from set, p *part) {
	exploded := false
	for _, v := range p.vars {
		exploded = exploded || v.explode
	}
	limit := 0
	if len(p.vars) == 1 {
		limit = p.vars[0].max
	}
	a := m.sets[2]
	switch p.op {
	case 0:
		c := classSegment
		if exploded {
			c = classPath
		}
		m.span(to, from, c, 1, limit)
	case '+':
		m.span(to, from, classAny, 1, limit)
	case '#':
		m.literal(a, from, "#")
		m.span(to, a, classAny, 0, limit)
		to.add(from)
	case '.':
		m.literal(a, from, ".")
		m.span(to, a, classSegment, 0, limit)
		to.add(from)
	case '/':
		if exploded {
			m.literal(a, from, "/")
			m.span(to, a, classPath, 0, 0)
			to.add(from)
			return
		}
		m.segments(to, from, len(p.vars), limit)
	case ';':
		m.pairs(to, from, p.vars, ";", ";", classParam, exploded)
	case '?':
		m.pairs(to, from, p.vars, "?", "&", classForm, exploded)
	case '&':
		m.pairs(to, from, p.vars, "&", "&", classForm, exploded)
	}
}

// segments follows up to n path segments.
func (m *matcher) segments(to, from set, n, limit int) {
	a, b := m.sets[2], m.sets[3]
	copy(to, from)
	copy(b, from)
	for range n {
		m.literal(a, b, "/")
		if a.empty() {
			return
		}
		m.span(b, a, classSegment, 0, limit)
		to.add(b)
	}
}

// pairs follows name=value pairs, at most one per variable, in any order.
func (m *matcher) pairs(to, from set, vars []variable, first, sep string, c class, exploded bool) {
	a, b, round := m.sets[2], m.sets[3], m.sets[4]
	copy(to, from)
	if exploded { // an exploded map brings names of its own
		if c == classForm {
			c = classQuery
		} else {
			c = classSegment
		}
		m.literal(a, from, first)
		m.span(b, a, c, 0, 0)
		to.add(b)
		return
	}
	copy(round, from)
	for i := range vars {
		if i == 1 {
			first = sep
		}
		clear(b)
		for _, v := range vars {
			m.pair(b, round, a, first, v.name, c)
		}
		if b.empty() {
			return
		}
		to.add(b)
		copy(round, b)
	}
}

// pair adds to to what one pair reaches from from: the separator and the
// name, then nothing or "=" and a value. a is room.
func (m *matcher) pair(to, from, a set, sep, name string, c class) {
	clear(a)
	any := false
	for i, ok := range from {
		if !ok || !strings.HasPrefix(m.s[i:], sep) || !strings.HasPrefix(m.s[i+len(sep):], name) {
			continue
		}
		end := i + len(sep) + len(name)
		to[end] = true
		if end < len(m.s) && m.s[end] == '=' {
			a[end+1] = true
			any = true
		}
	}
	if !any {
		return
	}
	running := false
	for i := range a {
		if i > 0 {
			running = (running || a[i-1]) && classes[m.s[i-1]]&c != 0
		}
		if running || a[i] {
			to[i] = true
		}
	}
}
