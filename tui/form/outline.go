package form

import (
	"slices"
	"strconv"
	"strings"
)

// Limits of an outline.
const (
	maxOutlineLines  = 120
	maxOutlineLevels = 3  // nested levels
	maxOutlineValues = 12 // options listed per field
)

// Line is one line of an outline. Its texts are untrusted.
type Line struct{ Name, Text string }

// Outline describes fields and their members: values, formats, limits and defaults.
func Outline(fields []Field) []Line { return outline(nil, fields, 0) }

func outline(lines []Line, fields []Field, depth int) []Line {
	for i := range fields {
		f := &fields[i]
		if len(lines) == maxOutlineLines {
			return append(lines, Line{"…", "more; see the definition"})
		}
		name := f.Name
		if f.Inline {
			name = "or"
		}
		lines = append(lines, Line{strings.Repeat("  ", depth) + name, f.outlineText()})
		if depth+1 < maxOutlineLevels {
			lines = outline(lines, f.outlineFields(), depth+1)
		}
		if len(lines) > maxOutlineLines {
			return lines
		}
	}
	return lines
}

// The line of a list covers its items.
func (f *Field) outlineFields() []Field {
	switch f.Kind {
	case Array:
		return f.items.outlineFields()
	case Object:
		return f.Members()
	case Choice:
		alternatives := slices.Clone(f.Members())
		for i := range alternatives {
			alternatives[i].Required = false // required only if chosen
		}
		return alternatives
	}
	return nil
}

func (f *Field) outlineText() string {
	var parts []string
	if f.Required {
		parts = append(parts, "required")
	}
	parts = append(parts, f.kindText())
	parts = append(parts, rangeText(f.Min, f.Max, "")...)
	unit := "character"
	if f.Kind != Text {
		unit = "item"
	}
	parts = append(parts, rangeText(f.MinLen, f.MaxLen, unit)...)
	if f.Pattern != "" {
		parts = append(parts, "matches "+f.Pattern)
	}
	if len(f.Default) > 0 {
		parts = append(parts, "default "+valueText(f.Default))
	}
	text := strings.Join(parts, ", ")
	about := strings.TrimSpace(f.Description)
	if about == "" && f.Title != f.Name {
		about = f.Title
	}
	if about, _, _ = strings.Cut(about, "\n"); about != "" {
		text += ": " + about
	}
	return text
}

func (f *Field) kindText() string {
	switch f.Kind {
	case Enum:
		if len(f.Options) == 1 {
			return "always " + f.optionNames()
		}
		return "one of " + f.optionNames()
	case Choice:
		return f.optionNames()
	case MultiEnum:
		return "any of " + f.optionNames()
	case List:
		return "list of " + (&Field{Kind: f.Item, Format: f.Format}).kindText()
	case Array:
		return "list of " + f.items.kindText()
	}
	if f.Format != "" && f.Kind == Text {
		return f.Format
	}
	return f.Kind.String()
}

const optionSeparator = " | "

func (f *Field) optionNames() string {
	names := make([]string, 0, maxOutlineValues)
	for _, o := range f.Options[:min(len(f.Options), maxOutlineValues)] {
		names = append(names, o.Label)
	}
	text := strings.Join(names, optionSeparator)
	if n := len(f.Options) - len(names); n > 0 {
		text += " and " + strconv.Itoa(n) + " more"
	}
	return text
}
