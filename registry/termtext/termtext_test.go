package termtext

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

func TestTextAndLineMakeDangerousCharactersVisible(t *testing.T) {
	five := strings.Repeat("👨\u200d", 4) + "👨"
	eight := strings.Repeat("👨\ufe0f\u200d", 7) + "👨"
	tests := []struct{ name, in, text, line string }{
		{"plain text is untouched", "héllo, 世界 🙂", "héllo, 世界 🙂", "héllo, 世界 🙂"},
		{"window title", "\x1b]0;owned\x07", `\x1b]0;owned\x07`, `\x1b]0;owned\x07`},
		{"C1 introducer", "\u009b31m", `\u009b31m`, `\u009b31m`},
		{"delete", "a\x7fb", `a\x7fb`, `a\x7fb`},
		{"right to left override", "a\u202etxt.exe", `a\u202etxt.exe`, `a\u202etxt.exe`},
		{"isolate", "\u2066x\u2069", `\u2066x\u2069`, `\u2066x\u2069`},
		{"zero width", "a\u200bb\ufeff", `a\u200bb\ufeff`, `a\u200bb\ufeff`},
		{"tags", "a\U000e0041", `a\U000e0041`, `a\U000e0041`},
		{"invalid UTF-8", "a\xff\xc3", `a\xff\xc3`, `a\xff\xc3`},
		{"a real replacement character", "\ufffd", "\ufffd", "\ufffd"},
		{"lines and tabs", "a\n\tb", "a\n\tb", `a\n\tb`},
		{"CR LF", "a\r\nb", "a\nb", `a\r\nb`},
		{"a lone CR overwrites", "good\rbad", `good\rbad`, `good\rbad`},
		{"other line breaks", "a\v\f\u0085\u2028\u2029b", `a\x0b\x0c\u0085\u2028\u2029b`, `a\x0b\x0c\u0085\u2028\u2029b`},
		{"a sentence in variation selectors", "a\U000e0158\U000e0159", `a\U000e0158\U000e0159`, `a\U000e0158\U000e0159`},
		{"bytes behind a symbol", "⚠\ufe0f\ufe0f\ufe01", `⚠\ufe0f\ufe01`, `⚠\ufe0f\ufe01`},
		{"a selector behind a letter", "a\ufe0f", `a\ufe0f`, `a\ufe0f`},
		{"the picture of a symbol", "⚠\ufe0f Careful", "⚠ Careful", "⚠ Careful"},
		{"fillers and blanks", "\u3164\uffa0\u115f\u1160\u034f\u17b4\u2800\u00ad", `\u3164\uffa0\u115f\u1160\u034f\u17b4\u2800\u00ad`, `\u3164\uffa0\u115f\u1160\u034f\u17b4\u2800\u00ad`},
		{"odd spaces", "a\u2003b\u202fc\u205fd\u1680e", `a\u2003b\u202fc\u205fd\u1680e`, `a\u2003b\u202fc\u205fd\u1680e`},
		{"usual spaces", "a\u00a0b\u3000c", "a\u00a0b\u3000c", "a\u00a0b\u3000c"},
		{"private use", "\ue000\U0010fffd", `\ue000\U0010fffd`, `\ue000\U0010fffd`},
		{"no characters", "\ufdd0\uffff\U000e0fff", `\ufdd0\uffff\U000e0fff`, `\ufdd0\uffff\U000e0fff`},
		{"scripts that need marks", "Việt हिन्दी မြွှေ့ שִׁ֣ e\u0301 \u1112\u1161\u11ab", "Việt हिन्दी မြွှေ့ שִׁ֣ e\u0301 \u1112\u1161\u11ab", "Việt हिन्दी မြွှေ့ שִׁ֣ e\u0301 \u1112\u1161\u11ab"},
		{"emoji", "👍🏽 🇩🇪 👩\u200d💻", "👍🏽 🇩🇪 👩\u200d💻", "👍🏽 🇩🇪 👩\u200d💻"},
		{"emoji joined by styles and skins", "👩\u200d❤\ufe0f\u200d👨 👩🏽\u200d🚀 👨\u200d👩\u200d👧\u200d👦", "👩\u200d❤\ufe0f\u200d👨 👩🏽\u200d🚀 👨\u200d👩\u200d👧\u200d👦", "👩\u200d❤\ufe0f\u200d👨 👩🏽\u200d🚀 👨\u200d👩\u200d👧\u200d👦"},
		{"a family of four skins", "👨🏻\u200d👩🏽\u200d👧🏿\u200d👦🏼", "👨🏻\u200d👩🏽\u200d👧🏿\u200d👦🏼", "👨🏻\u200d👩🏽\u200d👧🏿\u200d👦🏼"},
		{"a heap of marks on a family", five + strings.Repeat("\U0001e8d0", 10), five + strings.Repeat("\U0001e8d0", 3) + strings.Repeat(`\U0001e8d0`, 7), five + strings.Repeat("\U0001e8d0", 3) + strings.Repeat(`\U0001e8d0`, 7)},
		{"as many pictures as one place takes", eight, eight, eight},
		{"one more", "👨\ufe0f\u200d" + eight, eight + `\u200d👨`, eight + `\u200d👨`},
		{"one more without styles", "👨\u200d👨\u200d👨\u200d👨\u200d" + five, "👨\u200d👨\u200d👨\u200d" + five + `\u200d👨`, "👨\u200d👨\u200d👨\u200d" + five + `\u200d👨`},
		{"joiners that join nothing", "a\u200db 👩\u200d 👩\u200d\u200d💻 \u200d💻", `a\u200db 👩\u200d 👩\u200d\u200d💻 \u200d💻`, `a\u200db 👩\u200d 👩\u200d\u200d💻 \u200d💻`},
		{"a heap of marks", "a" + strings.Repeat("\u0301", 10) + "b", "a" + strings.Repeat("\u0301", 7) + `\u0301\u0301\u0301b`, "a" + strings.Repeat("\u0301", 7) + `\u0301\u0301\u0301b`},
		{"marks that join what is before the text", "\u0301\u0301a", `\u0301\u0301a`, `\u0301\u0301a`},
		{"marks that join a border", "a\n\u20e3b\t\u0301", "a\n\\u20e3b\t\\u0301", `a\n\u20e3b\t\u0301`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.text {
				t.Errorf("Text(%q)\n got %q\nwant %q", tt.in, got, tt.text)
			}
			if got := Line(tt.in); got != tt.line {
				t.Errorf("Line(%q)\n got %q\nwant %q", tt.in, got, tt.line)
			}
		})
	}
}

