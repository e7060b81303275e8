package textfield_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"goblin/registry/termtext"
	"goblin/tui/textfield"
	"goblin/tui/theme"
)

// hostileText has characters that a terminal interprets or does not show.
const hostileText = "a\u202eb\u200bc\x1b[2J\u0301d\xffe"

func keyMsg(word string) tea.KeyMsg {
	for _, k := range []tea.KeyType{tea.KeyLeft, tea.KeyRight, tea.KeyHome, tea.KeyEnd, tea.KeyBackspace, tea.KeyCtrlU, tea.KeyCtrlK, tea.KeyCtrlW, tea.KeyUp, tea.KeyDown, tea.KeyEnter, tea.KeyDelete, tea.KeyCtrlHome, tea.KeyCtrlEnd} {
		if k.String() == word {
			return tea.KeyMsg{Type: k}
		}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(word)}
}

func newField(w int) textfield.Field {
	f := textfield.New(theme.New(theme.Options{}))
	f.Width = w
	return f
}

func TestALineHoldsExactlyWhatItWasGivenAndDrawsItSafely(t *testing.T) {
	t.Parallel()
	f := newField(0)
	f.SetValue(hostileText)
	require.Equal(t, hostileText, f.Value())
	require.Equal(t, termtext.Line(hostileText), strings.TrimSuffix(ansi.Strip(f.View()), " "))
	f.Update(keyMsg("X"))
	require.Equal(t, hostileText+"X", f.Value(), "editing leaves the rest unchanged")
	for _, k := range []string{"backspace", "backspace", "backspace", "backspace"} {
		f.Update(keyMsg(k))
	}
	require.Equal(t, "a\u202eb\u200bc\x1b[2J\u0301", f.Value(), "each is one character")
	f.SetValue("")
	f.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("x\u202e\n\ty\x07z"), Paste: true})
	require.Equal(t, "x\u202e y\x07z", f.Value(), "one line")
	f.SetValue("\U00100000\U0010fffd")
	require.Equal(t, "\U00100000\U0010fffd", f.Value(), "characters of private use too")
}

func TestPicturesOfSeveralAreOneCharacter(t *testing.T) {
	t.Parallel()
	const family, astronaut = "👩\u200d👩\u200d👧", "👩🏽\u200d🚀"
	for _, multi := range []bool{false, true} {
		f := newField(30)
		if multi {
			f = textfield.NewArea(theme.New(theme.Options{}))
		}
		f.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("a" + family + "b" + astronaut), Paste: true})
		for range 5 {
			f.Update(keyMsg("left"))
			rows, _ := f.Draw(30, 1, true)
			text := ansi.Strip(rows[0])
			require.Contains(t, text, "a"+family+"b"+astronaut, "as shown elsewhere, at any cursor position")
			require.Equal(t, 30, ansi.StringWidth(rows[0]))
		}
		f.Update(keyMsg("right"))
		f.Update(keyMsg("right"))
		f.Update(keyMsg("backspace"))
		require.Equal(t, "ab"+astronaut, f.Value(), "removed as one")
	}
}

func area(text string) *textfield.Field {
	f := textfield.NewArea(theme.New(theme.Options{}))
	f.SetValue(text)
	return &f
}

func paste(text string) tea.KeyMsg {
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(text), Paste: true}
}

func TestAnAreaEditsLines(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"":                          "|one\ntwo\n\nfour",
		"X":                         "X|one\ntwo\n\nfour",
		"backspace":                 "|one\ntwo\n\nfour",
		"left up ctrl+u":            "|one\ntwo\n\nfour",
		"right enter":               "o\n|ne\ntwo\n\nfour",
		"end right":                 "one\n|two\n\nfour",
		"end delete":                "one|two\n\nfour",
		"ctrl+k ctrl+k":             "|two\n\nfour",
		"down backspace":            "one|two\n\nfour",
		"down left":                 "one|\ntwo\n\nfour",
		"end down down":             "one\ntwo\n|\nfour",
		"down down down end ctrl+u": "one\ntwo\n\n|",
		"down down down down down":  "one\ntwo\n\n|four",
		"down end ctrl+w ctrl+w":    "one|\n\nfour",
		"ctrl+end right delete Z":   "one\ntwo\n\nfourZ|",
		"ctrl+end up ctrl+home Z":   "Z|one\ntwo\n\nfour",
	} {
		f := area("one\ntwo\n\nfour")
		for k := range strings.FieldsSeq(keys) {
			before := f.Value()
			require.Equal(t, f.Update(keyMsg(k)), f.Value() != before, "%s: %s", keys, k)
		}
		rows := slices.Clone(f.Rows())
		require.Equal(t, f.Value(), strings.Join(rows, "\n"))
		row, col := f.Cursor()
		rows[row] = rows[row][:col] + "|" + rows[row][col:]
		require.Equal(t, want, strings.Join(rows, "\n"), keys)
	}
	f := area("one\ntwo")
	f.MoveTo(1, 1)
	const hostile = "\u202e\u200b\x1b[2J\u0301\t\x00"
	f.Update(paste("a\r\nb\rc" + hostile))
	require.Equal(t, "one\nta\nb\nc"+hostile+"wo", f.Value())
	f.Update(keyMsg("X"))
	require.Equal(t, "one\nta\nb\nc"+hostile+"Xwo", f.Value())
}

