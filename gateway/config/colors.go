package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"goblin/registry/suggest"
	"goblin/registry/termtext"
)

func styleColors() kind[map[string]termtext.StyleColor] {
	return kind[map[string]termtext.StyleColor]{
		schema: func(map[string]termtext.StyleColor) object {
			one := object{"anyOf": []any{
				object{"enum": termtext.ColorNames()},
				object{"type": "string", "pattern": termtext.ColorPattern},
				object{"type": "integer", "minimum": 0, "maximum": 255},
			}}
			both := object{"type": "object", "additionalProperties": false, "properties": object{"dark": one, "light": one}}
			return object{
				"type": []string{"object", "null"}, "propertyNames": object{"enum": termtext.StyleNames()},
				"additionalProperties": object{"anyOf": append(slices.Clone(one["anyOf"].([]any)), both)},
			}
		},
		read: readStyleColors,
	}
}

func readStyleColors(r *reader, at keyPath, n *yaml.Node, dst *map[string]termtext.StyleColor) {
	colors := make(map[string]termtext.StyleColor)
	r.colors = make(map[string]*yaml.Node)
	for _, p := range r.pairs(at, n) {
		name := p.key.Value
		if !slices.Contains(termtext.StyleNames(), name) {
			r.fail(p.key, "unknown color name %s%s%s", quoteKey(name), at.in(), didYouMean(name, "known:", termtext.StyleNames()))
			continue
		}
		var c termtext.StyleColor
		if p.val.Kind == yaml.MappingNode {
			for _, q := range r.pairs(at.key(name), p.val) {
				switch q.key.Value {
				case "dark":
					c.Dark = r.color(at.key(name).key("dark"), q.val)
				case "light":
					c.Light = r.color(at.key(name).key("light"), q.val)
				default:
					r.unknown(at.key(name), q.key, []string{"dark", "light"})
				}
			}
		} else {
			c.Dark = r.color(at.key(name), p.val)
			c.Light = c.Dark
		}
		colors[name], r.colors[name] = c, p.key
	}
	if len(colors) > 0 {
		*dst = colors
	}
}

// color does not expand variables.
func (r *reader) color(at keyPath, n *yaml.Node) string {
	switch {
	case isNull(n):
		r.fail(n, `%s is empty; a color such as "#7aa2f7" needs quotes`, at)
		return ""
	case n.Kind != yaml.ScalarNode:
		r.fail(n, "%s must be a color, not %s", at, describe(n))
		return ""
	}
	c, ok := termtext.ParseColor(n.Value)
	if !ok {
		tail := ""
		if s := nearest(n.Value, termtext.ColorNames()); s != "" {
			tail = suggest.DidYouMean(s)
		}
		r.fail(n, `%s: %s is not a color; write "#7aa2f7", a number from 0 to 255, or a name such as bright-blue%s`, at, quote(n.Value), tail)
	}
	return c
}

// Colors of text that selected rows should suit.
const (
	darkText  = "#d0d0d0"
	lightText = "#262626"
)

// readTUI also warns of colors that are hard to read on the theme's background.
func readTUI(r *reader, at keyPath, n *yaml.Node, dst *TUI) {
	readTable(r, at, tuiKeys(), n, dst)
	for _, name := range termtext.StyleNames() {
		c, line := dst.Colors[name], r.colors[name]
		if line == nil || name == "border" { // no text
			continue
		}
		dark, light := termtext.DarkBackground, termtext.LightBackground
		if slices.Contains(termtext.Backgrounds, name) {
			dark, light = darkText, lightText
		}
		var hard []string
		check := func(theme, color, other string) {
			ratio, known := termtext.Contrast(color, other)
			if (dst.Theme == theme || dst.Theme == "auto") && color != "" && known && ratio < termtext.MinContrast {
				hard = append(hard, fmt.Sprintf("%.1f:1 with the %s theme", ratio, theme))
			}
		}
		check("dark", c.Dark, dark)
		check("light", c.Light, light)
		if len(hard) == 0 || len(hard) == 1 && c.Dark == c.Light && dst.Theme == "auto" { // it suits one of both
			continue
		}
		r.warn(line, "%s is hard to read: its contrast is %s; text needs 4.5:1", at.key("colors").key(name), strings.Join(hard, " and "))
	}
}
