package tui

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/bubbles/key"
	"github.com/charmbracelet/bubbles/textinput"
	tea "github.com/charmbracelet/bubbletea"

	"goblin/gateway/display"
	"goblin/tui/look"
)

// field is one line of text being typed. It holds exactly what was typed,
// pasted or set, and draws it as [clean] does: what a terminal would obey or
// not show is seen, also where the cursor stands on it.
type field struct {
	Width int // cells; 0 is as many as the text needs

	look *look.Look // of this screen: whether it has attributes never changes
	in   textinput.Model
	kept keepsake
	off  int // the first character that is seen
}

func newField(lk *look.Look) field {
	f := field{look: lk, in: lk.Input()}
	// Neither the clipboard of the host's machine is the user's, nor are there
	// suggestions.
	none := key.NewBinding()
	k := &f.in.KeyMap
	k.Paste, k.AcceptSuggestion, k.NextSuggestion, k.PrevSuggestion = none, none, none, none
	f.in.Focus() // whoever owns it decides which keys reach it
	return f
}

// Set replaces the text; the cursor goes to its end.
func (f *field) Set(text string) {
	f.in.SetValue(f.kept.in(text, unheld))
	f.in.CursorEnd()
	f.off = 0
}

func (f *field) Value() string { return f.kept.out(f.in.Value()) }

// Update handles a key and reports whether the text changed. Runes that came
// at once are text, also where they spell a key's name, such as "end".
func (f *field) Update(msg tea.KeyMsg) bool {
	before := f.in.Value()
	f.in, _ = f.in.Update(f.kept.typed(msg, unheld))
	return f.in.Value() != before
}

// View draws the text around the cursor.
func (f *field) View() string {
	runes := []rune(f.in.Value())
	at := min(f.in.Position(), len(runes))
	shown := func(runes []rune) string { return clean(f.kept.out(string(runes))) }
	f.off = min(f.off, at, len(runes))
	if f.Width > 0 {
		room := max(f.Width-2, 1) // the cursor, and a sign that something is before
		for f.off < at && look.Width(shown(runes[f.off:at])) > room-1 {
			f.off++
		}
	} else {
		f.off = 0
	}
	before, under, after := shown(runes[f.off:at]), " ", ""
	if f.off > 0 {
		before = f.look.Ellipsis + before
	}
	if at < len(runes) {
		under, after = shown(runes[at:at+1]), shown(runes[at+1:])
	}
	if f.look.Bold == "" && under == " " { // a terminal that shows nothing but characters
		under = "_"
	}
	if f.Width > 0 {
		after = f.look.Cut(after, max(f.Width-look.Width(before+under), 0))
	}
	if f.look.Bold == "" {
		return before + under + after
	}
	return before + reversed + under + "\x1b[m" + after
}

// reversed is drawn under the cursor; https://no-color.org allows it.
const reversed = "\x1b[7m"

// Column is the cell of the cursor in what View draws.
func (f *field) Column() int {
	before, _, _ := strings.Cut(f.View(), reversed)
	if f.look.Bold == "" {
		before = clean(f.kept.out(string([]rune(f.in.Value())[:f.in.Position()])))
	}
	return look.Width(before)
}

// keepsake stands in for what a text field of bubbles would drop, change or
// draw as it is: each such piece of text has a character of private use.
type keepsake struct{ all []string }

// standIn is the first of those characters: the last plane of all.
const standIn = 0x100000

// unheld reports what a line of text cannot hold: bubbles drops control
// characters.
func unheld(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }

// unseen reports what must not reach a terminal.
func unseen(r rune) bool {
	one := string(r)
	return unheld(r) && r != '\n' && r != '\t' || display.Text(one) != one
}

// in is text as the text field holds it.
func (k *keepsake) in(s string, keeps func(rune) bool) string {
	var b strings.Builder
	for i, r := range s {
		if !keeps(r) && r < standIn {
			b.WriteRune(r)
			continue
		}
		n := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, n = utf8.DecodeRuneInString(s[i:])
		}
		piece := s[i : i+n]
		at := slices.Index(k.all, piece)
		if at < 0 {
			at = len(k.all)
			k.all = append(k.all, piece)
		}
		b.WriteRune(rune(min(standIn+at, unicode.MaxRune)))
	}
	return b.String()
}

// out is the text that was meant.
func (k *keepsake) out(s string) string {
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
func (k *keepsake) typed(msg tea.KeyMsg, keeps func(rune) bool) tea.KeyMsg {
	if msg.Type != tea.KeyRunes {
		return msg
	}
	s := string(msg.Runes)
	if msg.Paste && keeps('\n') { // one line
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
	}
	// As a paste, or "end" would be taken for the key of that name.
	msg.Paste = msg.Paste || len(msg.Runes) > 1
	msg.Runes = []rune(k.in(s, keeps))
	return msg
}
