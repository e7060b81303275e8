package interpreter

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// The patterns of Lua 5.1 (reference manual, 5.4.1) as the reference
// implementation matches them, which recurses per item of the pattern.
// gopher-lua's matcher recurses per character, 300 bytes deep each, and its gsub
// takes minutes for a text of 1 MB.

const (
	maxCaptures = 32
	maxMatching = 200 // items of a pattern that wait for each other

	unfinished = -1 // length of a capture that is open
	position   = -2 // length of a position capture
)

type matcher struct {
	L        *glua.LState
	src, pat string
	depth    int
	level    int
	capture  [maxCaptures]struct{ start, len int }
}

func (m *matcher) fail(message string) { m.L.RaiseError("%s", message) }

// find looks for the first match at or after init; its end is -1 if there is none.
func (m *matcher) find(init int) (start, end int) {
	anchored := strings.HasPrefix(m.pat, "^")
	p := 0
	if anchored {
		p = 1
	}
	for s := init; ; s++ {
		m.level, m.depth = 0, 0
		if e := m.match(s, p); e >= 0 {
			return s, e
		}
		if anchored || s >= len(m.src) {
			return 0, -1
		}
	}
}

// match returns where the match of pat[p:] at s ends, or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxMatching {
		m.fail("the pattern is too complex")
	}
	defer func() { m.depth-- }()
	for {
		if p == len(m.pat) {
			return s
		}
		if end, ok := m.bracket(s, p); ok {
			return end
		}
		if m.pat[p] == '%' && p+1 < len(m.pat) {
			next, ok := m.special(&s, p)
			if ok {
				if next < 0 {
					return -1
				}
				p = next
				continue
			}
		}
		ep := m.itemEnd(p)
		suffix := byte(0)
		if ep < len(m.pat) {
			suffix = m.pat[ep]
		}
		switch suffix {
		case '?':
			if s < len(m.src) && m.single(s, p, ep) {
				if e := m.match(s+1, ep+1); e >= 0 {
					return e
				}
			}
			p = ep + 1
		case '*':
			return m.longest(s, p, ep, 0)
		case '+':
			return m.longest(s, p, ep, 1)
		case '-':
			return m.shortest(s, p, ep)
		default:
			if s >= len(m.src) || !m.single(s, p, ep) {
				return -1
			}
			s, p = s+1, ep
		}
	}
}

// bracket matches the rest of the pattern from a ( or ) on, or a final $; ok is
// false for anything else.
func (m *matcher) bracket(s, p int) (end int, ok bool) {
	switch m.pat[p] {
	case '(':
		if p+1 < len(m.pat) && m.pat[p+1] == ')' {
			return m.open(s, p+2, position), true
		}
		return m.open(s, p+1, unfinished), true
	case ')':
		return m.close(s, p+1), true
	case '$':
		switch {
		case p+1 < len(m.pat):
			return 0, false
		case s == len(m.src):
			return s, true
		}
		return -1, true
	}
	return 0, false
}

// special matches %b, %f and %1 to %9 at p. ok is false for any other; next is
// what follows in the pattern, or -1.
func (m *matcher) special(s *int, p int) (next int, ok bool) {
	switch c := m.pat[p+1]; {
	case c == 'b':
		if *s = m.balance(*s, p+2); *s < 0 {
			return -1, true
		}
		return p + 4, true
	case c == 'f':
		p += 2
		if p >= len(m.pat) || m.pat[p] != '[' {
			m.fail("missing '[' after '%f' in pattern")
		}
		ep := m.itemEnd(p)
		var before, after byte
		if *s > 0 {
			before = m.src[*s-1]
		}
		if *s < len(m.src) {
			after = m.src[*s]
		}
		if m.set(before, p, ep-1) || !m.set(after, p, ep-1) {
			return -1, true
		}
		return ep, true
	case c >= '0' && c <= '9':
		i := int(c - '1')
		if i < 0 || i >= m.level || m.capture[i].len == unfinished {
			m.fail("invalid capture index")
		}
		text := m.src[m.capture[i].start : m.capture[i].start+max(m.capture[i].len, 0)]
		if !strings.HasPrefix(m.src[*s:], text) {
			return -1, true
		}
		*s += len(text)
		return p + 2, true
	}
	return 0, false
}