func TestJSONMeansTheSameAndIsHarmless(t *testing.T) {
	for in, want := range map[string]string{
		`{"a": "héllo 🙂 \u001b"}`:          `{"a": "héllo 🙂 \u001b"}`,
		"{\n\t\"a\":\r\n 1}":               "{\n\t\"a\": \n 1}",
		"[\"\u009b31m\x7f\"]":              `["\u009b31m\u007f"]`,
		"[\"a\u202eb\u200b\"]":             `["a\u202eb\u200b"]`,
		"{\"\U000e0041\": \"\U000e0042\"}": `{"\udb40\udc41": "\udb40\udc42"}`,
		"[\"a\xffb\"]":                     `["a\ufffdb"]`,
	} {
		got := JSON(in)
		if got != want {
			t.Errorf("JSON(%q)\n got %q\nwant %q", in, got, want)
		}
		var before, after any
		if json.Unmarshal([]byte(in), &before) != nil || json.Unmarshal([]byte(got), &after) != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("JSON(%q) is %v, and was %v", in, after, before)
		}
	}
}

func TestCutAndPadCountCells(t *testing.T) {
	tests := []struct {
		in   string
		most int
		want string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"世界世界", 5, "世界…"},
		{"世界世界", 4, "世…"},
		{"e\u0301a", 2, "e\u0301a"},
		{"abc", 0, ""},
		{"abc", 1, "…"},
	}
	for _, tt := range tests {
		if got := Cut(tt.in, tt.most); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.in, tt.most, got, tt.want)
		}
	}
	if got := Pad("世", 4); got != "世  " {
		t.Errorf("Pad = %q", got)
	}
	if got := FirstLine("\n  one \ntwo"); got != "one" {
		t.Errorf("FirstLine = %q", got)
	}
}

// dangerous reports whether a rune must not be written to a terminal, by the tables of
// Unicode.
func dangerous(r rune) bool {
	switch r {
	case ' ', '\u00a0', '\u3000':
		return false
	}
	defaultIgnorable := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector)
	category := unicode.In(r, unicode.C, unicode.Z)
	assigned := unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
	return defaultIgnorable || category || !assigned || r == 0x2800 || unicode.In(r, unicode.Bidi_Control, unicode.Join_Control, unicode.Noncharacter_Code_Point)
}

func TestEveryCharacterThatHidesIsMadeVisible(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		alike := 0x34000 < r && r < 0xe0000 || r > 0xe2000 // unassigned or private use
		if alike && r%97 != 0 || !utf8.ValidRune(r) || !dangerous(r) {
			continue
		}
		for _, around := range [][2]string{{"", ""}, {"a", "b"}, {"⚠", "⚠"}, {"世", ""}} {
			in := around[0] + string(r) + around[1]
			line, text := Line(in), Text(in)
			if strings.ContainsRune(line, r) || r != '\n' && r != '\t' && strings.ContainsRune(text, r) {
				t.Fatalf("%U is left in %q", r, in)
			}
			seen := r == '\ufe0f' && around[0] == "⚠"
			if !seen && len(line) < len(around[0]+around[1])+2 {
				t.Fatalf("%U is lost in %q", r, line)
			}
		}
	}
}

