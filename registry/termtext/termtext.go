// Package termtext makes untrusted text safe for terminals and quotes shell commands.
//
// Texts of servers and clients may contain escape sequences that change a window title,
// fill the clipboard or hide text. Only this package escapes them, and only for display;
// traffic stays unchanged. All functions are pure. It imports no other package of Goblin.
package termtext

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Text escapes s for several lines on a terminal. Characters that a terminal interprets,
// hides, moves or stacks in one cell become escapes such as \x1b and \u202e. Invalid
// UTF-8 becomes \xff. Tabs and line breaks stay. CR LF becomes LF. An emoji selector
// after a symbol is dropped.
func Text(s string) string { return escape(s, true) }

// Line is Text for a single line or cell, such as names: it also escapes line breaks and
// tabs.
func Line(s string) string { return escape(s, false) }

// Name is Line for a name within other text. It also escapes runs of blanks, which could
// push text to the next terminal line.
func Name(s string) string {
	return blanks().ReplaceAllStringFunc(Line(s), func(run string) string {
		var out strings.Builder
		for _, r := range run {
			if r < utf8.RuneSelf {
				out.WriteString(`\x` + formatHex(uint64(r), 2))
			} else {
				out.WriteString(`\u` + formatHex(uint64(r), 4))
			}
		}
		return out.String()
	})
}

