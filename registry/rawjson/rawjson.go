// Package rawjson finds and replaces values inside JSON text without decoding
// it, so that what need not change passes through byte for byte: number
// precision, key order, unknown members and escapes survive.
//
// It owns the grammar (RFC 8259), nothing else: it knows no protocol. All
// functions are pure and safe for concurrent use; returned slices alias their
// input. [Valid] must have accepted a text before the readers below look at
// it; on text that it did not accept they return garbage, but they never
// panic and never loop.
package rawjson

import (
	"bytes"
	"fmt"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how deeply arrays and objects may nest. It is the bound of Go's
// own decoder, so whatever passes here can be decoded by peers written in Go.
const MaxDepth = 10000

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int    // bytes before the fault
	Reason string // what was wrong there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("invalid JSON at byte %d: %s", e.Offset, e.Reason)
}

// Valid reports whether src is exactly one JSON value (with surrounding white
// space), encoded as UTF-8 and nested at most [MaxDepth] deep.
func Valid(src []byte) error {
	i := space(src, 0)
	end, err := Scan(src, i)
	if err != nil {
		return err
	}
	if end = space(src, end); end != len(src) {
		return &SyntaxError{end, "text after the value"}
	}
	if !utf8.Valid(src) {
		return &SyntaxError{0, "not UTF-8"}
	}
	return nil
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// nesting is a stack of one bit per open container: set for an object.
type nesting struct {
	bits  [MaxDepth/64 + 1]uint64
	depth int
}

func (n *nesting) push(object bool) bool {
	if n.depth == MaxDepth {
		return false
	}
	word, bit := n.depth/64, uint64(1)<<(n.depth%64)
	n.bits[word] &^= bit
	if object {
		n.bits[word] |= bit
	}
	n.depth++
	return true
}

func (n *nesting) object() bool {
	d := n.depth - 1
	return n.bits[d/64]&(1<<(d%64)) != 0
}

// Scan checks the grammar of the one value that starts at src[i] and returns
// the index after it. It does not check UTF-8.
func Scan(src []byte, i int) (end int, err error) {
	if i < len(src) && src[i] != '{' && src[i] != '[' {
		return scalar(src, i)
	}
	var open nesting
	for {
		// A value is expected at i.
		if i >= len(src) {
			return i, &SyntaxError{i, "unexpected end"}
		}
		switch src[i] {
		case '{', '[':
			object := src[i] == '{'
			if !open.push(object) {
				return i, &SyntaxError{i, "nested too deeply"}
			}
			i = space(src, i+1)
			if i < len(src) && src[i] == closer(object) {
				break
			}
			if object {
				if i, err = key(src, i); err != nil {
					return i, err
				}
			}
			continue
		default:
			if i, err = scalar(src, i); err != nil {
				return i, err
			}
			i = space(src, i)
		}
		// A value ended, or src[i] closes an empty container.
		for i < len(src) && src[i] == closer(open.object()) {
			open.depth--
			i++
			if open.depth == 0 {
				return i, nil
			}
			i = space(src, i)
		}
		if i >= len(src) {
			return i, &SyntaxError{i, "unexpected end"}
		}
		if src[i] != ',' {
			return i, &SyntaxError{i, fmt.Sprintf("unexpected %q", src[i])}
		}
		i = space(src, i+1)
		if open.object() {
			if i, err = key(src, i); err != nil {
				return i, err
			}
		}
	}
}

func closer(object bool) byte {
	if object {
		return '}'
	}
	return ']'
}

// key scans `"name" :` and the space after it.
func key(src []byte, i int) (int, error) {
	if i >= len(src) || src[i] != '"' {
		return i, &SyntaxError{i, "expected a member name"}
	}
	i, err := str(src, i)
	if err != nil {
		return i, err
	}
	i = space(src, i)
	if i >= len(src) || src[i] != ':' {
		return i, &SyntaxError{i, "expected a colon"}
	}
	return space(src, i+1), nil
}

func scalar(src []byte, i int) (int, error) {
	if i >= len(src) {
		return i, &SyntaxError{i, "unexpected end"}
	}
	switch c := src[i]; {
	case c == '"':
		return str(src, i)
	case c == 't':
		return literal(src, i, "true")
	case c == 'f':
		return literal(src, i, "false")
	case c == 'n':
		return literal(src, i, "null")
	case c == '-' || '0' <= c && c <= '9':
		return number(src, i)
	default:
		return i, &SyntaxError{i, fmt.Sprintf("unexpected %q", c)}
	}
}

func literal(src []byte, i int, word string) (int, error) {
	if len(src)-i < len(word) || string(src[i:i+len(word)]) != word {
		return i, &SyntaxError{i, "expected " + word}
	}
	return i + len(word), nil
}

// plain marks the bytes that stand for themselves inside a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

func str(src []byte, i int) (int, error) {
	for i++; i < len(src); i++ {
		for i < len(src) && plain[src[i]] {
			i++
		}
		if i >= len(src) {
			break
		}
		switch c := src[i]; c {
		case '"':
			return i + 1, nil
		case '\\':
			i++
			if i >= len(src) {
				break
			}
			switch src[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if _, ok := hex4(src, i+1); !ok {
					return i, &SyntaxError{i, "bad \\u escape"}
				}
				i += 4
			default:
				return i, &SyntaxError{i, fmt.Sprintf("bad escape %q", src[i])}
			}
		default:
			return i, &SyntaxError{i, "control character in a string"}
		}
	}
	return len(src), &SyntaxError{len(src), "unterminated string"}
}

func hex4(src []byte, i int) (rune, bool) {
	if len(src)-i < 4 {
		return 0, false
	}
	var r rune
	for _, c := range src[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

func number(src []byte, i int) (int, error) {
	start := i
	digits := func() bool {
		from := i
		for i < len(src) && '0' <= src[i] && src[i] <= '9' {
			i++
		}
		return i > from
	}
	if src[i] == '-' {
		i++
	}
	if i < len(src) && src[i] == '0' {
		i++
	} else if !digits() {
		return start, &SyntaxError{start, "bad number"}
	}
	if i < len(src) && src[i] == '.' {
		i++
		if !digits() {
			return start, &SyntaxError{start, "bad number"}
		}
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if !digits() {
			return start, &SyntaxError{start, "bad number"}
		}
	}
	return i, nil
}

// IsObject reports whether the valid text v is an object.
func IsObject(v []byte) bool { return first(v) == '{' }

// IsArray reports whether the valid text v is an array.
func IsArray(v []byte) bool { return first(v) == '[' }

// IsString reports whether the valid text v is a string.
func IsString(v []byte) bool { return first(v) == '"' }

func first(v []byte) byte {
	if i := space(v, 0); i < len(v) {
		return v[i]
	}
	return 0
}

// skip returns the index after the value at i of a valid text. Unlike [Scan]
// it checks nothing, so it is several times faster.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
		case '{', '[':
			depth++
			i++
			continue
		case '}', ']':
			depth--
			i++
		case ' ', '\t', '\r', '\n', ',', ':':
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

func skipString(b []byte, i int) int {
	i++
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

// Key is a member's name, or another string, as it stands in the text, quotes
// included.
type Key []byte

// Is reports whether the string, with its escapes resolved, is name.
func (k Key) Is(name string) bool {
	if len(k) == len(name)+2 && k[0] == '"' && string(k[1:len(k)-1]) == name {
		return true
	}
	if bytes.IndexByte(k, '\\') < 0 {
		return false
	}
	s, ok := String(k)
	return ok && s == name
}

// Members yields the members of the valid object obj in their order; nothing
// when obj is not an object. Values come without surrounding space.
func Members(obj []byte) iter.Seq2[Key, []byte] {
	return func(yield func(Key, []byte) bool) {
		i := space(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i = space(obj, i+1); i < len(obj) && obj[i] == '"'; i = space(obj, i) {
			end := skipString(obj, i)
			name := Key(obj[i:end])
			i = space(obj, end)
			if i >= len(obj) || obj[i] != ':' {
				return
			}
			i = space(obj, i+1)
			end = skip(obj, i)
			if end <= i || !yield(name, obj[i:end]) {
				return
			}
			i = space(obj, end)
			if i >= len(obj) || obj[i] != ',' {
				return
			}
			i++
		}
	}
}

// Elements yields the elements of the valid array arr; nothing when arr is
// not an array.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := space(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i = space(arr, i+1); i < len(arr) && arr[i] != ']'; i = space(arr, i) {
			end := skip(arr, i)
			if end <= i || !yield(arr[i:end]) {
				return
			}
			i = space(arr, end)
			if i >= len(arr) || arr[i] != ',' {
				return
			}
			i++
			i = space(arr, i)
		}
	}
}

// Get returns the value of the member name of the valid object obj, nil when
// there is none. Of several members of that name it returns the last, as
// decoders do; see [Unique] where that matters.
func Get(obj []byte, name string) []byte {
	var found []byte
	for k, v := range Members(obj) {
		if k.Is(name) {
			found = v
		}
	}
	return found
}

// Path follows member names down nested objects; nil when one is missing.
func Path(obj []byte, names ...string) []byte {
	for _, n := range names {
		if obj = Get(obj, n); obj == nil {
			return nil
		}
	}
	return obj
}

// Unique is [Get] for members that decide something: ok is false when the
// name stands more than once, because two readers could then take different
// ones of them.
func Unique(obj []byte, name string) (v []byte, ok bool) {
	n := 0
	for k, m := range Members(obj) {
		if k.Is(name) {
			v = m
			n++
		}
	}
	return v, n <= 1
}

// Offset returns where inner begins in outer. inner must have been made from
// outer by slicing (as all readers here do), never by copying.
func Offset(outer, inner []byte) int { return cap(outer) - cap(inner) }

// String decodes the valid string v; ok is false when v is not a string. An
// unpaired surrogate becomes U+FFFD, as in encoding/json.
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

// Int decodes the valid integer v; ok is false for anything else, also for
// integers beyond 64 bits.
func Int(v []byte) (n int64, ok bool) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	return n, err == nil
}

// AppendString appends s as a JSON string. Unlike encoding/json it escapes
// only what the grammar demands (no HTML escaping); invalid UTF-8 becomes
// U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			switch {
			case plain[c]:
				dst = append(dst, c)
			case c == '"' || c == '\\':
				dst = append(dst, '\\', c)
			case c == '\n':
				dst = append(dst, '\\', 'n')
			case c == '\r':
				dst = append(dst, '\\', 'r')
			case c == '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		dst = utf8.AppendRune(dst, r)
		i += n
	}
	return append(dst, '"')
}

