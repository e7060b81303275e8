package command

import (
	"fmt"
	"strings"

	"goblin/gateway/display"
	"goblin/registry/rawjson"
)

// Bounds of what describe prints of one schema.
const (
	maxFields     = 500
	maxFieldDepth = 5
	maxKinds      = 5000 // types, alternatives included
	maxValue      = 200  // cells of a value
	maxNameCells  = 30   // longer names do not shift the other lines
	maxEnum       = 50   // values of an enum
)

// field is an argument of a tool or prompt, or a member of a result.
type field struct {
	name, kind  string
	required    bool
	notes       []string // such as its default
	description string
}

// section writes fields under a heading, if there are any.
func (l *lines) section(heading string, fields []field) {
	if len(fields) == 0 {
		return
	}
	fmt.Fprintf(l, "\n%s:\n", heading)
	width := 0
	for i := range fields {
		fields[i].name = display.Name(fields[i].name)
		width = max(width, min(display.Width(fields[i].name), maxNameCells))
	}
	for _, f := range fields {
		about := []string{f.kind}
		if f.required {
			about = append(about, "required")
		}
		fmt.Fprintf(l, "  %s  %s\n", display.Pad(f.name, width), display.Line(strings.Join(append(about, f.notes...), ", ")))
		if f.description == "" {
			continue
		}
		for line := range strings.Lines(strings.TrimSpace(f.description)) {
			fmt.Fprintf(l, "      %s\n", display.Line(strings.TrimRight(line, "\r\n")))
		}
	}
}

// hints lists the annotations of a tool that are set.
func hints(definition []byte) string {
	annotations := rawjson.Get(definition, "annotations")
	var all []string
	for _, h := range []struct{ key, yes, no string }{
		{"readOnlyHint", "read-only", "writes"}, {"destructiveHint", "destructive", "not destructive"},
		{"idempotentHint", "idempotent", "not idempotent"}, {"openWorldHint", "open world", "closed world"},
	} {
		switch string(rawjson.Get(annotations, h.key)) {
		case "true":
			all = append(all, h.yes)
		case "false":
			all = append(all, h.no)
		}
	}
	return strings.Join(all, ", ")
}

// text returns a string member of an object, or "".
func text(object []byte, name string) string {
	s, _ := rawjson.String(rawjson.Get(object, name))
	return s
}

// promptFields returns the arguments of a prompt.
func promptFields(definition []byte) (all []field) {
	for arg := range rawjson.Elements(rawjson.Get(definition, "arguments")) {
		if len(all) == maxFields {
			break
		}
		all = append(all, field{
			name: text(arg, "name"), kind: "string", required: string(rawjson.Get(arg, "required")) == "true",
			description: text(arg, "description"),
		})
	}
	return all
}

// templateFields returns the variables of a URI template.
func templateFields(template string) (all []field) {
	for _, part := range strings.Split(template, "{")[1:] {
		expression, _, ok := strings.Cut(part, "}")
		if !ok {
			continue
		}
		for name := range strings.SplitSeq(strings.TrimLeft(expression, "+#./;?&"), ",") {
			name, _, _ = strings.Cut(strings.TrimSuffix(name, "*"), ":")
			if name != "" && len(all) < maxFields {
				all = append(all, field{name: name, kind: "string"})
			}
		}
	}
	return all
}

// schemaFields returns the properties of a JSON Schema in a definition, nested ones by
// their paths.
func schemaFields(definition []byte, member string) []field {
	s := schema{root: rawjson.Get(definition, member), left: maxKinds}
	s.properties("", s.root, 0)
	return s.fields
}

// schema collects the fields of one JSON Schema.
type schema struct {
	root   []byte
	fields []field
	left   int // types that may still be read
}

// properties adds the properties of an object, in the order of the schema.
func (s *schema) properties(path string, object []byte, depth int) {
	object = s.resolve(object)
	if depth == maxFieldDepth {
		return
	}
	required := make(map[string]bool)
	for name := range rawjson.Elements(rawjson.Get(object, "required")) {
		if n, ok := rawjson.String(name); ok {
			required[n] = true
		}
	}
	for key, value := range rawjson.Members(rawjson.Get(object, "properties")) {
		if len(s.fields) == maxFields {
			return
		}
		name := string(key.Name())
		one := s.resolve(value)
		s.fields = append(s.fields, field{
			name: path + name, kind: s.kind(one, 0), required: required[name], notes: notes(one), description: text(one, "description"),
		})
		s.properties(path+name+".", one, depth+1)
		s.properties(path+name+"[].", rawjson.Get(one, "items"), depth+1)
	}
}

// resolve follows a reference within the schema, one step only: cycles end here.
func (s *schema) resolve(value []byte) []byte {
	path, ok := strings.CutPrefix(text(value, "$ref"), "#/")
	if !ok {
		return value
	}
	to := s.root
	for name := range strings.SplitSeq(path, "/") {
		to = rawjson.Get(to, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	if !rawjson.IsObject(to) {
		return value
	}
	return to
}

// kind names the type of a value, such as "array of string".
func (s *schema) kind(value []byte, depth int) string {
	if s.left--; s.left < 0 || depth == maxFieldDepth {
		return "any"
	}
	value = s.resolve(value)
	types := rawjson.Get(value, "type")
	switch {
	case rawjson.IsString(types):
		name, _ := rawjson.String(types)
		if items := rawjson.Get(value, "items"); name == "array" && rawjson.IsObject(items) {
			return "array of " + s.kind(items, depth+1)
		}
		return name
	case rawjson.IsArray(types):
		var all []string
		for t := range rawjson.Elements(types) {
			if name, ok := rawjson.String(t); ok && len(all) < maxEnum {
				all = append(all, name)
			}
		}
		return strings.Join(all, " or ")
	}
	for _, member := range []string{"anyOf", "oneOf"} {
		var all []string
		for one := range rawjson.Elements(rawjson.Get(value, member)) {
			if len(all) < maxEnum {
				all = append(all, s.kind(one, depth+1))
			}
		}
		if len(all) > 0 {
			return strings.Join(all, " or ")
		}
	}
	return "any"
}

// notes lists the values that a property may have.
func notes(value []byte) (all []string) {
	if values := rawjson.Get(value, "enum"); rawjson.IsArray(values) {
		var some []string
		more := 0
		for v := range rawjson.Elements(values) {
			if len(some) == maxEnum {
				more++
				continue
			}
			some = append(some, shortValue(v))
		}
		note := "one of " + strings.Join(some, " | ")
		if more > 0 {
			note += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, note)
	}
	for _, n := range []struct{ key, label string }{
		{"const", "always"}, {"default", "default"}, {"format", "format"}, {"pattern", "pattern"},
		{"minimum", "minimum"}, {"maximum", "maximum"}, {"minLength", "minimum length"}, {"maxLength", "maximum length"},
		{"minItems", "minimum items"}, {"maxItems", "maximum items"},
	} {
		if v := rawjson.Get(value, n.key); v != nil {
			all = append(all, n.label+" "+shortValue(v))
		}
	}
	return all
}

// shortValue is a JSON value in one short line.
func shortValue(v []byte) string {
	return display.Cut(display.Line(string(rawjson.OneLine(v))), maxValue)
}
