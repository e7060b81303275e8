package rawjson

import (
	"slices"
	"strings"
)

// AppendCanonical appends the valid text v in the one form that all ways to
// write it have in common: without blanks, strings with as few escapes as
// possible, members sorted by name. Members of one name all stay, in their
// order, since readers differ in which of them they take. Numbers keep their
// text. The time and the memory grow with the length of v, not with its depth;
// it takes up to some hundred times that memory, so the caller bounds v.
func AppendCanonical(dst, v []byte) []byte {
	tree, _ := parseValue(v, AfterSpace(v, 0))
	return tree.append(dst)
}

// jsonValue is a parsed value. Its objects are not sorted yet.
type jsonValue struct {
	kind    byte // the first of its text
	text    []byte
	members []member // of an object; of an array, without names
}

type member struct {
	name string
	jsonValue
}

// parseValue parses the value at i of a valid text and returns the index after it.
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
			return v, len(b) // only of a text that is not valid
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
	return append(dst, v.kind+2) // "}" and "]" are two after "{" and "["
}
