package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Word is a word as shells read it. Text that a terminal would act on when
// it is pasted is spelled out ($'…' of ksh, bash, zsh and POSIX 2024).
func Word(s string) string {
	plain := s != ""
	for _, r := range s {
		if r == '\n' || hides(r) {
			return dollarQuoted(s)
		}
		if !(r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-./:@%+,=", r))) {
			plain = false
		}
	}
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func dollarQuoted(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n' || hides(r):
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String() + "'"
}

// hides reports a character that does something to a terminal, or is not seen.
func hides(r rune) bool {
	return r != '\n' && (unicode.Is(unicode.C, r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029')
}
