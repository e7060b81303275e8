package list

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foldRune gives one rune for all that differ only by case: ς and σ, K (the
// Kelvin sign) and k, İ and i, ẞ and ß. Its result may be longer or shorter in
// bytes.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// fold folds every rune and keeps bytes that are no UTF-8. moved says that
// offsets in the result may differ from those in s. A folded text of valid
// UTF-8 is only found at rune boundaries of a folded text, whatever that is.
func fold(s string) (low string, moved bool) {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == len(s) {
		return s, false
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	b.WriteString(s[:i])
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b.WriteByte(s[i])
		} else {
			was := b.Len()
			b.WriteRune(foldRune(r))
			moved = moved || b.Len()-was != size
		}
		i += size
	}
	return b.String(), moved
}

// origins gives for each byte of the folded s, and for its end, the offset in
// s of the rune that it came from.
func origins(s string, folded int) []int {
	at := make([]int, 0, folded+1)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		n := 1
		if r != utf8.RuneError || size != 1 {
			n = utf8.RuneLen(foldRune(r))
		}
		for range n {
			at = append(at, i)
		}
		i += size
	}
	return append(at, len(s))
}

// clean makes text that a user typed or that became part of it valid UTF-8
// without NUL, at which the fuzzy scorer would stop.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// letterBits tells which bit of a mask stands for a byte of folded text.
// Letters, digits and what is frequent in URIs have one of their own, other
// bytes share theirs.
type letterBits struct {
	bit [256]uint64
	own [256]bool
}

var letters = func() (l letterBits) {
	for b := range 256 {
		if b < utf8.RuneSelf {
			l.bit[b] = 1 << (52 + b&3)
		} else {
			l.bit[b] = 1 << (56 + b&7)
		}
	}
	const alone = "abcdefghijklmnopqrstuvwxyz0123456789-_./: ?=&+~,@#%*"
	for i := range len(alone) {
		l.bit[alone[i]], l.own[alone[i]] = 1<<i, true
	}
	return l
}()

// maskOf gives the letters of a folded text. A text can only contain another
// one, or its characters in order, if its mask has all bits of the other's.
func maskOf(low string) (mask uint64) {
	for i := range len(low) {
		mask |= letters.bit[low[i]]
	}
	return mask
}
