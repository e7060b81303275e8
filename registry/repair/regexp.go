package repair

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isRegExp reports whether a pattern is a JavaScript regular expression with the flag
// "u", which validators use. It returns false if uncertain.
func isRegExp(pattern string) bool {
	r := regExp{rest: pattern}
	return r.read() && r.maxReference <= r.groups
}

type regExp struct {
	rest         string
	openGroups   []bool // for each open group, whether a quantifier may follow it
	groups       int    // capturing groups
	maxReference int    // highest referenced group
}

func (r *regExp) read() bool {
	repeatable := false // a quantifier may follow
	for r.rest != "" {
		ok := true
		switch c := r.rest[0]; c {
		case '\\':
			b := r.rest
			_, _, ok = r.escape(false)
			repeatable = !strings.HasPrefix(b, `\b`) && !strings.HasPrefix(b, `\B`)
		case '[':
			ok, repeatable = r.class(), true
		case '(':
			ok, repeatable = r.group(), false
		case ')':
			if len(r.openGroups) == 0 {
				return false
			}
			last := len(r.openGroups) - 1
			repeatable, r.openGroups, r.rest = r.openGroups[last], r.openGroups[:last], r.rest[1:]
		case '*', '+', '?', '{':
			ok, repeatable = repeatable && r.quantifier(), false
		case ']', '}':
			return false
		default:
			_, n := utf8.DecodeRuneInString(r.rest)
			r.rest, repeatable = r.rest[n:], c != '^' && c != '$' && c != '|'
		}
		if !ok {
			return false
		}
	}
	return len(r.openGroups) == 0
}

func (r *regExp) group() bool {
	r.rest = r.rest[1:]
	if !strings.HasPrefix(r.rest, "?") {
		r.groups++
		r.openGroups = append(r.openGroups, true)
		return true
	}
	for _, head := range []string{"?:", "?=", "?!", "?<=", "?<!"} {
		if rest, ok := strings.CutPrefix(r.rest, head); ok {
			r.rest, r.openGroups = rest, append(r.openGroups, head == "?:")
			return true
		}
	}
	return false // named groups are rare
}

func (r *regExp) quantifier() bool {
	if r.rest[0] == '{' {
		inside, rest, ok := strings.Cut(r.rest[1:], "}")
		low, high, two := strings.Cut(inside, ",")
		from, err := strconv.ParseUint(low, 10, 32)
		if !ok || err != nil {
			return false
		}
		if two && high != "" {
			if to, err := strconv.ParseUint(high, 10, 32); err != nil || to < from {
				return false
			}
		}
		r.rest = rest
	} else {
		r.rest = r.rest[1:]
	}
	r.rest = strings.TrimPrefix(r.rest, "?")
	return true
}

func (r *regExp) class() bool {
	r.rest = strings.TrimPrefix(r.rest[1:], "^")
	for r.rest != "" && r.rest[0] != ']' {
		low, set, ok := r.member()
		if !ok {
			return false
		}
		if len(r.rest) < 2 || r.rest[0] != '-' || r.rest[1] == ']' {
			continue
		}
		r.rest = r.rest[1:]
		high, otherSet, ok := r.member()
		if !ok || set || otherSet || low > high {
			return false
		}
	}
	ok := r.rest != ""
	r.rest = strings.TrimPrefix(r.rest, "]")
	return ok
}

func (r *regExp) member() (c rune, set, ok bool) {
	if r.rest == "" {
		return 0, false, false
	}
	if r.rest[0] == '\\' {
		return r.escape(true)
	}
	c, n := utf8.DecodeRuneInString(r.rest)
	r.rest = r.rest[n:]
	return c, false, true
}

func (r *regExp) escape(inClass bool) (c rune, set, ok bool) {
	r.rest = r.rest[1:]
	if r.rest == "" {
		return 0, false, false
	}
	first := r.rest[0]
	r.rest = r.rest[1:]
	switch {
	case strings.IndexByte(`^$\.*+?()[]{}|/`, first) >= 0, inClass && first == '-':
		return rune(first), false, true
	case strings.IndexByte("dDsSwW", first) >= 0:
		return 0, true, true
	case first == 'b', !inClass && first == 'B':
		return '\b', false, true
	case strings.IndexByte("tnvfr", first) >= 0:
		return map[byte]rune{'t': '\t', 'n': '\n', 'v': '\v', 'f': '\f', 'r': '\r'}[first], false, true
	case first == '0':
		return 0, false, r.rest == "" || r.rest[0] < '0' || r.rest[0] > '9'
	case '1' <= first && first <= '9':
		return 0, false, !inClass && r.backReference(first)
	case first == 'p', first == 'P':
		return 0, true, r.property()
	case first == 'x':
		return r.hex(2)
	case first == 'u' && !strings.HasPrefix(r.rest, "{"):
		return r.hex(4)
	}
	return 0, false, false
}

func (r *regExp) backReference(first byte) bool {
	digits := string(first)
	for r.rest != "" && '0' <= r.rest[0] && r.rest[0] <= '9' {
		digits, r.rest = digits+r.rest[:1], r.rest[1:]
	}
	n, err := strconv.Atoi(digits)
	r.maxReference = max(r.maxReference, n)
	return err == nil
}

func (r *regExp) hex(digits int) (c rune, set, ok bool) {
	if len(r.rest) < digits {
		return 0, false, false
	}
	n, err := strconv.ParseUint(r.rest[:digits], 16, 32)
	r.rest = r.rest[digits:]
	return rune(n), false, err == nil
}

func (r *regExp) property() bool {
	inside, rest, ok := strings.Cut(strings.TrimPrefix(r.rest, "{"), "}")
	braced := strings.HasPrefix(r.rest, "{")
	r.rest = rest
	script, named := strings.CutPrefix(inside, "Script=")
	if named {
		return ok && braced && unicode.Scripts[script] != nil
	}
	return ok && braced && unicode.Categories[inside] != nil
}
