package theme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestThemeFollowsTheTerminal(t *testing.T) {
	for _, c := range []struct {
		name    string
		o       Options
		theme   string
		colours bool
		ascii   bool
	}{
		{"a terminal of today", Options{Getenv: env("TERM", "xterm-256color", "LANG", "en_US.UTF-8")}, "auto", true, false},
		{"NO_COLOR", Options{Theme: "dark", Getenv: env("TERM", "xterm-256color", "NO_COLOR", "1")}, "none", false, false},
		{"an empty NO_COLOR counts as none", Options{Theme: "dark", Getenv: env("TERM", "xterm-256color", "NO_COLOR", "")}, "dark", true, false},
		{"dumb", Options{Theme: "light", Getenv: env("TERM", "dumb")}, "none", false, true},
		{"another character set", Options{Getenv: env("TERM", "xterm", "LC_ALL", "de_DE.ISO-8859-1")}, "auto", true, true},
		{"LC_ALL goes before LANG", Options{Getenv: env("TERM", "xterm", "LC_ALL", "C.UTF-8", "LANG", "C")}, "auto", true, false},
		{"ASCII wanted", Options{ASCII: true, Getenv: env("TERM", "xterm", "LANG", "C.UTF-8")}, "auto", true, true},
		{"an unknown theme", Options{Theme: "pink", Getenv: env("TERM", "xterm")}, "auto", true, false},
		{"none", Options{Theme: "none", Getenv: env("TERM", "xterm")}, "none", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := New(c.o)
			require.Equal(t, c.theme, l.Variant)
			require.Equal(t, c.ascii, l.ASCII)
			require.Equal(t, c.colours, strings.Contains(string(l.Good), "3"), "%q", l.Good)
		})
	}
}

func TestAutoTakesMoreColoursOnlyWhereTheBackgroundIsKnown(t *testing.T) {
	e := env("TERM", "xterm-256color")
	require.Equal(t, sixteen, New(Options{Getenv: e}).Palette)
	require.Equal(t, dark, New(Options{Getenv: e, Background: "dark"}).Palette)
	require.Equal(t, light, New(Options{Getenv: e, Background: "light"}).Palette)
	require.Equal(t, sixteen, New(Options{Getenv: env("TERM", "xterm"), Background: "dark"}).Palette, "sixteen colours are all there are")
}

// Every kind of theme distinguishes these, except the one for dumb terminals.
func TestWhatIsSelectedIsVisibleInEachTheme(t *testing.T) {
	for _, theme := range Themes() {
		l := New(Options{Theme: theme, Getenv: env("TERM", "xterm-256color")})
		require.NotEqual(t, "row", l.Row("row", true), theme)
		require.NotEmpty(t, l.Match, theme)
		require.NotEmpty(t, l.Accent, theme)
	}
}

// common lists the characters beyond ASCII that the UI draws itself. All of them are one
// cell wide and in DejaVu Sans Mono (fc-query --format=%{charset}). Missing ones would be
// drawn as boxes. Check that font before adding one.
const common = "¤·×Δ•…←→↑↓─│├┤┼╭╮╯╰▀▁▂▃▄▅▆▇█▌▎░▒▓▪▸▾○◌●◐◑◒◓◇☐✓✗"

func TestEveryCharacterOfTheScreenIsInCommonFonts(t *testing.T) {
	found := map[rune]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && (text.Kind == token.STRING || text.Kind == token.CHAR) {
				for _, r := range text.Value {
					if r > '~' {
						found[r] = true
						require.Contains(t, common, string(r), "%q in %s", r, path)
					}
				}
			}
			return true
		})
		return nil
	}))
	for _, r := range common {
		require.True(t, found[r], "%q is no longer drawn", r)
		require.Equal(t, 1, ansi.StringWidth(string(r)), "%q", r)
	}
	for _, frame := range New(Options{}).Spinner().Spinner.Frames {
		require.Contains(t, common, frame)
	}
}

