package termtext

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxQuoted is the maximum length of a name in a command of [Goblin], in bytes.
const maxQuoted = 200

// Command returns a command line for users to run: program is constant text, names and
// flags are quoted. Names follow "--" if one begins with "-".
func Command(program string, names []string, flags ...string) string {
	words := slices.Concat(names, flags)
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "-") }) {
		words = slices.Concat(flags, []string{"--"}, names)
	}
	if len(words) == 0 {
		return program
	}
	return program + " " + QuoteWords(words...)
}

// Goblin returns the goblin command with verb, which is constant text, and untrusted
// names. If [CanQuote] rejects a name, it returns "see: goblin VERB".
func Goblin(verb string, names ...string) string {
	if !CanQuote(names...) {
		return "see: goblin " + verb
	}
	return Command("goblin "+verb, names)
}

// CanQuote reports whether users can check and run a command with these names: none is
// empty, too long, or contains characters that are escaped for terminals.
func CanQuote(names ...string) bool {
	for _, name := range names {
		if name == "" || len(name) > maxQuoted || Name(name) != name || runtime.GOOS == "windows" && !isPlainWindows(name) {
			return false
		}
	}
	return true
}

// QuoteWords quotes each word by [QuoteWord].
func QuoteWords(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = QuoteWord(word)
	}
	return strings.Join(quoted, " ")
}

// QuoteWord quotes s as one word for sh, bash, zsh and fish, on Windows for PowerShell.
// Characters that a terminal interprets or hides are written as $'…'. Shells without that
// form read another word, but execute nothing.
func QuoteWord(s string) string {
	if runtime.GOOS == "windows" {
		return quoteWindows(s)
	}
	return quotePOSIX(s)
}

func quotePOSIX(s string) string {
	plain := s != "" && s[0] != '=' && s[0] != '%' // zsh replaces =NAME by a path, fish %self by a number
	for _, r := range s {
		if r == '\n' || isInvisible(r) {
			return quoteDollar(s)
		}
		plain = plain && isPlain(r, "_-./:@%+,=")
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(s) {
		switch {
		case s[i] == '\'', s[i] == '\\' && (i+1 == len(s) || s[i+1] == '\'' || s[i+1] == '\\'): // fish has \' and \\ within quotes
			b.WriteString(`'\` + s[i:i+1] + `'`)
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String() + "'"
}

func isPlain(r rune, others string) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(others, r))
}

// quoteDollar quotes s as $'…' with escapes for hidden characters. It contains no
// apostrophe, which would end the quotes in dash.
func quoteDollar(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\134`) // fish reads \\ within quotes
		case r == '\'' || r == '\n' || isInvisible(r):
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

// quoteWindows quotes s for PowerShell. Words accepted by isPlainWindows mean the same in
// cmd.
func quoteWindows(s string) string {
	switch {
	case isPlainWindows(s) && !strings.Contains(s, " "):
		return s
	case isPlainWindows(s):
		return `"` + s + `"`
	}
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case strings.ContainsRune("'\u2018\u2019\u201a\u201b", r): // each ends quotes in PowerShell
			b.WriteRune(r)
			b.WriteRune(r)
		case isInvisible(r) || r == '\n':
			b.WriteRune(utf8.RuneError) // PowerShell cannot escape these
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}

// isPlainWindows reports whether cmd and PowerShell read s unchanged, in double quotes if
// it contains blanks.
func isPlainWindows(s string) bool {
	for _, r := range s {
		if !isPlain(r, `_-./:\+= `) {
			return false
		}
	}
	return s != "" && !(strings.Contains(s, " ") && strings.HasSuffix(s, `\`))
}

// Portable converts a word of [QuoteWord] for all POSIX shells: $'…' becomes an expansion
// of printf. It loses trailing newlines, which scripts do not need.
func Portable(word string) string {
	inner, ok := strings.CutPrefix(word, "$'")
	if !ok {
		return word
	}
	inner = strings.NewReplacer("%", "%%", "!", `\041`).Replace(strings.TrimSuffix(inner, "'")) // bash replaces ! in double quotes
	if rest, is := strings.CutPrefix(inner, "-"); is {
		inner = `\055` + rest // printf would read it as a flag
	}
	return `"$(printf '` + inner + `')"`
}

// IsTypeable reports whether a word of [QuoteWord] executes nothing in any shell of this
// system. On Windows it excludes characters that cmd interprets within PowerShell's
// quotes.
func IsTypeable(s string) bool {
	return runtime.GOOS != "windows" || !strings.ContainsAny(s, "&|<>^%\n") && !strings.ContainsFunc(s, isInvisible)
}

func isInvisible(r rune) bool {
	return r != '\n' && (unicode.Is(unicode.C, r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029')
}