// Quote is [AppendString] into a new slice.
func Quote(s string) []byte { return AppendString(make([]byte, 0, len(s)+2), s) }

// Edit replaces the bytes from Start to End (exclusive) by Text.
type Edit struct {
	Start, End int
	Text       []byte
}

// Replace is the edit that puts text in the place of inner, a part of outer
// (see [Offset]).
func Replace(outer, inner, text []byte) Edit {
	at := Offset(outer, inner)
	return Edit{at, at + len(inner), text}
}

// Append appends src with the edits made. Edits are in the order of their
// places and do not overlap.
func Append(dst, src []byte, edits ...Edit) []byte {
	at := 0
	for _, e := range edits {
		dst = append(dst, src[at:e.Start]...)
		dst = append(dst, e.Text...)
		at = e.End
	}
	return append(dst, src[at:]...)
}

// Splice is [Append] into a new slice of the right size. Without edits it
// returns src itself.
func Splice(src []byte, edits ...Edit) []byte {
	if len(edits) == 0 {
		return src
	}
	n := len(src)
	for _, e := range edits {
		n += len(e.Text) - (e.End - e.Start)
	}
	return Append(make([]byte, 0, n), src, edits...)
}

// SetMember returns obj, a valid object, with the member name set to the
// valid text value: the last of that name is replaced, a missing one added at
// the end.
func SetMember(obj []byte, name string, value []byte) []byte {
	if old := Get(obj, name); old != nil {
		return Splice(obj, Replace(obj, old, value))
	}
	end := bytes.LastIndexByte(obj, '}')
	if end < 0 {
		return obj
	}
	text := make([]byte, 0, len(name)+len(value)+4)
	empty := true
	for range Members(obj) {
		empty = false
		break
	}
	if !empty {
		text = append(text, ',')
	}
	text = AppendString(text, name)
	text = append(text, ':')
	text = append(text, value...)
	return Splice(obj, Edit{end, end, text})
}

// OneLine replaces the line breaks of the valid text src by spaces, in place:
// in valid JSON they stand only between tokens. Framings that end a message
// at a line break need it.
func OneLine(src []byte) []byte {
	if bytes.IndexByte(src, '\n') < 0 && bytes.IndexByte(src, '\r') < 0 {
		return src
	}
	for i, c := range src {
		if c == '\n' || c == '\r' {
			src[i] = ' '
		}
	}
	return src
}
