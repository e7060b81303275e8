package theme

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/registry/termtext"
)

var paletteNumber = regexp.MustCompile(`[34]8;5;(\d+)m$`)

// numberOf returns the color in a style of the themes with 256 colors.
func numberOf(t *testing.T, s Style) string {
	t.Helper()
	m := paletteNumber.FindStringSubmatch(string(s))
	require.NotNil(t, m, "%q", s)
	return m[1]
}

// Text has the contrast of WCAG 2.2 on the background and on selected rows. Borders are
// no text.
func TestThemesAreReadable(t *testing.T) {
	for theme, background := range map[string]string{"dark": termtext.DarkBackground, "light": termtext.LightBackground} {
		l := New(Options{Theme: theme, Getenv: env("TERM", "xterm-256color")})
		behind := map[string]string{"background": background, "selected": numberOf(t, l.Selected), "selected without focus": numberOf(t, l.SelectedUnfocused)}
		for name, style := range l.styles() {
			if name == "border" || slices.Contains(termtext.Backgrounds, name) {
				continue
			}
			for where, color := range behind {
				ratio, known := termtext.Contrast(numberOf(t, *style), color)
				require.True(t, known, name)
				require.GreaterOrEqual(t, ratio, termtext.MinContrast, "%s: %s on %s", theme, name, where)
			}
		}
	}
}

func TestEveryStyleWithAColorHasAName(t *testing.T) {
	require.ElementsMatch(t, termtext.StyleNames(), slices.Collect(maps.Keys(new(Palette).styles())))
}

func TestColorsOfTheUser(t *testing.T) {
	colors := map[string]termtext.StyleColor{
		"accent": {Dark: "#00ff00", Light: "#00ff00"}, "selected": {Dark: "#303030", Light: "#303030"},
		"bad": {Dark: "9", Light: "1"}, "link": {Dark: "#ff0000", Light: "#ff0000"},
	}
	terminal := func(theme string, pairs ...string) *Theme {
		return New(Options{Theme: theme, Colors: colors, Getenv: env(pairs...)})
	}
	l := terminal("dark", "TERM", "xterm-256color", "COLORTERM", "truecolor")
	require.Equal(t, []Style{"\x1b[1;38;2;0;255;0m", "\x1b[48;2;48;48;48m", "\x1b[1;91m", "\x1b[4;38;2;255;0;0m"}, []Style{l.Accent, l.Selected, l.Bad, l.Link})
	require.Equal(t, dark.Good, l.Good)
	l = terminal("light", "TERM", "xterm-256color")
	require.Equal(t, []Style{"\x1b[1;38;5;46m", "\x1b[48;5;236m", "\x1b[1;31m"}, []Style{l.Accent, l.Selected, l.Bad})
	l = terminal("auto", "TERM", "xterm")
	require.Equal(t, Style("\x1b[4;91m"), l.Link, "the nearest of 16 colors")
	require.Equal(t, Style("\x1b[40m"), l.Selected)
	require.Equal(t, sixteen.Bad, l.Bad, "the background is unknown")
	for _, off := range [][]string{{"TERM", "dumb"}, {"TERM", "xterm-256color", "NO_COLOR", "1"}} {
		require.Empty(t, regexp.MustCompile(`[34]8;|\x1b\[[39]\d`).FindString(string(terminal("dark", off...).Accent)))
	}
	require.Equal(t, attributes, terminal("none", "TERM", "xterm-256color").Palette)
}

// No meaning depends on a color: states have different characters.
func TestStatesDifferByCharacter(t *testing.T) {
	for _, g := range []Glyphs{unicodeGlyphs, asciiGlyphs} {
		for _, states := range [][]string{
			{g.Up, g.Starting, g.Disabled, g.Failed},
			{g.On, g.Asked, g.Refused},
			{g.Check, g.Box, g.Failed},
			{g.New, g.Failed},
			{g.Rising, g.Falling},
		} {
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(states))), len(states), "%q", states)
		}
	}
}
