package display

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTextAndLineMakeDangerousCharactersVisible(t *testing.T) {
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

func FuzzNothingDangerousIsLeft(f *testing.F) {
	for _, s := range []string{"", "a\x1b[2J", "\xff\u202e\r\n", "\U000e0041x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, got := range []string{Text(s), Line(s)} {
			if !utf8.ValidString(got) {
				t.Fatalf("invalid UTF-8 in %q", got)
			}
			for _, r := range got {
				if r != '\n' && r != '\t' && hidden(r) {
					t.Fatalf("%U is left of %q", r, s)
				}
			}
		}
		if line := Line(s); strings.ContainsAny(line, "\n\t") || Width(Cut(line, 7)) > 7 {
			t.Fatalf("Line(%q) = %q", s, line)
		}
	})
}
