package form

import (
	"slices"
	"strconv"
	"strings"
)

// Bounds of an outline.
const (
	mostLines  = 120 // of an outline
	mostLevels = 3   // that it goes into
	mostValues = 12  // of the options that it names
)

// Line is one line of an outline: texts as the server sent them.
type Line struct{ Name, Text string }

// Outline tells what fields take and those in them: which values, formats, bounds and
// defaults.
func Outline(fields []Field) []Line { return outline(nil, fields, 0) }

func outline(lines []Line, fields []Field, depth int) []Line {
	for i := range fields {
		f := &fields[i]
		if len(lines) == mostLines {
			return append(lines, Line{"…", "and more: the definition has all"})
		}
		name := f.Name
		if f.Inline {
			name = "or"
		}
		lines = append(lines, Line{strings.Repeat("  ", depth) + name, f.told()})
		if depth+1 < mostLevels {
			lines = outline(lines, f.parts(), depth+1)
		}
		if len(lines) > mostLines {
			return lines
		}
	}
	return lines
}

// parts are the fields below one in an outline: items are told in the line of their list.
func (f *Field) parts() []Field {
	switch f.Kind {
	case Array:
		return f.items.parts()
	case Object:
		return f.Members()
	case Choice:
		alternatives := slices.Clone(f.Members())
		for i := range alternatives {
			alternatives[i].Required = false // if it is chosen
		}
		return alternatives
	}
	return nil
}

// told says in a line what a field takes.
func (f *Field) told() string {
	var parts []string
	if f.Required {
		parts = append(parts, "required")
	}
	parts = append(parts, f.kindTold())
	parts = append(parts, between(f.Min, f.Max, "")...)
	unit := " characters"
	if f.Kind != Text {
		unit = " items"
	}
	parts = append(parts, between(f.MinLen, f.MaxLen, unit)...)
	if f.Pattern != "" {
		parts = append(parts, "matches "+f.Pattern)
	}
	if len(f.Default) > 0 {
		parts = append(parts, "default "+label(f.Default))
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

func (f *Field) kindTold() string {
	switch f.Kind {
	case Enum:
		if len(f.Options) == 1 {
			return "always " + f.values()
		}
		return "one of " + f.values()
	case Choice:
		return f.values()
	case Several:
		return "any of " + f.values()
	case List:
		return "list of " + (&Field{Kind: f.Item, Format: f.Format}).kindTold()
	case Array:
		return "list of " + f.items.kindTold()
	}
	if f.Format != "" && f.Kind == Text {
		return f.Format
	}
	return f.Kind.String()
}

// or stands between values.
const or = " | "

// values names the options.
func (f *Field) values() string {
	names := make([]string, 0, mostValues)
	for _, o := range f.Options[:min(len(f.Options), mostValues)] {
		names = append(names, o.Label)
	}
	text := strings.Join(names, or)
	if n := len(f.Options) - len(names); n > 0 {
		text += " and " + strconv.Itoa(n) + " more"
	}
	return text
}
