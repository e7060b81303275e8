package names

import (
	"fmt"
	"slices"
	"strings"
)

// expansion defines how an operator joins values (RFC 6570, appendix A).
type expansion struct {
	first, between string
	named          bool // name=value
	reserved       bool // keep reserved characters
}

var expansions = map[byte]expansion{
	0:   {between: ","},
	'+': {between: ",", reserved: true},
	'#': {first: "#", between: ",", reserved: true},
	'.': {first: ".", between: "."},
	'/': {first: "/", between: "/"},
	';': {first: ";", between: ";", named: true},
	'?': {first: "?", between: "&", named: true},
	'&': {first: "&", between: "&", named: true},
}

// Names returns the variables without duplicates, in the template's order.
func (t *Template) Names() []string {
	var names []string
	for _, p := range t.parts {
		for _, v := range p.vars {
			if !slices.Contains(names, v.name) {
				names = append(names, v.name)
			}
		}
	}
	return names
}

// Expand returns the URI for the values. Missing and empty values are undefined (RFC
// 6570, section 3.2).
func (t *Template) Expand(values map[string]string) string {
	var b strings.Builder
	for _, p := range t.parts {
		if p.vars == nil {
			b.WriteString(encode(p.lit))
			continue
		}
		x := expansions[p.op]
		lead := x.first
		for _, v := range p.vars {
			value := values[v.name]
			if value == "" {
				continue
			}
			b.WriteString(lead)
			lead = x.between
			if x.named {
				b.WriteString(v.name + "=")
			}
			writeValue(&b, v.prefix(value), x.reserved)
		}
	}
	return b.String()
}

func (v variable) prefix(value string) string {
	n := 0
	for i := range value {
		if n == v.max && v.max > 0 {
			return value[:i]
		}
		n++
	}
	return value
}

func writeValue(b *strings.Builder, value string, reserved bool) {
	for i := range len(value) {
		switch c := value[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0,
			reserved && (strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 || isTriplet(value, i)):
			b.WriteByte(c)
		default:
			fmt.Fprintf(b, "%%%02X", c)
		}
	}
}
