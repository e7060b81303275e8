package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Step is a part of a [Path]: a member or an element.
type Step struct {
	Name string
	// Occurrence is 2 for the second of several members with the same name, and so on. It
	// is 0 for the first one.
	Occurrence int
	Index      int
	IsIndex    bool
}

// Path is the place of a value below the root.
type Path []Step

// String returns the path as RFC 9535 spells it, such as $.rows[2]['a.b']. A repeated
// member has its number in parentheses, such as $.a(2).
func (p Path) String() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range p {
		switch {
		case s.IsIndex:
			b.WriteString("[" + strconv.Itoa(s.Index) + "]")
		case isPlainName(s.Name):
			b.WriteString("." + s.Name)
		default:
			b.WriteString("[" + quoteName(s.Name) + "]")
		}
		if s.Occurrence > 1 {
			b.WriteString("(" + strconv.Itoa(s.Occurrence) + ")")
		}
	}
	return b.String()
}

// Short returns the path without "$." at the start.
func (p Path) Short() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.String(), "$."), "$[")
}

// General returns a pattern for the path that matches all elements of its arrays, such as
// $.rows[*].when.
func (p Path) General() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range p {
		if s.IsIndex {
			b.WriteString("[*]")
		} else {
			s.Occurrence = 0
			b.WriteString(strings.TrimPrefix(Path{s}.String(), "$"))
		}
	}
	return b.String()
}

func (p Path) clone() Path       { return slices.Clone(p) }
func (p Path) equal(o Path) bool { return slices.Equal(p, o) }

func isPlainName(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80 && r != utf8.RuneError
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// quoteName quotes a name as in the normalized paths of RFC 9535.
func quoteName(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strings.ContainsRune("\b\f\n\r\t", r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

// Limits of patterns.
const (
	maxPatterns    = 63
	maxPatternSize = 1000 // bytes
	maxSegments    = 30   // of one pattern
)

// segment is a part of a pattern: a name, an index, or any. deep also matches below.
type segment struct {
	deep    bool
	any     bool
	isIndex bool
	name    string
	index   int
}

// Patterns are paths to exclude from a comparison.
type Patterns struct {
	texts []string
	all   [][]segment
}

// Texts returns the patterns as they were written.
func (p Patterns) Texts() []string { return p.texts }

// Len returns the number of patterns.
func (p Patterns) Len() int { return len(p.all) }

// states are the positions of each pattern that a path has reached, as bits.
type states []uint32

func (p Patterns) start() states {
	if len(p.all) == 0 {
		return nil
	}
	s := make(states, len(p.all))
	for i := range s {
		s[i] = 1
	}
	return s
}

func (p Patterns) matches(at states) bool {
	for i, bits := range at {
		if bits&(1<<len(p.all[i])) != 0 {
			return true
		}
	}
	return false
}

func (p Patterns) member(at states, name string) states {
	return p.step(at, func(s *segment) bool { return s.any || !s.isIndex && s.name == name })
}

func (p Patterns) index(at states, index int) states {
	return p.step(at, func(s *segment) bool { return s.any || s.isIndex && s.index == index })
}

func (p Patterns) step(at states, fits func(*segment) bool) states {
	if len(at) == 0 {
		return nil
	}
	next := make(states, len(at))
	found := false
	for i, bits := range at {
		for n := range p.all[i] {
			if bits&(1<<n) == 0 {
				continue
			}
			s := &p.all[i][n]
			if s.deep {
				next[i] |= 1 << n
			}
			if fits(s) {
				next[i] |= 1 << (n + 1)
			}
		}
		found = found || next[i] != 0
	}
	if !found {
		return nil
	}
	return next
}

// Remove removes the values at the paths from decoded JSON. Removed elements become null,
// so that others keep their index.
func (p Patterns) Remove(v any) { p.remove(v, p.start()) }

func (p Patterns) remove(v any, at states) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if next := p.member(at, name); p.matches(next) {
				delete(v, name)
			} else if next != nil {
				p.remove(member, next)
			}
		}
	case []any:
		for i, element := range v {
			if next := p.index(at, i); p.matches(next) {
				v[i] = nil
			} else if next != nil {
				p.remove(element, next)
			}
		}
	}
}