func TestSparksGrowWithTheirValues(t *testing.T) {
	l, plain := New(Options{}), New(Options{ASCII: true})
	require.Equal(t, "▁▂▅█", l.Spark([]float64{0, 0.001, 4, 7}), "a small value differs from zero")
	require.Equal(t, "_.=#", plain.Spark([]float64{0, 0.001, 4, 7}))
	require.Empty(t, l.Spark([]float64{0, 0}), "nothing to show")
	require.Empty(t, l.Spark(nil))
}

func FuzzCells(f *testing.F) {
	f.Add("plain", uint8(3))
	f.Add("猫🐈 and more", uint8(4))
	f.Add("#\ufe0f\u20e3 keycap", uint8(1))
	f.Add("\x1b[1mbold\x1b[m", uint8(2))
	f.Fuzz(func(t *testing.T, s string, n uint8) {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
			return r < ' ' || unicode.Is(unicode.Prepended_Concatenation_Mark, r) || r >= 0x7f && r < 0xa0 || r == '\u00ad'
		}) {
			return // control characters never get here
		}
		if first, _ := utf8.DecodeRuneInString(s); ansi.StringWidth("x"+string(first)) < 2 || ansi.StringWidth("│"+string(first)) < 2 || unicode.Is(unicode.M, first) {
			return // nor do marks without a letter
		}
		w := int(n)
		for _, l := range []*Theme{New(Options{}), New(Options{ASCII: true})} {
			for name, got := range map[string]string{"Fit": l.Fit(s, w), "Middle": l.Middle(s, w), "Right": l.Right(s, w), "Sides": l.Sides(s, "end", w)} {
				require.Equal(t, w, ansi.StringWidth(got), "%s(%q, %d) = %q", name, s, w, got)
			}
			if w >= 4 {
				for _, line := range l.Frame([]string{s}, s, "r", w, 3, "") {
					require.Equal(t, w, ansi.StringWidth(line), "Frame %q", line)
				}
			}
		}
	})
}

func TestMiddleKeepsTheNameAtTheEnd(t *testing.T) {
	l := New(Options{})
	require.Equal(t, "/srv/a/b…eadme.md", l.Middle("/srv/a/b/c/d/readme.md", 17))
	const uri = "mcp://files/file:///srv/a/b/c/readme.md"
	require.Equal(t, "files/file:///srv…c/readme.md", l.Middle(uri, 29))
	require.Equal(t, "files/file:/…dme.md", l.Middle(uri, 19))
	require.Equal(t, "read files/file…e.md", l.Middle("read "+uri, 20))
	require.Equal(t, "a-l…rver/x:/…d.md", l.Middle("mcp://a-long-server/x://y/z/d.md", 17))
	require.Equal(t, "水果店/价格://…果/d.md", l.Middle("mcp://水果店/价格://苹果苹果苹果/d.md", 22))
	require.Equal(t, "short   ", l.Middle("short", 8))
}

func TestOverlayCutsWideCharactersAtEveryPlace(t *testing.T) {
	below := "│ 写真/猫🐈.png a\u0301\x1b[1m🐈\x1b[m│"
	for x := range ansi.StringWidth(below) - 2 {
		got := Overlay([]string{below}, []string{"XX"}, x, 0)[0]
		require.Equal(t, ansi.StringWidth(below), ansi.StringWidth(got), "at %d: %q", x, got)
	}
}

func TestOverlayCoversExactlyItsBox(t *testing.T) {
	screen := []string{"\x1b[1maaaaaaaaaa\x1b[m", "猫猫猫猫猫", "cccccccccc"}
	got := Overlay(screen, []string{"XXX", "YYY"}, 3, 1)
	for _, line := range got {
		require.Equal(t, 10, ansi.StringWidth(line), "%q", line)
	}
	require.Equal(t, "cccYYYcccc", ansi.Strip(got[2]))
}
