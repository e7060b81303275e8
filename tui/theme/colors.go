package theme

import (
	"fmt"
	"image/color"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"goblin/registry/termtext"
)

// styles returns the styles by the names of [termtext.StyleNames].
func (p *Palette) styles() map[string]*Style {
	return map[string]*Style{
		"title": &p.Title, "accent": &p.Accent, "border": &p.Border, "key": &p.Key, "dim": &p.Dim,
		"selected": &p.Selected, "selected_unfocused": &p.SelectedUnfocused, "match": &p.Match, "changed": &p.Changed, "stale": &p.Stale,
		"good": &p.Good, "warn": &p.Warn, "bad": &p.Bad,
		"name": &p.Name, "string": &p.String, "number": &p.Number, "word": &p.Word, "punct": &p.Punct,
		"code": &p.Code, "heading": &p.Heading, "link": &p.Link,
	}
}

// recolor applies the user's colors as the terminal can draw them. On an unknown
// background, a color is used that is the same for both.
func (p *Palette) recolor(colors map[string]termtext.StyleColor, background string, colours int) {
	styles := p.styles()
	for name, c := range colors {
		text := c.Dark
		switch {
		case background == "light":
			text = c.Light
		case background != "dark" && c.Light != c.Dark:
			text = ""
		}
		if style := styles[name]; style != nil && text != "" {
			*style = style.withColor(sequence(text, colours, slices.Contains(termtext.Backgrounds, name)))
		}
	}
}

// sequence returns the parameters of an escape sequence for a color, or the nearest one
// that the terminal has.
func sequence(text string, colours int, background bool) string {
	first := 30
	if background {
		first = 40
	}
	rgb, _ := termtext.ColorRGB(text)
	exact := color.RGBA{R: rgb[0], G: rgb[1], B: rgb[2], A: 255}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil && colours > 256:
		return fmt.Sprintf("%d;2;%d;%d;%d", first+8, rgb[0], rgb[1], rgb[2])
	case err != nil && colours == 256:
		n = int(ansi.Convert256(exact))
	case err != nil || n >= 16 && colours < 256:
		n = int(ansi.Convert16(exact))
	}
	switch {
	case n < 8:
		return strconv.Itoa(first + n)
	case n < 16:
		return strconv.Itoa(first + 60 + n - 8)
	}
	return fmt.Sprintf("%d;5;%d", first+8, n)
}

// withColor replaces the color of a style. Only bold and underline stay.
func (s Style) withColor(parameters string) Style {
	var kept []string
	for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(string(s), "\x1b["), "m"), ";") {
		if part != "1" && part != "4" { // colors follow
			break
		}
		kept = append(kept, part)
	}
	return Style("\x1b[" + strings.Join(append(kept, parameters), ";") + "m")
}
