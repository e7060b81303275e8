package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the maximum length of a word, in bytes; the rest is cut.
const maxWord = 40

// lexer splits text into words. It reuses its buffers and is not safe for concurrent use.
type lexer struct {
	chunk []byte // lower case, since the last separator
	cuts  []int  // starts of the parts of chunk
	word  []byte // the emitted word
	last  []byte // the previous word, for pairs
	pairs bool
	emit  func(word []byte, how spelling)
}

type spelling uint8

const (
	plain  spelling = iota // between separators
	part                   // a part of a mixed piece
	whole                  // a mixed piece
	joined                 // two consecutive words
)

// split calls emit for each word of text, in lower case without diacritics. With pairs,
// it also emits pairs of consecutive words; only these are stemmed. emit may modify the
// bytes, which are valid until it returns.
func (l *lexer) split(text string, pairs bool, emit func(word []byte, how spelling)) {
	l.chunk, l.cuts, l.last = l.chunk[:0], l.cuts[:0], l.last[:0]
	l.pairs, l.emit = pairs, emit
	if !ascii(text) {
		text = norm.NFKD.String(text)
	}
	var before class
	for i, c := range text {
		now := classOf(c)
		switch now {
		case mark:
			continue
		case separator:
			l.flush()
		case ideograph:
			l.flush()
			l.chunk = utf8.AppendRune(l.chunk, c)
			l.flush()
		default:
			if startsPart(before, now, text[i+utf8.RuneLen(c):]) {
				l.cuts = append(l.cuts, len(l.chunk))
			}
			l.chunk = utf8.AppendRune(l.chunk, unicode.ToLower(c))
		}
		before = now
	}
	l.flush()
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

type class uint8

const (
	separator class = iota
	lower
	upper
	digit
	ideograph // a word of its own
	mark      // a diacritic or apostrophe, ignored
)

func classOf(c rune) class {
	switch {
	case 'a' <= c && c <= 'z':
		return lower
	case 'A' <= c && c <= 'Z':
		return upper
	case '0' <= c && c <= '9':
		return digit
	case c == '\'', c == '’':
		return mark
	case c < utf8.RuneSelf, c == utf8.RuneError:
		return separator
	case unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return ideograph
	case unicode.IsUpper(c):
		return upper
	case unicode.IsLetter(c):
		return lower
	case unicode.IsDigit(c):
		return digit
	case unicode.In(c, unicode.Mn):
		return mark
	}
	return separator
}

// startsPart reports whether a rune of class now begins a new part: at digits, at "tU" of
// getUser and at "Se" of HTTPServer.
func startsPart(before, now class, rest string) bool {
	switch {
	case before == separator || before == ideograph:
		return false
	case (before == digit) != (now == digit):
		return true
	case now != upper:
		return false
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return before == lower || before == upper && classOf(next) == lower
}

func (l *lexer) flush() {
	if len(l.chunk) == 0 {
		return
	}
	if len(l.cuts) == 0 {
		l.emitWord(l.chunk, plain)
	} else {
		digits := false
		from := 0
		for _, to := range append(l.cuts, len(l.chunk)) {
			l.emitWord(l.chunk[from:to], part)
			digits = digits || !letters(l.chunk[from:to])
			from = to
		}
		// Two parts of letters are already emitted as a pair.
		if !l.pairs || digits || len(l.cuts) > 1 {
			l.word = truncateWord(append(l.word[:0], l.chunk...))
			l.emit(l.word, whole)
		}
	}
	l.chunk, l.cuts = l.chunk[:0], l.cuts[:0]
}

func (l *lexer) emitWord(w []byte, how spelling) {
	w = truncateWord(w)
	if l.pairs {
		if len(l.last) > 1 && len(w) > 1 && letters(w) {
			l.word = append(l.word[:0], l.last...)
			l.word = append(l.word, w...)
			l.emit(truncateWord(stem(l.word)), joined)
		}
		l.last = l.last[:0]
		if letters(w) {
			l.last = append(l.last, w...)
		}
	}
	l.word = append(l.word[:0], w...)
	l.emit(l.word, how)
}

func letters(w []byte) bool { return w[0] < '0' || w[0] > '9' }

func truncateWord(w []byte) []byte {
	if len(w) <= maxWord {
		return w
	}
	n := maxWord
	for n > 0 && !utf8.RuneStart(w[n]) {
		n--
	}
	return w[:n]
}

// stem removes common English endings in place. It only cuts, so a prefix typed by a user
// stays a prefix. Different words may become equal.
func stem(w []byte) []byte {
	if len(w) < 4 || !letters(w) || string(w) == "them" {
		return w
	}
	w = trimSuffix(singular(w))
	switch string(w) { // otherwise equal to very common words
	case "not", "them":
		return append(w, 'e') // note, notes, noted; theme, themes
	}
	return w
}

func trimSuffix(w []byte) []byte {
	switch {
	case hasSuffix(w, "ing") && isRoot(w[:len(w)-3]):
		w = undouble(w[:len(w)-3])
	case hasSuffix(w, "ed") && !hasSuffix(w, "eed") && isRoot(w[:len(w)-2]):
		w = undouble(w[:len(w)-2])
	case (hasSuffix(w, "tion") || hasSuffix(w, "sion")) && len(w) >= 7:
		w = w[:len(w)-3]
	case hasSuffix(w, "ment") && len(w) >= 9:
		w = w[:len(w)-4]
	}
	if hasSuffix(w, "e") && len(w) > 3 {
		w = w[:len(w)-1]
	}
	if hasSuffix(w, "at") && len(w) >= 7 { // validate, validation, validating: valid
		w = w[:len(w)-2]
	}
	if hasSuffix(w, "y") && len(w) > 3 && !isVowel(w[len(w)-2]) {
		w[len(w)-1] = 'i' // query, queries
	}
	return w
}

func singular(w []byte) []byte {
	switch {
	case !hasSuffix(w, "s") || hasSuffix(w, "ss") || hasSuffix(w, "us") || hasSuffix(w, "is"):
		return w
	case hasSuffix(w, "ies") && len(w) > 4, hasSuffix(w, "sses"), hasSuffix(w, "xes"), hasSuffix(w, "ches"), hasSuffix(w, "shes"):
		return w[:len(w)-2]
	}
	return w[:len(w)-1]
}

func hasSuffix(w []byte, with string) bool {
	return len(w) >= len(with) && string(w[len(w)-len(with):]) == with
}

// isRoot reports whether w can be a word: three letters, one of them a vowel.
func isRoot(w []byte) bool {
	if len(w) < 3 {
		return false
	}
	for _, c := range w {
		if isVowel(c) || c == 'y' {
			return true
		}
	}
	return false
}

func isVowel(c byte) bool { return strings.IndexByte("aeiou", c) >= 0 }

// undouble turns runn into run, but keeps fill.
func undouble(w []byte) []byte {
	n := len(w)
	if w[n-1] == w[n-2] && !isVowel(w[n-1]) && strings.IndexByte("lsz", w[n-1]) < 0 {
		return w[:n-1]
	}
	return w
}