// withoutJoints removes the characters that join pictures.
func withoutJoints(s string) string {
	var out strings.Builder
	for s != "" {
		cluster, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		for i, r := range cluster {
			if !isJoiner(cluster, i, r) {
				out.WriteRune(r)
			}
		}
		s = s[len(cluster):]
	}
	return out.String()
}

func FuzzNothingDangerousIsLeft(f *testing.F) {
	for _, s := range []string{
		"", "a\x1b[2J", "\xff\u202e\r\n", "\U000e0041x", "e" + strings.Repeat("\u0301\u0903", 9), "\u1100\u1100\u1161\u11a8",
		strings.Repeat("👨\u200d", 9) + "👨", "👨🏻\u200d👩\ufe0f\u200d👧" + strings.Repeat("\U0001e8d0", 9), "क्ष्क्ष्क्ष्क्ष्क्ष", strings.Repeat("\u0d4e", 20), "🇩🇪🇩👍🏽🏽", "⚠\ufe0f\ufe0f", "\uff9e\u0e33",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Text(s), Line(s), JSON(s)} {
			for _, r := range withoutJoints(got) {
				if r != '\n' && r != '\t' && dangerous(r) {
					t.Fatalf("%U is left of %q", r, s)
				}
			}
			for rest := got; rest != ""; {
				cluster, _ := ansi.FirstGraphemeCluster(rest, ansi.GraphemeWidth)
				if utf8.RuneCountInString(withoutJoints(cluster)) > maxCluster+1 { // some letters join the next character, even an escape
					t.Fatalf("%q is left of %q", cluster, s)
				}
				rest = rest[len(cluster):]
			}
		}
		for _, got := range []string{Text(s), Line(s)} {
			if !utf8.ValidString(got) {
				t.Fatalf("invalid UTF-8 in %q", got)
			}
			if again := Text(got); again != got {
				t.Fatalf("%q is not %q", again, got)
			}
		}
		line := Line(s)
		if strings.ContainsAny(line, "\n\t") || Width(line) != ansi.StringWidth(line) {
			t.Fatalf("Line(%q) = %q", s, line)
		}
		if cut := Cut(line, 7); ansi.StringWidth(cut) > 7 || ansi.StringWidth(line) <= 7 && cut != line {
			t.Fatalf("Cut(%q) = %q", line, cut)
		}
		if joined := "|" + line; ansi.StringWidth(joined) != 1+ansi.StringWidth(line) {
			t.Fatalf("%q joins what is before it", line)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for name, s := range map[string]string{
		"ASCII": strings.Repeat("The quick brown fox. ", 5000), "CJK": strings.Repeat("世界您好", 9000),
		"marks": strings.Repeat("\u0301", 50_000), "conjuncts": strings.Repeat("क्", 20_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				Text(s)
			}
		})
	}
}

func TestWordsForShells(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"npx": "npx", "@a/b@1.2": "@a/b@1.2", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$(rm)": "'$(rm)'", "é": "'é'",
		"a\nb": `$'a\012b'`, "\x1b[2J": `$'\033[2J'`,
		"it's\na\\b": `$'it\047s\012a\134b'`, "=ls": "'=ls'", `a\b`: `'a\b'`, `a\'`: `'a'\\''\'''`, "\xff": `$'\377'`, "a\u2028b": `$'a\342\200\250b'`, "~": "'~'",
	} {
		require.Equal(t, want, QuoteWord(word))
	}
}

func TestDurationsAndSizesHaveThreeDigits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0 ms", time.Microsecond: "<0.1 ms", 991 * time.Microsecond: "1.0 ms", 9960 * time.Microsecond: "10 ms",
		671 * time.Millisecond: "671 ms", 999_600 * time.Microsecond: "1.0 s", 2050 * time.Millisecond: "2.1 s",
		9960 * time.Millisecond: "10 s", 44_600 * time.Millisecond: "45 s", 59_900 * time.Millisecond: "1 min", 6 * time.Minute: "6 min",
	} {
		require.Equal(t, want, Duration(d), d)
	}
	for n, want := range map[int64]string{
		-1: "", 999: "999 B", 1000: "1.0 kB", 20_260: "20.3 kB", 99_960: "100 kB", 999_600: "1.0 MB", 150_900_000: "151 MB", 2e9: "2.0 GB", 3e13: "30000 GB",
	} {
		require.Equal(t, want, Size(n), n)
	}
	require.Empty(t, Millis(0))
	require.Equal(t, "1.5 s", Millis(1500))
}
