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

// escapes stand in for what a text field of bubbles would drop, change or draw
// as it is: each such piece of text has a character of private use.
type escapes struct {
	keeps  func(rune) bool
	joined bool // a picture of several, such as a family, is one piece, too
	all    []string
}

// standIn is the first of those characters: the last plane of all.
const standIn = 0x100000

// isUnsupported reports what a line of text cannot hold: bubbles drops control
// characters.
func isUnsupported(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }

// isBreak reports what a pasted line has blanks for.
func isBreak(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }

// isInvisible reports what must not reach a terminal.
func isInvisible(r rune) bool {
	one := string(r)
	return isUnsupported(r) && r != '\n' && r != '\t' || termtext.Text(one) != one
}

// escape is text as the text field holds it.
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

// joiner makes one picture of several.
const joiner = "\u200d"

// maxPicture is as many bytes as the longest picture has.
const maxPicture = 64

// picture is how many bytes of several pictures a text begins with that are seen as
// one; 0 is none.
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

// unescape is the text that was meant.
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

// typed is a key as the text field takes it.
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
	// As a paste, or "end" would be taken for the key of that name.
	msg.Paste = msg.Paste || len(msg.Runes) > 1
	msg.Runes = []rune(k.escape(s))
	return msg
}