// ParseIgnored parses paths with wildcards, separated by commas or spaces:
// $.rows[*].when, rows[*].when, ..when, $['a.b'].*. "$" may be omitted.
func ParseIgnored(texts ...string) (Patterns, error) {
	var p Patterns
	for _, text := range texts {
		for _, one := range splitPatterns(text) {
			if slices.Contains(p.texts, one) {
				continue
			}
			if len(p.all) == maxPatterns {
				return p, fmt.Errorf("more than %d paths", maxPatterns)
			}
			if err := p.add(one); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// ParsePatterns parses paths as [ParseIgnored] does, but each text is one path.
func ParsePatterns(texts []string) (p Patterns, err error) {
	for _, text := range texts {
		if err := p.add(text); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *Patterns) add(text string) error {
	segments, err := parsePattern(text)
	if err != nil {
		return fmt.Errorf("path %q: %w; write paths such as $.rows[*].when or ..when", text, err)
	}
	p.texts, p.all = append(p.texts, text), append(p.all, segments)
	return nil
}

// splitPatterns splits at commas and spaces outside of brackets.
func splitPatterns(text string) (all []string) {
	quote, start, inside := rune(0), 0, 0
	end := func(i int) {
		if one := strings.TrimSpace(text[start:i]); one != "" {
			all = append(all, one)
		}
	}
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			escaped = r == '\\'
			if r == quote {
				quote = 0
			}
		case inside > 0 && (r == '\'' || r == '"'):
			quote = r
		case r == '[':
			inside++
		case r == ']':
			inside--
		case inside <= 0 && (r == ',' || r == ' ' || r == '\n' || r == '\t'):
			end(i)
			start = i + 1
		}
	}
	end(len(text))
	return all
}

func parsePattern(text string) ([]segment, error) {
	if len(text) > maxPatternSize {
		return nil, fmt.Errorf("longer than %d bytes", maxPatternSize)
	}
	var all []segment
	rest := strings.TrimPrefix(text, "$")
	if rest == text && !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, "[") {
		rest = "." + rest
	}
	for rest != "" {
		if len(all) == maxSegments {
			return nil, fmt.Errorf("more than %d parts", maxSegments)
		}
		var s segment
		var err error
		if after, ok := strings.CutPrefix(rest, ".."); ok {
			s.deep, rest = true, after
			if !strings.HasPrefix(rest, "[") {
				rest = "." + rest
			}
		}
		if rest, err = s.parse(rest); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("the whole value cannot be ignored")
	}
	return all, nil
}

func (s *segment) parse(text string) (rest string, err error) {
	if after, ok := strings.CutPrefix(text, "."); ok {
		end := strings.IndexAny(after, ".[")
		if end < 0 {
			end = len(after)
		}
		name := after[:end]
		switch {
		case name == "":
			return "", fmt.Errorf("a name is missing")
		case name == "*":
			s.any = true
		case strings.ContainsAny(name, "]'\"()?"):
			return "", fmt.Errorf("%q is no name; quote it as ['…']", name)
		}
		s.name = name
		return after[end:], nil
	}
	after, ok := strings.CutPrefix(text, "[")
	if !ok {
		return "", fmt.Errorf("unexpected %q", text)
	}
	if strings.HasPrefix(after, "'") || strings.HasPrefix(after, `"`) {
		s.name, rest, err = cutQuoted(after)
	} else {
		var inside string
		if inside, rest, ok = strings.Cut(after, "]"); !ok {
			return "", fmt.Errorf("] is missing")
		}
		rest = "]" + rest
		if s.any = inside == "*"; !s.any {
			s.isIndex = true
			if s.index, err = strconv.Atoi(inside); err != nil || s.index < 0 {
				return "", fmt.Errorf("[%s] is neither an index nor [*] nor a quoted name", inside)
			}
		}
	}
	if err != nil {
		return "", err
	}
	if rest, ok = strings.CutPrefix(rest, "]"); !ok {
		return "", fmt.Errorf("] is missing")
	}
	return rest, nil
}

// cutQuoted returns the name in quotes at the start of text and the text after it.
func cutQuoted(text string) (name, rest string, err error) {
	quote := text[0]
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		c := text[i]
		switch {
		case c == quote:
			return b.String(), text[i+1:], nil
		case c != '\\':
			b.WriteByte(c)
		case i+1 == len(text):
			return "", "", fmt.Errorf("the closing quote is missing")
		case text[i+1] == 'u':
			if i+6 > len(text) {
				return "", "", fmt.Errorf(`\u needs four hexadecimal digits`)
			}
			n, err := strconv.ParseUint(text[i+2:i+6], 16, 16)
			if err != nil {
				return "", "", fmt.Errorf(`\u needs four hexadecimal digits`)
			}
			b.WriteRune(rune(n))
			i += 5
		default:
			i++
			if at := strings.IndexByte("bfnrt", text[i]); at >= 0 {
				b.WriteByte("\b\f\n\r\t"[at])
			} else {
				b.WriteByte(text[i])
			}
		}
	}
	return "", "", fmt.Errorf("the closing quote is missing")
}
