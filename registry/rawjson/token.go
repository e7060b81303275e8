package rawjson

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

var plainByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// firstSpecial finds the first special byte among eight bytes of a string: its high bit
// is the first high bit set in the result. A byte of x^0x0202… is below 0x21 for a quote
// or a control character. Borrows in the subtractions cause false positives only after a
// true one.
func firstSpecial(x uint64) uint64 {
	return (x ^ lowBits*2 - lowBits*0x21) | (x ^ lowBits*'\\' - lowBits) | x
}

// scanString continues a string at i and returns the index after its closing quote.
// Without whole it stops before bytes that may continue in the next part.
func scanString(src []byte, i int, whole bool) (end int, closed bool, err error) {
	for i < len(src) {
		if i = skipPlain(src, i); i >= len(src) {
			break
		}
		switch c := src[i]; {
		case c == '"':
			return i + 1, true, nil
		case c == '\\':
			n, fault := scanEscape(src[i:])
			if n == 0 && !whole {
				return i, false, errIncomplete
			}
			if n == 0 {
				return len(src), false, unterminated(len(src))
			}
			if fault != "" {
				return i, false, &SyntaxError{Offset: i + 1, Reason: fault}
			}
			i += n
		case c >= utf8.RuneSelf:
			n := scanRunes(src[i:])
			i += n
			if n > 0 {
				continue
			}
			switch {
			case utf8.FullRune(src[i:]):
				return i, false, &SyntaxError{Offset: i, Reason: "not UTF-8"}
			case whole:
				return len(src), false, unterminated(len(src))
			}
			return i, false, errIncomplete
		default:
			return i, false, &SyntaxError{Offset: i, Reason: "control character in a string"}
		}
	}
	if whole {
		return len(src), false, unterminated(len(src))
	}
	return i, false, nil
}

func skipPlain(src []byte, i int) int {
	for i+8 <= len(src) {
		if s := firstSpecial(binary.LittleEndian.Uint64(src[i:])) & highBits; s != 0 {
			return i + bits.TrailingZeros64(s)/8
		}
		for i += 8; i+32 <= len(src); i += 32 {
			b := src[i : i+32 : i+32]
			s := firstSpecial(binary.LittleEndian.Uint64(b)) | firstSpecial(binary.LittleEndian.Uint64(b[8:])) |
				firstSpecial(binary.LittleEndian.Uint64(b[16:])) | firstSpecial(binary.LittleEndian.Uint64(b[24:]))
			if s&highBits != 0 {
				break
			}
		}
	}
	for i < len(src) && plainByte[src[i]] && src[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// scanRunes returns the length of the non-ASCII runes at the start of b, or 0 if the
// first is invalid.
func scanRunes(b []byte) (n int) {
	for n < len(b) && b[n] >= utf8.RuneSelf {
		switch c := b[n]; {
		case 0xc2 <= c && c < 0xe0 && n+1 < len(b) && b[n+1]&0xc0 == 0x80:
			n += 2
		case 0xe0 < c && c < 0xf0 && c != 0xed && n+2 < len(b) && b[n+1]&0xc0 == 0x80 && b[n+2]&0xc0 == 0x80:
			n += 3
		default:
			r, size := utf8.DecodeRune(b[n:])
			if r == utf8.RuneError && size <= 1 {
				return n
			}
			n += size
		}
	}
	return n
}

// scanEscape returns the length of the escape at the start of b and its error, or 0 if
// incomplete.
func scanEscape(b []byte) (n int, fault string) {
	if len(b) < 2 {
		return 0, ""
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		for i, c := range b[2:min(len(b), 6)] {
			if !isHex(c) {
				return i + 2, `bad \u escape`
			}
		}
		if len(b) < 6 {
			return 0, ""
		}
		return 6, ""
	}
	return 2, fmt.Sprintf("bad escape %q", b[1])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func hex4(src []byte, i int) (rune, bool) {
	if len(src)-i < 4 {
		return 0, false
	}
	r, err := strconv.ParseUint(string(src[i:i+4]), 16, 16)
	return rune(r), err == nil
}

func scanLiteral(src []byte, i int, word string, whole bool) (int, error) {
	switch have := len(src) - i; {
	case have >= len(word) && string(src[i:i+len(word)]) == word:
		return i + len(word), nil
	case have < len(word) && !whole && string(src[i:]) == word[:have]:
		return i, errIncomplete
	}
	return i, &SyntaxError{Offset: i, Reason: "expected " + word}
}

// scanNumber returns the index after the number at start. Without whole a number must be
// followed by another byte.
func scanNumber(src []byte, start int, whole bool) (int, error) {
	i := start
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
	ok := i < len(src) && src[i] == '0'
	if ok {
		i++
	} else {
		ok = digits()
	}
	if ok && i < len(src) && src[i] == '.' {
		i++
		ok = digits()
	}
	if ok && i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		ok = digits()
	}
	switch {
	case i == len(src) && !whole:
		return start, errIncomplete
	case !ok:
		return start, &SyntaxError{Offset: start, Reason: "bad number"}
	}
	return i, nil
}
