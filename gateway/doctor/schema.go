package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"goblin/registry/rawjson"
)

// SchemaFault is a defect of a tool's schema. If Broken is set, the schema is invalid;
// otherwise some model APIs reject it.
type SchemaFault struct {
	Text     string
	Broken   bool
	Required bool // a required name is missing from the properties
	Nested   bool // nested too deeply, or too large
}

const (
	maxFaults = 5  // of one tool
	maxDeep   = 32 // nested schemas
	maxSchema = 1 << 20
)

var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// SchemaFaults returns the first defects of a tool's schemas.
func SchemaFaults(def []byte) []SchemaFault {
	var f finder
	in := rawjson.Get(def, "inputSchema")
	if in == nil {
		return []SchemaFault{{Text: "has no inputSchema", Broken: true}}
	}
	f.root("inputSchema", in)
	if len(f.found) == 0 {
		if out := rawjson.Get(def, "outputSchema"); out != nil && string(out) != "null" {
			f.root("outputSchema", out)
		}
	}
	return f.found
}

type finder struct{ found []SchemaFault }

// note returns the added fault, which the caller may complete.
func (f *finder) note(broken bool, format string, args ...any) *SchemaFault {
	if len(f.found) == maxFaults {
		return new(SchemaFault)
	}
	f.found = append(f.found, SchemaFault{Text: fmt.Sprintf(format, args...), Broken: broken})
	return &f.found[len(f.found)-1]
}

func (f *finder) root(name string, raw []byte) {
	if len(raw) > maxSchema {
		f.note(false, "%s has %d bytes", name, len(raw)).Nested = true
		return
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		f.note(true, "%s is not JSON", name)
		return
	}
	top, ok := v.(map[string]any)
	switch kind := top["type"]; {
	case !ok:
		f.note(true, "%s is not an object", name)
		return
	case kind != "object":
		f.note(true, "%s: missing type: \"object\"", name)
		return
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		if _, ok := top[word]; ok { // https://github.com/anthropics/claude-code/issues/657
			f.note(false, "%s has %s at the top level; some model APIs reject it", name, word)
		}
	}
	f.schema(name, top, 0)
}

func (f *finder) schema(at string, v any, depth int) {
	s, ok := v.(map[string]any)
	if !ok {
		if _, all := v.(bool); !all {
			f.note(true, "%s is not a schema", at)
		}
		return
	}
	if depth > maxDeep {
		f.note(false, "%s is nested too deeply", at).Nested = true
		return
	}
	f.kind(at, s)
	properties, _ := s["properties"].(map[string]any)
	if raw, ok := s["properties"]; ok && properties == nil {
		if _, ok := raw.(map[string]any); !ok {
			f.note(true, "%s: properties is not an object", at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if strings.IndexFunc(name, isUnusual) >= 0 || name == "" || len(name) > 64 { // Anthropic requires ^[a-zA-Z0-9_.-]{1,64}$
			f.note(false, "%s: property %q has a name that some model APIs reject", at, short(name, 70))
		}
		f.schema(at+"."+short(name, 70), properties[name], depth+1)
	}
	f.required(at, s, properties)
	if items, ok := s["items"]; ok {
		f.schema(at+"[]", items, depth+1)
	}
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		list, isList := s[word].([]any)
		if _, ok := s[word]; ok && !isList {
			f.note(true, "%s: %s is not an array", at, word)
		}
		for _, one := range list {
			f.schema(at+" "+word, one, depth+1)
		}
	}
	if ref, _ := s["$ref"].(string); strings.Contains(ref, "://") {
		f.note(false, "%s refers to %s, which clients don't fetch", at, short(ref, 80))
	}
}

func isUnusual(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '-'
}

func (f *finder) kind(at string, s map[string]any) {
	var kinds []any
	switch k := s["type"].(type) {
	case nil:
		if _, ok := s["type"]; ok {
			f.note(true, "%s: type null must be quoted", at)
		}
		return
	case []any:
		kinds = k
	default:
		kinds = []any{k}
	}
	for _, k := range kinds {
		name, ok := k.(string)
		switch {
		case !ok || !slices.Contains(types, name):
			f.note(true, "%s: unknown type %s", at, short(fmt.Sprintf("%#v", k), 60))
		case name == "array" && s["items"] == nil && s["prefixItems"] == nil: // https://github.com/mark3labs/mcphost/issues/35
			f.note(false, "%s: array without items; some model APIs reject it", at)
		}
	}
}

func (f *finder) required(at string, s, properties map[string]any) {
	raw, ok := s["required"]
	if !ok {
		return
	}
	list, ok := raw.([]any)
	if !ok {
		f.note(true, "%s: required is not an array of names", at)
		return
	}
	for _, v := range list {
		name, ok := v.(string)
		if !ok {
			f.note(true, "%s: required is not an array of names", at)
			return
		}
		if _, ok := properties[name]; !ok && properties != nil {
			f.note(false, "%s requires %q, which is not in its properties", at, short(name, 70)).Required = true
		}
	}
}
