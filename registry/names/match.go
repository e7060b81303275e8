package names

import (
	"strings"
)

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

// positionSet is the set of reachable positions: set[i] is not 0 if the parts so far can
// match the first i bytes of the URI.
type positionSet []uint8

func (a positionSet) empty() bool {
	for _, x := range a {
		if x != 0 {
			return false
		}
	}
	return true
}

func (a positionSet) add(b positionSet) {
	for i, x := range b {
		if x != 0 {
			a[i] = 1
		}
	}
}

// MatchBudget limits the work of a lookup, in steps of about 1 ns: one byte of the URI
// compared with one part of a template. Counting steps instead of time makes results
// reproducible.
type MatchBudget int

// perTemplate is the minimum cost of trying a template.
const perTemplate = 64

func (b *MatchBudget) spend(n int) bool {
	*b -= MatchBudget(n)
	return *b >= 0
}

// IsSpent reports whether the work exceeded the budget. Results are then unreliable.
func (b *MatchBudget) IsSpent() bool { return *b < 0 }

// match returns false if the budget is spent.
func (t *Template) match(uri string, budget *MatchBudget) bool {
	if len(uri) > MaxURI || !budget.spend(perTemplate+compareCost(t.prefix)) || !strings.HasPrefix(uri, t.prefix) {
		return false
	}
	n := len(uri) + 1
	var stack [4 * 200]uint8
	space := stack[:]
	if 4*n > len(space) {
		if !budget.spend(4 * n) {
			return false
		}
		space = make([]uint8, 4*n)
	}
	m := matcher{s: uri, budget: budget}
	for i := range m.sets {
		m.sets[i] = space[i*n : (i+1)*n]
	}
	cur, next := m.sets[0], m.sets[1]
	cur[0] = 1
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
		if cur, next = next, cur; budget.IsSpent() || cur.empty() {
			return false
		}
	}
	return cur[len(uri)] != 0
}

// String comparison handles many bytes per step.
func compareCost(text string) int { return 1 + len(text)/16 }

type matcher struct {
	s      string
	sets   [4]positionSet
	budget *MatchBudget
}

func (m *matcher) literal(to, from positionSet, lit string) {
	clear(to)
	if !m.budget.spend(len(to)) {
		return
	}
	for i, ok := range from {
		if ok == 0 || m.s[i:] == "" || m.s[i] != lit[0] {
			continue
		}
		if !m.budget.spend(compareCost(lit)) {
			return
		}
		if strings.HasPrefix(m.s[i:], lit) {
			to[i+len(lit)] = 1
		}
	}
}

// span sets to to the positions reachable from from with a run of class c. limit is the
// maximum number of characters, or 0. The latest start gives the shortest run and covers
// all others.
func (m *matcher) span(to, from positionSet, c class, atLeast, limit int) {
	clear(to)
	if !m.budget.spend(len(to)) {
		return
	}
	running, chars := false, 0
	for i := range to {
		if i > 0 {
			if from[i-1] != 0 {
				running, chars = true, 0
			}
			if running = running && classes[m.s[i-1]]&c != 0; running && limit > 0 {
				chars += m.width(i - 1)
				running = chars <= limit
			}
		}
		if running || atLeast == 0 && from[i] != 0 {
			to[i] = 1
		}
	}
}

// width returns 1 at the start of a character and 0 inside of one: in a percent triplet,
// in UTF-8, or in percent-encoded UTF-8.
func (m *matcher) width(i int) int {
	s := m.s
	if s[i]&0xc0 == 0x80 || i >= 1 && isTriplet(s, i-1) || i >= 2 && isTriplet(s, i-2) {
		return 0
	}
	if isTriplet(s, i) && strings.IndexByte("89abAB", s[i+1]) >= 0 {
		return 0
	}
	return 1
}

func (m *matcher) expression(to, from positionSet, p *part) {
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
		m.pairs(to, from, p.vars, ';', ';', classParam, exploded)
	case '?':
		m.pairs(to, from, p.vars, '?', '&', classForm, exploded)
	case '&':
		m.pairs(to, from, p.vars, '&', '&', classForm, exploded)
	}
}

func (m *matcher) segments(to, from positionSet, n, limit int) {
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

// pairs follows name=value pairs in any order, at most one per variable.
func (m *matcher) pairs(to, from positionSet, vars []variable, first, sep byte, c class, exploded bool) {
	a, b := m.sets[2], m.sets[3]
	copy(to, from)
	if exploded { // an exploded map has its own names
		if c == classForm {
			c = classQuery
		} else {
			c = classSegment
		}
		m.literal(a, from, string(first))
		m.span(b, a, c, 0, 0)
		to.add(b)
		return
	}
	// ends[i] is 0 if no pair ends at i. Otherwise it is the number of pairs that may still
	// follow, plus one. begins[i] is the same for values that begin at i.
	ends, begins := a, b
	clear(ends)
	clear(begins)
	if !m.budget.spend(2 * len(to)) {
		return
	}
	value := uint8(0) // for the current value
	for i := range to {
		if i > 0 && classes[m.s[i-1]]&c == 0 {
			value = 0
		}
		value = max(value, begins[i])
		ends[i] = max(ends[i], value)
		if ends[i] > 0 {
			to[i] = 1
		}
		if i == len(m.s) {
			return
		}
		if from[i] != 0 && m.s[i] == first {
			m.names(ends, begins, i+1, vars, uint8(len(vars)))
		}
		if ends[i] > 1 && m.s[i] == sep {
			m.names(ends, begins, i+1, vars, ends[i]-1)
		}
	}
}

// names records the pairs whose name begins at at. more is one plus the number of pairs
// that may follow.
func (m *matcher) names(ends, begins positionSet, at int, vars []variable, more uint8) {
	for _, v := range vars {
		if !m.budget.spend(compareCost(v.name)) {
			return
		}
		if !strings.HasPrefix(m.s[at:], v.name) {
			continue
		}
		end := at + len(v.name)
		ends[end] = max(ends[end], more)
		if end < len(m.s) && m.s[end] == '=' {
			begins[end+1] = max(begins[end+1], more)
		}
	}
}
