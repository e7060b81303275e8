package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goblin/gateway/config"
	"goblin/registry/termtext"
)

func TestColorsOfTheUI(t *testing.T) {
	c, err := config.Parse("c.yaml", []byte("servers: {a: {command: x}}\ntui:\n  colors:\n    accent: \"#7AF\"\n    bad: 9\n    good: {dark: bright-green, light: \"22\"}\n"), env)
	require.NoError(t, err)
	require.Empty(t, c.Warnings)
	require.Equal(t, map[string]termtext.StyleColor{
		"accent": {Dark: "#77aaff", Light: "#77aaff"}, "bad": {Dark: "9", Light: "9"}, "good": {Dark: "10", Light: "22"},
	}, c.TUI.Colors)
}

func TestMistakesInColors(t *testing.T) {
	for text, want := range map[string]string{
		"acent: 9":                     `c.yaml:3: unknown color name "acent" in tui.colors; did you mean "accent"?`,
		"accent: blurple":              `c.yaml:3: "accent" in tui.colors: "blurple" is not a color; write "#7aa2f7", a number from 0 to 255, or a name such as bright-blue`,
		"accent: bright-bleu":          `did you mean "bright-blue"?`,
		"accent: 256":                  `"256" is not a color`,
		"accent: #7aa2f7":              `"accent" in tui.colors is empty; a color such as "#7aa2f7" needs quotes`,
		"accent: [1]":                  `"accent" in tui.colors must be a color, not a list`,
		"accent: {dark: x}":            `"dark" in tui.colors.accent: "x" is not a color`,
		"accent: {drak: 1}":            `unknown key "drak" in tui.colors.accent; did you mean "dark"?`,
		"accent: \"\\e[31m\"":          `"\x1b[31m" is not a color`,
		"accent: ${HOME}":              `"${HOME}" is not a color`,
		"accent: 1\n    accent: 2":     `duplicate key "accent"`,
		"selected-unfocused: \"#000\"": `did you mean "selected_unfocused"?`,
	} {
		_, err := config.Parse("c.yaml", []byte("tui:\n  colors:\n    "+text+"\n"), env)
		require.ErrorContains(t, err, want, text)
	}
}

func TestColorsThatAreHardToRead(t *testing.T) {
	for text, want := range map[string]string{
		"theme: dark\n  colors: {bad: \"#333333\"}":        `"bad" in tui.colors is hard to read: its contrast is 1.3:1 with the dark theme; text needs 4.5:1`,
		"colors: {bad: \"#333333\"}":                       "",
		"colors: {bad: \"#808080\"}":                       `4.2:1 with the dark theme and 3.9:1 with the light theme`,
		"colors: {bad: {dark: \"#333\", light: \"#333\"}}": "",
		"colors: {bad: {light: \"#eeeeee\"}}":              `1.2:1 with the light theme`,
		"colors: {bad: 1}":                                 "",
		"colors: {border: \"#222222\"}\n  theme: dark":     "",
		"colors: {selected: \"#eeeeee\"}\n  theme: dark":   `"selected" in tui.colors is hard to read: its contrast is 1.3:1`,
		"colors: {selected: \"#303030\"}\n  theme: dark":   "",
		"colors: {bad: \"#333333\"}\n  theme: none":        "",
	} {
		c, err := config.Parse("c.yaml", []byte("servers: {a: {command: x}}\ntui:\n  "+text+"\n"), env)
		require.NoError(t, err, text)
		if want == "" {
			require.Empty(t, c.Warnings, text)
			continue
		}
		require.Len(t, c.Warnings, 1, text)
		require.Contains(t, c.Warnings[0].Text, want)
	}
}
