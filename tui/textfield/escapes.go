package textfield

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"goblin/registry/termtext"
)

// escapes maps text that the fields of bubbles would drop, change or draw raw to
// private-use characters.
type escapes struct {
	keeps  func(rune) bool
	joined bool // joined emoji count as one piece
	all    []string
}

// standIn is the first of those characters, at the start of the last plane.
const standIn = 0x100000

// bubbles drops these characters
func isUnsupported(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }

// a single-line field replaces these by a space when pasted
func isBreak(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }

// isInvisible reports whether a character must not reach a terminal.
func isInvisible(r rune) bool {
	one := string(r)
	return isUnsupported(r) && r != '\n' && r != '\t' || termtext.Text(one) != one
}

func (k *escapes) escape(s string) string {
	pictures := k.joined && strings.Contains(s, joiner)
	if !pictures && strings.IndexFunc(s, func(r rune) bool { return k.keeps(r) || r >= standIn }) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		whole := 0
		if pictures {
			whole = picture(s[i:])
		}
		piece := s[i : i+max(n, whole)]
		i += len(piece)
		if whole == 0 && !k.keeps(r) && r < standIn {
			b.WriteString(piece)
			continue
		}
		at := slices.Index(k.all, piece)
		if at < 0 {
			at = len(k.all)
			k.all = append(k.all, piece)
		}
		b.WriteRune(rune(min(standIn+at, unicode.MaxRune)))
	}
	return b.String()
}

const joiner = "\u200d"

// maxPicture is the longest joined emoji, in bytes.
const maxPicture = 64

// picture returns the length of the joined emoji at the start of s in bytes, or 0.
func picture(s string) int {
	if s[0] < utf8.RuneSelf {
		return 0
	}
	cluster, _ := ansi.FirstGraphemeCluster(s[:min(len(s), maxPicture)], ansi.GraphemeWidth)
	if !strings.Contains(cluster, joiner) || termtext.Line(cluster) != cluster {
		return 0
	}
	return len(cluster)
}

func (k *escapes) unescape(s string) string {
	if len(k.all) == 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if at := int(r) - standIn; at >= 0 && at < len(k.all) {
			b.WriteString(k.all[at])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// typed escapes a key for the field of bubbles. lines allows line breaks.
func (k *escapes) typed(msg tea.KeyMsg, lines bool) tea.KeyMsg {
	if msg.Type != tea.KeyRunes {
		return msg
	}
	s := string(msg.Runes)
	switch many := msg.Paste || len(msg.Runes) > 1; {
	case many && lines:
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	case msg.Paste:
		s = strings.Join(strings.FieldsFunc(s, isBreak), " ")
	}
	// Without Paste, bubbles treats text such as "end" as a key name.
	msg.Paste = msg.Paste || len(msg.Runes) > 1
	msg.Runes = []rune(k.escape(s))
	return msg
}
