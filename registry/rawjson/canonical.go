package rawjson

import (
	"slices"
	"strings"
)

// AppendCanonical appends the canonical form of the valid text v: no whitespace, minimal
// escapes, members sorted by name. Members with equal names keep their order, because
// readers differ in which one they use. Numbers keep their text. The cost is linear, but
// memory is up to a few hundred times the length of v: callers must limit it.
func AppendCanonical(dst, v []byte) []byte {
	tree, _ := parseValue(v, AfterSpace(v, 0))
	return tree.append(dst)
}

type jsonValue struct {
	kind    byte // first byte of its text
	text    []byte
	members []member // of an object; of an array, without names
}

type member struct {
	name string
	jsonValue
}

func parseValue(b []byte, i int) (v jsonValue, end int) {
	if i >= len(b) {
		return v, i
	}
	v.kind = b[i]
	if v.kind != '{' && v.kind != '[' {
		end = skipValue(b, i)
		v.text = b[i:end]
		return v, end
	}
	for i = AfterSpace(b, i+1); i < len(b) && b[i] != '}' && b[i] != ']'; i = AfterSpace(b, i) {
		var m member
		start := i
		if v.kind == '{' {
			end = AfterString(b, i)
			m.name, _ = String(b[i:end])
			if i = AfterSpace(b, end); i < len(b) && b[i] == ':' {
				i = AfterSpace(b, i+1)
			}
		}
		m.jsonValue, i = parseValue(b, i)
		v.members = append(v.members, m)
		if i = AfterSpace(b, i); i < len(b) && b[i] == ',' {
			i++
		}
		if i <= start {
			return v, len(b) // only if the text is invalid
		}
	}
	return v, min(i+1, len(b))
}

func (v *jsonValue) append(dst []byte) []byte {
	switch v.kind {
	case '{':
		slices.SortStableFunc(v.members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	case '[':
	case '"':
		s, _ := String(v.text)
		return AppendString(dst, s)
	default:
		return append(dst, v.text...)
	}
	dst = append(dst, v.kind)
	for i := range v.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.kind == '{' {
			dst = append(AppendString(dst, v.members[i].name), ':')
		}
		dst = v.members[i].jsonValue.append(dst)
	}
	return append(dst, v.kind+2) // in ASCII, "}" is "{"+2 and "]" is "["+2
}
