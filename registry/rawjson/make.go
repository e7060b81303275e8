package rawjson

import "bytes"

// Object returns an object of string members, given as alternating names and values.
func Object(pairs ...string) []byte {
	out := []byte{'{'}
	for i := 0; i < len(pairs); i += 2 {
		out = AppendMember(out, Quote(pairs[i]), Quote(pairs[i+1]))
	}
	return append(out, '}')
}

// Strings returns an array of strings.
func Strings(items []string) []byte {
	out := []byte{'['}
	for i, s := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = AppendString(out, s)
	}
	return append(out, ']')
}

// Array returns an array of items, each a valid text.
func Array(items ...[]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}

// AppendMember adds a member to an unfinished object, whose first byte is its brace.
func AppendMember(dst []byte, name Key, value []byte) []byte {
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(append(dst, name...), ':')
	return append(dst, value...)
}

// RemoveMember returns an object without the members of this name.
func RemoveMember(obj []byte, name string) []byte {
	return Filter(obj, func(k Key, v []byte) ([]byte, bool) { return v, !k.Is(name) })
}

// Filter returns an object with the members for which change returns true, with the
// values it returns.
func Filter(obj []byte, change func(name Key, value []byte) (changed []byte, keep bool)) []byte {
	out := append(make([]byte, 0, len(obj)), '{')
	for k, v := range Members(obj) {
		if v, keep := change(k, v); keep {
			out = AppendMember(out, k, v)
		}
	}
	return append(out, '}')
}

// maxIndent is the deepest indented level. It keeps the output proportional to the input.
const maxIndent = 40

// AppendIndent appends the valid text v with one member or element per line, indented by
// two spaces per level.
func AppendIndent(dst, v []byte) []byte {
	depth := 0
	newLine := func() {
		dst = append(dst, '\n')
		for range min(depth, maxIndent) {
			dst = append(dst, "  "...)
		}
	}
	for i := AfterSpace(v, 0); i < len(v); i = AfterSpace(v, i) {
		end := i + 1
		switch c := v[i]; c {
		case '{', '[':
			dst = append(dst, c)
			if next := AfterSpace(v, end); next < len(v) && v[next] == c+2 { // empty
				dst = append(dst, c+2)
				end = next + 1
				break
			}
			depth++
			newLine()
		case '}', ']':
			depth--
			newLine()
			dst = append(dst, c)
		case ',':
			dst = append(dst, c)
			newLine()
		case ':':
			dst = append(dst, ": "...)
		default:
			end = skipValue(v, i)
			dst = append(dst, v[i:end]...)
		}
		i = end
	}
	return dst
}