func (m *matcher) open(s, p, kind int) int {
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	m.capture[m.level].start, m.capture[m.level].len = s, kind
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

func (m *matcher) close(s, p int) int {
	i := m.level - 1
	for ; i >= 0 && m.capture[i].len != unfinished; i-- {
	}
	if i < 0 {
		m.fail("invalid pattern capture")
	}
	m.capture[i].len = s - m.capture[i].start
	e := m.match(s, p)
	if e < 0 {
		m.capture[i].len = unfinished
	}
	return e
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	open := 1
	for s++; s < len(m.src); s++ {
		switch m.src[s] {
		case m.pat[p+1]:
			if open--; open == 0 {
				return s + 1
			}
		case m.pat[p]:
			open++
		}
	}
	return -1
}

func (m *matcher) longest(s, p, ep, least int) int {
	n := 0
	for s+n < len(m.src) && m.single(s+n, p, ep) {
		n++
	}
	for ; n >= least; n-- {
		if e := m.match(s+n, ep+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *matcher) shortest(s, p, ep int) int {
	for {
		if e := m.match(s, ep+1); e >= 0 {
			return e
		}
		if s >= len(m.src) || !m.single(s, p, ep) {
			return -1
		}
		s++
	}
}

// itemEnd is where the single-character item at p ends.
func (m *matcher) itemEnd(p int) int {
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for first := true; ; first = false { // a ] that comes first is a member
			if p >= len(m.pat) {
				m.fail("malformed pattern (missing ']')")
			}
			if m.pat[p] == ']' && !first {
				return p + 1
			}
			if m.pat[p] == '%' {
				p++
			}
			p++
		}
	}
	return p
}

func (m *matcher) single(s, p, ep int) bool {
	c := m.src[s]
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return class(c, m.pat[p+1])
	case '[':
		return m.set(c, p, ep-1)
	}
	return m.pat[p] == c
}

// set says whether c is in the set that goes from the [ at p to the ] at end.
func (m *matcher) set(c byte, p, end int) bool {
	in := true
	p++
	if m.pat[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case m.pat[p] == '%':
			p++
			if class(c, m.pat[p]) {
				return in
			}
		case p+2 < end && m.pat[p+1] == '-':
			if m.pat[p] <= c && c <= m.pat[p+2] {
				return in
			}
			p += 2
		case m.pat[p] == c:
			return in
		}
	}
	return !in
}

// classes are the members of the character classes, in ASCII as in C's locale.
var classes = func() map[byte]*[256]bool {
	is := func(f func(c byte) bool) *[256]bool {
		var set [256]bool
		for c := range set {
			set[c] = f(byte(c))
		}
		return &set
	}
	within := func(c byte, from, to byte) bool { return from <= c && c <= to }
	lower := func(c byte) bool { return within(c, 'a', 'z') }
	upper := func(c byte) bool { return within(c, 'A', 'Z') }
	digit := func(c byte) bool { return within(c, '0', '9') }
	letter := func(c byte) bool { return lower(c) || upper(c) }
	return map[byte]*[256]bool{
		'a': is(letter), 'd': is(digit), 'l': is(lower), 'u': is(upper),
		'c': is(func(c byte) bool { return c < ' ' || c == 0x7f }),
		'p': is(func(c byte) bool { return within(c, '!', '~') && !letter(c) && !digit(c) }),
		's': is(func(c byte) bool { return c == ' ' || within(c, '\t', '\r') }),
		'w': is(func(c byte) bool { return letter(c) || digit(c) }),
		'x': is(func(c byte) bool { return digit(c) || within(c, 'a', 'f') || within(c, 'A', 'F') }),
		'z': is(func(c byte) bool { return c == 0 }),
	}
}()

// class says whether c is in %cl; the class of a capital letter is what the
// small one's is not.
func class(c, cl byte) bool {
	set := classes[cl|0x20]
	if set == nil || !classes['a'][cl] {
		return c == cl
	}
	return set[c] != classes['u'][cl]
}

// captured is capture i of a match from start to end; the whole match if the
// pattern has no captures.
func (m *matcher) captured(i, start, end int) glua.LValue {
	if i >= m.level {
		if i != 0 {
			m.fail("invalid capture index")
		}
		return part(m.src, start, end)
	}
	c := m.capture[i]
	switch c.len {
	case position:
		return glua.LNumber(c.start + 1)
	case unfinished:
		m.fail("unfinished capture")
	}
	return part(m.src, c.start, c.start+c.len)
}

// push pushes all captures, or the whole match, and returns how many.
func (m *matcher) push(start, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.L.Push(m.captured(i, start, end))
	}
	return n
}
