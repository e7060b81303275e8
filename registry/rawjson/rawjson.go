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
	"encoding/binary"
	"fmt"
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

// allPlain is plain of eight bytes at once: none is below 0x20, a quote or a
// backslash. A byte of x is zero where (x-0x01…)&^x has its high bit; carries
// only ever add false alarms, which the table then clears.
func allPlain(x uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := x^ones*'"', x^ones*'\\'
	return ((x-ones*0x20)&^x|(quote-ones)&^quote|(slash-ones)&^slash)&highs == 0
}

func str(src []byte, i int) (int, error) {
	for i++; i < len(src); i++ {
		for i+8 <= len(src) && allPlain(binary.LittleEndian.Uint64(src[i:])) {
			i += 8
		}
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
