package names

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of templates and URIs.
const (
	MaxTemplate  = 8 << 10 // bytes of a template
	MaxURI       = 8 << 10 // bytes of a URI; longer ones match nothing
	MaxVariables = 32      // in a template
)

// Template is a parsed URI template.
type Template struct {
	prefix   string // of all expansions
	parts    []part
	literals int
}

type part struct {
	lit     string
	encoded string // lit as expanded; "" if equal to lit
	op      byte   // one of "+#./;?&", or 0
	vars    []variable
}

type variable struct {
	name    string
	max     int // characters of a prefix modifier, or 0
	explode bool
}

// ParseTemplate parses a template of any level of RFC 6570. Literals may contain
// everything except braces.
func ParseTemplate(s string) (*Template, error) {
	if len(s) > MaxTemplate {
		return nil, fmt.Errorf("template longer than %d bytes", MaxTemplate)
	}
	t := &Template{}
	vars := 0
	for rest := s; rest != ""; {
		open := strings.IndexAny(rest, "{}")
		if open < 0 {
			open = len(rest)
		}
		if open > 0 {
			t.parts = append(t.parts, newLiteral(rest[:open]))
			t.literals += open
			rest = rest[open:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if rest[0] == '}' || end < 0 {
			return nil, fmt.Errorf("unbalanced brace at byte %d", len(s)-len(rest))
		}
		p, err := parseExpression(rest[1:end])
		if err != nil {
			return nil, fmt.Errorf("%w at byte %d", err, len(s)-len(rest))
		}
		if vars += len(p.vars); vars > MaxVariables {
			return nil, fmt.Errorf("more than %d variables", MaxVariables)
		}
		t.parts = append(t.parts, p)
		rest = rest[end+1:]
	}
	if len(t.parts) > 0 && t.parts[0].vars == nil {
		t.prefix = commonPrefix(t.parts[0].lit)
	}
	return t, nil
}

func commonPrefix(lit string) string {
	for i := 0; i < len(lit); i++ {
		if !isURIByte(lit[i]) {
			return lit[:i]
		}
	}
	return lit
}

func newLiteral(s string) part {
	p := part{lit: s}
	if e := encode(s); e != s {
		p.encoded = e
	}
	return p
}

// encode percent-encodes like the expansion of a literal (RFC 6570, section 3.1).
func encode(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; isURIByte(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func isURIByte(c byte) bool {
	return c > 0x20 && c < 0x7f && strings.IndexByte("\"<>\\^`{|}", c) < 0
}

func parseExpression(s string) (part, error) {
	var p part
	if s == "" {
		return p, fmt.Errorf("empty expression")
	}
	switch c := s[0]; c {
	case '+', '#', '.', '/', ';', '?', '&':
		p.op = c
		s = s[1:]
	case '=', ',', '!', '@', '|':
		return p, fmt.Errorf("reserved operator %q", c)
	}
	for spec := range strings.SplitSeq(s, ",") {
		var v variable
		v.name, v.explode = strings.CutSuffix(spec, "*")
		if name, digits, ok := strings.Cut(v.name, ":"); ok && !v.explode {
			n, err := strconv.Atoi(digits)
			if err != nil || n < 1 || n > 9999 || digits[0] == '+' || digits[0] == '0' {
				return p, fmt.Errorf("bad prefix %q", digits)
			}
			v.name, v.max = name, n
		}
		if !validName(v.name) {
			return p, fmt.Errorf("bad variable name %q", v.name)
		}
		p.vars = append(p.vars, v)
	}
	return p, nil
}

// validName checks varname of RFC 6570, plus "-", which servers use.
func validName(s string) bool {
	dot := true // at the start or after a dot, where a dot is invalid
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
			dot = false
		case c == '%' && isTriplet(s, i):
			i += 2
			dot = false
		case c == '.' && !dot:
			dot = true
		default:
			return false
		}
	}
	return !dot
}

func isTriplet(s string, i int) bool {
	return i+2 < len(s) && s[i] == '%' && isHexDigit(s[i+1]) && isHexDigit(s[i+2])
}

func isHexDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// Prefix returns the literal prefix of every expansion.
func (t *Template) Prefix() string { return t.prefix }
