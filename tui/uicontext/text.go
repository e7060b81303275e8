package uicontext

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"goblin/registry/termtext"
	"goblin/tui/theme"
)

// SanitizeLine returns untrusted text as one line that is safe to draw.
func SanitizeLine(s string) string { return termtext.Line(s) }

// FormatDuration formats a duration with at most three digits, such as 671 ms, 2.1 s or 6 min.
func FormatDuration(d time.Duration) string { return termtext.Duration(d) }

// FormatSize formats a number of bytes, or returns "" if it is unknown (negative).
func FormatSize(n int64) string { return termtext.Size(n) }

// WrapText wraps untrusted text into at most most lines of at most w cells.
func WrapText(s string, w, most int) []string {
	s = strings.ReplaceAll(termtext.Text(CutText(s, 8192)), "\t", "    ")
	lines := strings.Split(ansi.Wrap(strings.TrimSpace(s), w, ""), "\n")
	if len(lines) > most {
		lines = append(lines[:most-1], ansi.Truncate(lines[most-1], max(w-1, 0), "")+"…")
	}
	return lines
}

// CutBefore shortens a line in front of its final parentheses, which count what is
// omitted, unless little would remain.
func CutBefore(lk *theme.Theme, s string, w int) string {
	at := strings.LastIndex(s, " (")
	if at < 0 || !strings.HasSuffix(s, ") ") || 2*theme.Width(s[at:]) > w {
		return lk.Cut(s, w)
	}
	return lk.Cut(s[:at], w-theme.Width(s[at:])) + s[at:]
}

// FormatCount formats a count briefly: 1234, 100k, 1.2M.
func FormatCount(n int) string { return termtext.FormatCount(n) }

// FormatInt formats a count with all its digits: 1234, 100,009.
func FormatInt(n int) string {
	s := strconv.Itoa(n)
	if n < 10_000 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// PositionText returns the scroll position of a text, or "" if all of it is visible.
func PositionText(text interface{ Position() (int, int, int) }) string {
	first, last, total := text.Position()
	if total == 0 || first <= 1 && last >= total {
		return ""
	}
	return FormatCount(last) + "/" + FormatCount(total)
}

// DefaultDepth is the depth to which JSON is unfolded at first.
const DefaultDepth = 12

// ContainsAll reports whether text contains all words.
func ContainsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// CutText cuts text to most bytes, between characters.
func CutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return termtext.Truncate(s, most) + "…"
}
