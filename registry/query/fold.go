package query

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// foldRune maps runes that differ only by case to one rune: ς and σ, K (the Kelvin sign)
// and k, İ and i, ẞ and ß. The result may have a different length in bytes.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// fold folds every rune and keeps invalid UTF-8 bytes. moved reports whether offsets may
// differ from those in s. Folded valid UTF-8 matches only at rune boundaries.
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

// origins maps offsets in the folded s to offsets in s.
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

// clean returns valid UTF-8 without NUL, at which the fuzzy scorer would stop.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// letterBits maps bytes of folded text to bits of a mask. Letters, digits and frequent
// characters of URIs have their own bit; other bytes share bits.
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

// maskOf returns the mask of a folded text. A text can contain another one, or its
// characters in order, only if its mask includes the other's.
func maskOf(low string) (mask uint64) {
	for i := range len(low) {
		mask |= letters.bit[low[i]]
	}
	return mask
}