var blanks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[ \x{a0}\x{3000}]{2,}`) })

func escape(s string, lines bool) string {
	return escapeUnsafe(s, lines, func(out *strings.Builder, before rune, rest string, r rune, size int) {
		switch {
		case lines && strings.HasPrefix(rest, "\r\n"):
			// the line break follows
		case r == emojiStyle && unicode.Is(unicode.So, before):
			// Terminals disagree on the symbol's width with it, and it is common in
			// harmless texts. One after each visible symbol hides nothing.
		case r == utf8.RuneError && size == 1:
			out.WriteString(`\x` + formatHex(uint64(rest[0]), 2))
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\t':
			out.WriteString(`\t`)
		case r == '\r':
			out.WriteString(`\r`)
		case r < 0x80:
			out.WriteString(`\x` + formatHex(uint64(r), 2))
		case r < 0x10000:
			out.WriteString(`\u` + formatHex(uint64(r), 4))
		default:
			out.WriteString(`\U` + formatHex(uint64(r), 8))
		}
	})
}

// emojiStyle requests the colored form of the preceding symbol.
const emojiStyle = '\ufe0f'

// JSON is Text for JSON, with JSON escapes, so that the value stays the same.
func JSON(s string) string {
	return escapeUnsafe(s, true, func(out *strings.Builder, _ rune, _ string, r rune, _ int) {
		switch high, low := utf16.EncodeRune(r); {
		case r < ' ': // between values; strings contain none
			out.WriteByte(' ')
		case r >= 0x10000:
			out.WriteString(`\u` + formatHex(uint64(high), 4) + `\u` + formatHex(uint64(low), 4))
		default:
			out.WriteString(`\u` + formatHex(uint64(r), 4))
		}
	})
}

// escapeUnsafe replaces each unsafe character of s. write receives the character r, its
// size, the text that begins with it, and the previous character. That is 0 after a
// replaced one.
func escapeUnsafe(s string, lines bool, write func(out *strings.Builder, before rune, rest string, r rune, size int)) string {
	at := unsafeIndex(s, lines)
	if at < 0 {
		return s
	}
	var out strings.Builder
	out.Grow(len(s) + 16)
	for at >= 0 {
		before := rune(0)
		if at > 0 {
			before, _ = utf8.DecodeLastRuneInString(s[:at])
		}
		out.WriteString(s[:at])
		s = s[at:]
		r, size := utf8.DecodeRuneInString(s)
		write(&out, before, s, r, size)
		s = s[size:]
		at = unsafeIndex(s, lines)
	}
	out.WriteString(s)
	return out.String()
}

func formatHex(v uint64, digits int) string {
	s := strconv.FormatUint(v, 16)
	return strings.Repeat("0", max(0, digits-len(s))) + s
}

// maxCluster is the maximum number of characters per cell: more than any script needs,
// and too few to overdraw other lines or hide text.
const maxCluster = 8

// maxClusterBytes is the maximum length of a cluster that is read, in bytes: one
// character more than allowed, each with a style and a joiner.
const maxClusterBytes = (maxCluster + 1) * (utf8.UTFMax + len(string(emojiStyle)) + len(string(joiner)))

// unsafeIndex returns the index of the first unsafe character, or -1. The text before s
// is unknown, so s must not begin with a combining character.
func unsafeIndex(s string, lines bool) int {
	first := true // of its line
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= ' ' && c < 0x7f && (i+1 == len(s) || s[i+1] < utf8.RuneSelf):
			i, first = i+1, false
			continue
		case lines && (c == '\n' || c == '\t'):
			i, first = i+1, true
			continue
		}
		if first && isCombining(s[i:]) {
			return i
		}
		// Long clusters are not scanned repeatedly: these bytes suffice to reject one.
		cluster, _ := ansi.FirstGraphemeCluster(s[i:min(len(s), i+maxClusterBytes)], ansi.GraphemeWidth)
		n, joint := 0, -1 // start of the pending joiner or style
		for k, r := range cluster {
			invalid := false
			if r == utf8.RuneError {
				_, size := utf8.DecodeRuneInString(cluster[k:])
				invalid = size == 1
			}
			if isJoiner(cluster, k, r) {
				if joint < 0 {
					joint = k
				}
				continue // counted with the joined character
			}
			if n++; n > maxCluster && r >= utf8.RuneSelf || invalid || isHidden(r) {
				if joint >= 0 {
					return i + joint // nothing follows to join
				}
				return i + k
			}
			joint = -1
		}
		i, first = i+len(cluster), false
	}
	return -1
}

// joiner combines several pictures into one, such as a family.
const joiner = '\u200d'

// isJoiner reports whether r joins two pictures, or is the style of the picture before
// such a joiner.
func isJoiner(cluster string, i int, r rune) bool {
	return r == joiner && joinsPictures(cluster, i) || r == emojiStyle && joinsPictures(cluster, i+len(string(emojiStyle)))
}

// joinsPictures reports whether the joiner at i in a cluster is between two pictures.
// There it hides nothing.
func joinsPictures(cluster string, i int) bool {
	if i <= 0 || i >= len(cluster) || !strings.HasPrefix(cluster[i:], string(joiner)) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(strings.TrimSuffix(cluster[:i], string(emojiStyle)))
	after, _ := utf8.DecodeRuneInString(cluster[i+len(string(joiner)):])
	if before == utf8.RuneError || after == utf8.RuneError || max(before, after) < 0x1f000 {
		return false
	}
	skin := before >= 0x1f3fb && before <= 0x1f3ff
	return (skin || unicode.Is(unicode.So, before)) && unicode.Is(unicode.So, after)
}

// isCombining reports whether a text is drawn into the preceding cell.
func isCombining(s string) bool {
	_, size := utf8.DecodeRuneInString(s)
	cluster, _ := ansi.FirstGraphemeCluster("x"+s[:size], ansi.GraphemeWidth)
	return len(cluster) > 1
}

// isHidden reports whether a terminal interprets a character or draws it without a glyph.
// It accepts letters, marks, numbers, punctuation, symbols and the three usual spaces.
func isHidden(r rune) bool {
	return !unicode.IsPrint(r) && r != 0xa0 && r != 0x3000 ||
		r >= 0x300 && unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blankSymbols)
}

// blankSymbols are visible by category but drawn as nothing; Unicode has no property for
// them: the empty braille pattern, the object placeholder, the blanks of Egyptian, the
// filler of Khitan, and the null note head.
var blankSymbols = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0xfffc, Hi: 0xfffc, Stride: 1}},
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, {Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, {Lo: 0x1d159, Hi: 0x1d159, Stride: 1},
	},
}

// Width returns the number of cells of s, which must be escaped by [Line]. It agrees with
// Lip Gloss.
func Width(s string) int { return ansi.StringWidth(s) }

// Cut shortens s to at most most cells, with a final ellipsis if it cuts.
func Cut(s string, most int) string {
	if most <= 0 {
		return ""
	}
	return ansi.Truncate(s, most, "…")
}

// Pad pads s with spaces to at least least cells.
func Pad(s string, least int) string {
	return s + strings.Repeat(" ", max(0, least-Width(s)))
}

// Count formats a number with a noun, with a plural "s" unless it is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Truncate returns at most n bytes of s without splitting characters.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// EncodeJSON encodes a value as JSON that is safe for terminals.
func EncodeJSON(v any, indent string) (string, error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return JSON(strings.TrimSuffix(out.String(), "\n")), err
}

// Age formats a duration in its two largest units.
func Age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// Clock formats a time of day, with its date unless it is today.
func Clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format("15:04")
	}
	return at.Format("2006-01-02 15:04")
}

// FirstLine returns the first non-blank line of s, trimmed.
func FirstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// Duration formats a duration with at most three digits: 0.4 ms, 671 ms, 2.1 s, 45 s, 6 min.
func Duration(d time.Duration) string {
	ms := float64(d) / 1e6
	switch {
	case d <= 0:
		return "0 ms"
	case ms < 0.05:
		return "<0.1 ms"
	case ms < 9.95:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 999.5:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case ms < 9950:
		return strconv.FormatFloat(math.Round(ms/100)/10, 'f', 1, 64) + " s"
	default:
		return Age(d.Round(time.Second))
	}
}

// Millis formats a duration given in milliseconds like [Duration], or returns "" if it is not positive.
func Millis(ms float64) string {
	if ms <= 0 {
		return ""
	}
	return Duration(time.Duration(ms * float64(time.Millisecond)))
}

// Size formats n bytes with at most three digits: 999 B, 20.3 kB, 151 MB. It returns "" if n is
// negative, which means unknown.
func Size(n int64) string {
	switch {
	case n < 0:
		return ""
	case n < 1000:
		return strconv.FormatInt(n, 10) + " B"
	}
	f := float64(n) / 1e3
	unit := 0
	for units := "kMG"; f >= 999.5 && unit < len(units)-1; unit++ {
		f /= 1e3
	}
	decimals := 1
	if f >= 99.95 {
		decimals = 0
	}
	return strconv.FormatFloat(f, 'f', decimals, 64) + " " + "kMG"[unit:unit+1] + "B"
}

// FormatCount formats a count: 1234, 100k, 1.2M.
func FormatCount(n int) string {
	switch {
	case n < 10_000:
		return strconv.Itoa(n)
	case n < 1_000_000:
		return strconv.Itoa(n/1000) + "k"
	default:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64) + "M"
	}
}
