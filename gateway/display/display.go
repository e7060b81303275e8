// Package display makes foreign text safe and measurable for terminals.
//
// What servers and clients send may hold escape sequences that retitle a
// window, fill a clipboard or hide text. This package owns the one boundary
// where such characters become visible; text on the wire never passes through
// it. All functions are pure and may be called from anywhere. It is a leaf.
package display

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Text is s for the lines of a terminal: control characters, changes of
// direction and invisible characters become escapes such as \x1b and \u202e,
// variation selectors go, invalid UTF-8 becomes \xff. Tabs and line breaks stay; CR LF becomes LF.
func Text(s string) string { return escape(s, true) }

// Line is Text for one line or one cell: line breaks and tabs are escaped too.
func Line(s string) string { return escape(s, false) }

func escape(s string, lines bool) string {
	return replace(s, lines, func(out *strings.Builder, rest string, r rune, size int) {
		switch {
		case lines && strings.HasPrefix(rest, "\r\n"):
			// The line break that follows says it all.
		case r >= 0xfe00 && r <= 0xfe0f:
			// Terminals disagree on how wide it makes what is before it.
		case r == utf8.RuneError && size == 1:
			out.WriteString(`\x` + hex(uint64(rest[0]), 2))
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r == '\r':
			out.WriteString(`\r`)
		case r < 0x80:
			out.WriteString(`\x` + hex(uint64(r), 2))
		case r < 0x10000:
			out.WriteString(`\u` + hex(uint64(r), 4))
		default:
			out.WriteString(`\U` + hex(uint64(r), 8))
		}
	})
}

// JSON is a JSON text for a terminal: what Text makes visible becomes an escape
// of JSON, so that the value stays the same.
func JSON(s string) string {
	return replace(s, true, func(out *strings.Builder, _ string, r rune, _ int) {
		switch high, low := utf16.EncodeRune(r); {
		case r < ' ': // a carriage return between values; strings hold none
			out.WriteByte(' ')
		case r >= 0x10000:
			out.WriteString(`\u` + hex(uint64(high), 4) + `\u` + hex(uint64(low), 4))
		default:
			out.WriteString(`\u` + hex(uint64(r), 4))
		}
	})
}

// replace is s with something else for each character that must not reach a
// terminal: write gets it as r, with its size and all that begins with it.
func replace(s string, lines bool, write func(out *strings.Builder, rest string, r rune, size int)) string {
	at := unsafeAt(s, lines)
	if at < 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s) + 16)
	for at >= 0 {
		out.WriteString(s[:at])
		s = s[at:]
		r, size := utf8.DecodeRuneInString(s)
		write(&out, s, r, size)
		s = s[size:]
		at = unsafeAt(s, lines)
	}
	out.WriteString(s)
	return out.String()
}

func hex(v uint64, digits int) string {
	s := strconv.FormatUint(v, 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// unsafeAt is where the first character is that must not reach a terminal, or
// -1.
func unsafeAt(s string, lines bool) int {
	for i, r := range s {
		switch {
		case r >= ' ' && r < 0x7f:
		case r == '\n' || r == '\t':
			if !lines {
				return i
			}
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		case hidden(r):
			return i
		}
	}
	return -1
}

// hidden reports what a terminal obeys or does not show.
func hidden(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r < 0xa0: // C0, DEL, C1
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x206f: // bidi, and its deprecated kin
	case r == 0x200e, r == 0x200f, r == 0x061c: // direction marks
	case r >= 0x200b && r <= 0x200d, r >= 0x2060 && r <= 0x2064, r == 0xfeff, r == 0x00ad, r == 0x180e: // zero width
	case r == 0x2028, r == 0x2029: // line and paragraph separators
	case r >= 0xe0000 && r <= 0xe007f: // tags
	case r >= 0xfff9 && r <= 0xfffb: // interlinear annotation
	case r >= 0xfe00 && r <= 0xfe0f: // variation selectors
	case r == 0x115f, r == 0x1160, r == 0x3164, r == 0xffa0: // fillers, which look like nothing
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r): // draws over what follows
	default:
		return false
	}
	return true
}

// Width is how many cells of a terminal s takes, if it went through [Line].
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	if r < 0x7f {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens s to at most cells cells, the last of which is an ellipsis if
// anything was lost.
func Cut(s string, most int) string {
	if most <= 0 {
		return ""
	}
	n, fit := 0, 0 // fit: what leaves room for the ellipsis
	for i, r := range s {
		w := cells(r)
		if n+w > most {
			return s[:fit] + "…"
		}
		n += w
		if n < most {
			fit = i + utf8.RuneLen(r)
			if r == utf8.RuneError {
				_, size := utf8.DecodeRuneInString(s[i:])
				fit = i + size
			}
		}
	}
	return s
}

// Pad fills s with spaces to at least cells cells.
func Pad(s string, least int) string {
	return s + strings.Repeat(" ", max(0, least-Width(s)))
}

// FirstLine is the first line of s that is not blank, without spaces around
// it.
func FirstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
