package rawjson

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// IsObject reports whether the valid text v is an object.
func IsObject(v []byte) bool { return first(v) == '{' }

// IsArray reports whether the valid text v is an array.
func IsArray(v []byte) bool { return first(v) == '[' }

// IsString reports whether the valid text v is a string.
func IsString(v []byte) bool { return first(v) == '"' }

func first(v []byte) byte {
	if i := AfterSpace(v, 0); i < len(v) {
		return v[i]
	}
	return 0
}

// Unlike [Scan], skipValue checks nothing, so it is several times faster.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			i = AfterString(b, i)
		case c|0x20 == '{': // also [
			depth++
			i++
			continue
		case c|0x20 == '}': // also ]
			depth--
			i++
		case depth > 0, c <= ' ', c == ',', c == ':': // only strings and brackets matter
			i++
			continue
		default:
			for i < len(b) && !terminal(b[i]) {
				i++
			}
		}
		if depth <= 0 {
			return i
		}
	}
	return i
}

func terminal(c byte) bool {
	switch c {
	case ',', '}', ']', ' ', '\t', '\r', '\n', ':', '"', '{', '[':
		return true
	}
	return false
}

// shortString is the length up to which AfterString scans eight bytes at a time.
const shortString = 24

// AfterString returns the index after the string that begins at i.
func AfterString(b []byte, i int) int {
	i++
	// Most strings are short and have no escapes.
	for end := min(i+shortString, len(b)); i+8 <= end; i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		if s := firstSpecial(x) & highBits; s != 0 {
			if at := i + bits.TrailingZeros64(s)/8; b[at] == '"' {
				return at + 1
			}
			break
		}
	}
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end := i + n
		slashes := 0
		for j := end - 1; j >= i && b[j] == '\\'; j-- {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return len(b)
}

// Key is a raw member name, or another raw string, including quotes.
type Key []byte

// Is reports whether the unescaped string equals name.
func (k Key) Is(name string) bool {
	if len(k) == len(name)+2 && k[0] == '"' && string(k[1:len(k)-1]) == name {
		return true
	}
	if len(k) <= len(name)+2 || bytes.IndexByte(k, '\\') < 0 {
		return false // escapes make it longer
	}
	s, ok := String(k)
	return ok && s == name
}

// Name returns the unescaped string, as a slice of the text if possible.
func (k Key) Name() []byte {
	for _, c := range k {
		if c == '\\' {
			s, _ := String(k)
			return []byte(s)
		}
	}
	return k[1 : len(k)-1]
}

// Members yields the members of the valid object obj in order, and nothing for other
// values. Values have no surrounding whitespace.
func Members(obj []byte) iter.Seq2[Key, []byte] { return (*Layout)(nil).Members(obj) }

// Elements yields the elements of the valid array arr, and nothing for other values.
func Elements(arr []byte) iter.Seq[[]byte] { return (*Layout)(nil).Elements(arr) }

// Get returns the value of the member name of the valid object obj, or nil. Of several it
// returns the last, as most decoders do; see [KeyTree] where that matters.
func Get(obj []byte, name string) []byte { return (*Layout)(nil).Get(obj, name) }

// GetString returns the string member name of the valid object obj, or "".
func GetString(obj []byte, name string) string {
	s, _ := String(Get(obj, name))
	return s
}

// Path returns the value at a path of member names, or nil.
func Path(obj []byte, names ...string) []byte {
	for _, n := range names {
		if obj = Get(obj, n); obj == nil {
			return nil
		}
	}
	return obj
}

// MayContain reports whether a string of the valid text v may contain word, which must
// consist of letters and hyphens. It has no false negatives, even for escaped strings.
func MayContain(v []byte, word string) bool {
	return bytes.Contains(v, []byte(word)) || bytes.Contains(v, []byte(`\u`))
}

// Offset returns the position of inner in outer. inner must be a slice of outer, as
// returned by all readers here, not a copy.
func Offset(outer, inner []byte) int { return cap(outer) - cap(inner) }

// String decodes the valid string v. ok is false if v is not a string. An unpaired
// surrogate becomes U+FFFD, as in encoding/json.
func String(v []byte) (s string, ok bool) {
	if len(v) < 2 || v[0] != '"' || v[len(v)-1] != '"' {
		return "", false
	}
	v = v[1 : len(v)-1]
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v), true
	}
	out := make([]byte, 0, len(v))
	for i := 0; i < len(v); i++ {
		if v[i] != '\\' || i+1 >= len(v) {
			out = append(out, v[i])
			continue
		}
		i++
		switch v[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(v, i+1)
			i += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if i+2 < len(v) && v[i+1] == '\\' && v[i+2] == 'u' {
					low, ok = hex4(v, i+3)
				}
				if r = utf16.DecodeRune(r, low); ok && r != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, v[i])
		}
	}
	return string(out), true
}

// Int decodes the valid integer v. ok is false for other values and beyond 64 bits.
func Int(v []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}
