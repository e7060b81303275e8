package definition

import (
	"fmt"
	"strings"

	"goblin/registry/rawjson"
)

// Limits for the fields of one schema.
const (
	maxFields     = 500
	maxFieldDepth = 5
	maxKinds      = 5000 // types, including alternatives
	maxEnum       = 50   // values of an enum
)

// Field is an argument of a tool or prompt, or a member of a result. All texts are
// untrusted.
type Field struct {
	Name        string // nested fields by path, such as "items[].id"
	Type        string // such as "array of string"
	Required    bool
	Notes       []string // such as the default
	Description string
}

// Hints lists the annotations of a tool that are set.
func Hints(definition []byte) string {
	annotations := rawjson.Get(definition, "annotations")
	var all []string
	for _, h := range []struct{ key, yes, no string }{
		{"readOnlyHint", "read-only", "writes"},
		{"destructiveHint", "destructive", "not destructive"},
		{"idempotentHint", "idempotent", "not idempotent"},
		{"openWorldHint", "open world", "closed world"},
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

// PromptFields returns the arguments of a prompt.
func PromptFields(definition []byte) (all []Field) {
	for arg := range rawjson.Elements(rawjson.Get(definition, "arguments")) {
		if len(all) == maxFields {
			break
		}
		all = append(all, Field{
			Name: rawjson.GetString(arg, "name"), Type: "string", Required: string(rawjson.Get(arg, "required")) == "true",
			Description: rawjson.GetString(arg, "description"),
		})
	}
	return all
}

// TemplateFields returns the variables of a URI template.
func TemplateFields(template string) (all []Field) {
	for _, part := range strings.Split(template, "{")[1:] {
		expression, _, ok := strings.Cut(part, "}")
		if !ok {
			continue
		}
		for name := range strings.SplitSeq(strings.TrimLeft(expression, "+#./;?&"), ",") {
			name, _, _ = strings.Cut(strings.TrimSuffix(name, "*"), ":")
			if name != "" && len(all) < maxFields {
				all = append(all, Field{Name: name, Type: "string"})
			}
		}
	}
	return all
}

// SchemaFields returns the properties of the JSON Schema in a member of a definition, in
// order.
func SchemaFields(definition []byte, member string) []Field {
	s := schema{root: rawjson.Get(definition, member), budget: maxKinds}
	s.properties("", s.root, 0)
	return s.fields
}

type schema struct {
	root   []byte
	fields []Field
	budget int // types that may still be read
}

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
		s.fields = append(s.fields, Field{
			Name: path + name, Type: s.kind(one, 0), Required: required[name], Notes: notes(one), Description: rawjson.GetString(one, "description"),
		})
		s.properties(path+name+".", one, depth+1)
		s.properties(path+name+"[].", rawjson.Get(one, "items"), depth+1)
	}
}

// resolve follows a reference within the schema, one step only because of cycles.
func (s *schema) resolve(value []byte) []byte {
	path, ok := strings.CutPrefix(rawjson.GetString(value, "$ref"), "#/")
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

func (s *schema) kind(value []byte, depth int) string {
	if s.budget--; s.budget < 0 || depth == maxFieldDepth {
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

func notes(value []byte) (all []string) {
	if values := rawjson.Get(value, "enum"); rawjson.IsArray(values) {
		var some []string
		more := 0
		for v := range rawjson.Elements(values) {
			if len(some) == maxEnum {
				more++
				continue
			}
			some = append(some, string(rawjson.OneLine(v)))
		}
		note := "one of " + strings.Join(some, " | ")
		if more > 0 {
			note += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, note)
	}
	for _, n := range []struct{ key, label string }{
		{"const", "always"},
		{"default", "default"},
		{"format", "format"},
		{"pattern", "pattern"},
		{"minimum", "minimum"},
		{"maximum", "maximum"},
		{"minLength", "minimum length"},
		{"maxLength", "maximum length"},
		{"minItems", "minimum items"},
		{"maxItems", "maximum items"},
	} {
		if v := rawjson.Get(value, n.key); v != nil {
			all = append(all, n.label+" "+string(rawjson.OneLine(v)))
		}
	}
	return all
}