// BenchmarkLargeText measures a typed letter and its frame in a megabyte.
func BenchmarkLargeText(b *testing.B) {
	line := strings.Repeat(`{"key":"value","n":1},`, 50_000)
	for name, text := range map[string]string{
		"one line": line, "words": strings.Repeat("x", 1<<20), "lines": strings.ReplaceAll(line, "},", "},\n"),
		"marks": strings.Repeat("\u0301", 1<<18), "controls": strings.Repeat("\u202e\x01", 1<<18),
	} {
		b.Run(name, func(b *testing.B) {
			f := area("")
			f.Update(paste(text))
			for b.Loop() {
				f.Update(keyMsg("X"))
				f.Draw(100, 30, true)
			}
		})
	}
}

func TestACursorIsSeenWhereNothingButCharactersIsShown(t *testing.T) {
	t.Parallel()
	f := textfield.New(theme.New(theme.Options{Getenv: func(name string) string { return map[string]string{"TERM": "dumb"}[name] }}))
	f.SetValue("a b")
	require.Equal(t, "a b_", f.View())
	f.Update(keyMsg("left"))
	f.Update(keyMsg("left"))
	require.Equal(t, "a_b", f.View())
}

func TestNamesOfKeysTypedFastAreText(t *testing.T) {
	t.Parallel()
	f := newField(0)
	for _, name := range []string{"end", "home", "up", "enter", "ctrl+u", "left"} {
		f.SetValue("a")
		require.True(t, f.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}))
		require.Equal(t, "a"+name, f.Value())
	}
}

func TestALineShowsItsCursorInItsWidth(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("0123456789", 9), strings.Repeat("世\u202e", 40), hostileText + hostileText + hostileText, ""} {
		for _, w := range []int{1, 2, 8, 9, 20, 300} {
			f := newField(w)
			f.SetValue(text)
			for _, k := range []string{"", "left", "left", "home", "right", "end", "backspace"} {
				f.Update(keyMsg(k))
				view := f.View()
				require.Contains(t, view, "\x1b[7m")
				plain := ansi.Strip(view)
				require.Equal(t, termtext.Line(plain), plain, "%q", view)
				if w >= 12 {
					require.LessOrEqual(t, ansi.StringWidth(view), w, "%q %s", text, k)
					require.Less(t, f.Column(), w)
				}
			}
		}
	}
	f := newField(12)
	f.SetValue("0123456789abcdef")
	require.Equal(t, "…789abcdef\x1b[7m \x1b[m", f.View())
	f.Update(keyMsg("home"))
	require.Equal(t, 0, f.Column())
	require.True(t, strings.HasPrefix(f.View(), "\x1b[7m0\x1b[m123456789"), f.View())
}

func FuzzText(f *testing.F) {
	f.Add(hostileText, "x\u2066", []byte{0, 1, 2, 3, 4})
	f.Fuzz(func(t *testing.T, text, paste string, keys []byte) {
		in := newField(20)
		in.SetValue(text)
		require.Equal(t, text, in.Value())
		if utf8.ValidString(paste) {
			in.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(paste), Paste: true})
		}
		names := []string{"left", "right", "home", "end", "backspace", "ctrl+u", "q"}
		for _, b := range keys[:min(len(keys), 32)] {
			in.Update(keyMsg(names[int(b)%len(names)]))
			plain := ansi.Strip(in.View())
			require.Equal(t, termtext.Line(plain), plain)
		}
	})
}
