package termtext

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// StyleColor is the color of a style on a dark and on a light background. The colors have
// the format of [ParseColor], or are "" for the theme's own.
type StyleColor struct {
	Dark  string `json:"dark,omitempty" yaml:"dark,omitempty"`
	Light string `json:"light,omitempty" yaml:"light,omitempty"`
}

// StyleNames returns the names of the styles that have a color.
func StyleNames() []string {
	return []string{
		"title", "accent", "border", "key", "dim", "selected", "selected_unfocused", "match", "changed", "stale",
		"good", "warn", "bad", "name", "string", "number", "word", "punct", "code", "heading", "link",
	}
}

// Backgrounds lists the styles that color the background of a row.
var Backgrounds = []string{"selected", "selected_unfocused"}

var colorNames = []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// ColorNames returns the names of the terminal's own colors, in order.
func ColorNames() []string {
	all := slices.Clone(colorNames)
	for _, name := range colorNames {
		all = append(all, "bright-"+name)
	}
	return all
}

// ColorPattern matches the colors that [ParseColor] accepts, except names.
const ColorPattern = `^(#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})|[0-9]{1,3})$`

var isColor = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(ColorPattern) })

// ParseColor returns a color as "#rrggbb" or as a number of the 256 colors of terminals.
func ParseColor(text string) (color string, ok bool) {
	if at := slices.Index(ColorNames(), strings.ToLower(text)); at >= 0 {
		return strconv.Itoa(at), true
	}
	if !isColor().MatchString(text) {
		return "", false
	}
	hex, isHex := strings.CutPrefix(strings.ToLower(text), "#")
	switch n, _ := strconv.Atoi(text); { // 0 for hexadecimal colors
	case isHex && len(hex) == 3:
		return "#" + strings.Repeat(hex[:1], 2) + strings.Repeat(hex[1:2], 2) + strings.Repeat(hex[2:], 2), true
	case isHex:
		return "#" + hex, true
	case n > 255:
		return "", false
	default:
		return strconv.Itoa(n), true
	}
}

// The colors that contrast is computed against.
const (
	DarkBackground  = "#1e1e1e"
	LightBackground = "#ffffff"
	// MinContrast is the contrast of readable text (WCAG 2.2, 1.4.3).
	MinContrast = 4.5
)

// Contrast returns the contrast ratio of two colors, from 1 to 21. It returns false if a
// color is one of the first 16, because each terminal chooses those.
func Contrast(a, b string) (ratio float64, known bool) {
	x, xKnown := luminance(a)
	y, yKnown := luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05), xKnown && yKnown
}

// luminance returns the relative luminance of a color, as in WCAG 2.2.
func luminance(color string) (l float64, known bool) {
	rgb, known := ColorRGB(color)
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		v := float64(rgb[i]) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		l += weight * v
	}
	return l, known
}

// ColorRGB returns the parts of a color from [ParseColor]. It returns false for the first
// 16, because each terminal chooses those.
func ColorRGB(color string) (rgb [3]uint8, known bool) {
	if n, err := strconv.Atoi(color); err == nil {
		if n < 16 {
			return rgb, false
		}
		return paletteColor(n), true
	}
	_, err := fmt.Sscanf(color, "#%02x%02x%02x", &rgb[0], &rgb[1], &rgb[2])
	return rgb, err == nil
}

// paletteColor returns a color from 16 to 255 as xterm defines it.
func paletteColor(n int) [3]uint8 {
	if n >= 232 {
		v := uint8(8 + (n-232)*10)
		return [3]uint8{v, v, v}
	}
	steps := [...]uint8{0, 95, 135, 175, 215, 255}
	n -= 16
	return [3]uint8{steps[n/36], steps[n/6%6], steps[n%6]}
}
