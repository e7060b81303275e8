package definition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/suggest"
)

// AppliedOverride is an override applied to one definition.
type AppliedOverride struct {
	*Override
	Fill     FixedArguments // the arguments added to calls
	Problems []string       // parts of the override that do not fit the definition
}

// Tool returns a tool's definition with the override. Its name depends on other tools and
// is not changed.
func (o *Override) Tool(item []byte) ([]byte, *AppliedOverride) {
	a := &AppliedOverride{Override: o}
	item = o.applyTexts(item)
	if len(o.Annotations) > 0 {
		annotations := rawjson.Get(item, "annotations")
		if !rawjson.IsObject(annotations) {
			annotations = []byte("{}")
		}
		for _, m := range o.Annotations {
			annotations = setMember(annotations, m.Name, m.Value)
		}
		item = setMember(item, "annotations", annotations)
	}
	if len(o.Arguments) > 0 {
		schema := rawjson.Get(item, "inputSchema")
		properties := rawjson.Get(schema, "properties")
		var known []string
		for k := range rawjson.Members(properties) {
			name, _ := rawjson.String(k)
			known = append(known, name)
		}
		for _, m := range o.Arguments {
			value, why := convertValue(rawjson.Get(properties, m.Name), m.Value)
			if !slices.Contains(known, m.Name) {
				why = "is not in the schema" + didYouMean(m.Name, known)
			}
			a.addArgument(m.Name, value, why)
		}
		if rawjson.IsObject(schema) {
			item = rawjson.Splice(item, rawjson.ReplaceEdit(item, schema, o.hideArguments(schema, properties)))
		}
	}
	return item, a
}

func (o *Override) hideArguments(schema, properties []byte) []byte {
	edits, _ := rawjson.DropMembers(schema, properties, func(k rawjson.Key) bool { return o.isFixed(k) })
	if required := rawjson.Get(schema, "required"); rawjson.IsArray(required) {
		if kept, less := filterArray(required, o.isFixed); less {
			edits = append(edits, rawjson.ReplaceEdit(schema, required, kept))
		}
	}
	slices.SortFunc(edits, func(a, b rawjson.Edit) int { return a.Start - b.Start })
	return rawjson.Splice(schema, edits...)
}

// Prompt returns a prompt's definition with the override, except for the name.
func (o *Override) Prompt(item []byte) ([]byte, *AppliedOverride) {
	a := &AppliedOverride{Override: o}
	item = o.applyTexts(item)
	if len(o.Arguments) == 0 {
		return item, a
	}
	list := rawjson.Get(item, "arguments")
	var known []string
	for e := range rawjson.Elements(list) {
		name := rawjson.GetString(e, "name")
		known = append(known, name)
	}
	for _, m := range o.Arguments {
		value, why := m.Value, ""
		if !rawjson.IsString(value) { // arguments of prompts are strings
			value = rawjson.Quote(string(value))
		}
		if !slices.Contains(known, m.Name) {
			why = "is not an argument of the prompt" + didYouMean(m.Name, known)
		}
		a.addArgument(m.Name, value, why)
	}
	if kept, less := filterArray(list, func(e []byte) bool { return o.isFixed(rawjson.Get(e, "name")) }); less {
		item = rawjson.Splice(item, rawjson.ReplaceEdit(item, list, kept))
	}
	return item, a
}

// Resource returns the definition of a resource or template with the override.
func (o *Override) Resource(item []byte) ([]byte, *AppliedOverride) {
	if o.Label != "" {
		item = setMember(item, "name", rawjson.Quote(o.Label))
	}
	return o.applyTexts(item), &AppliedOverride{Override: o}
}

func (o *Override) applyTexts(item []byte) []byte {
	if o.Title != nil {
		item = setMember(item, "title", rawjson.Quote(*o.Title))
	}
	if o.Description != nil {
		item = setMember(item, "description", rawjson.Quote(*o.Description))
	}
	return item
}

func (o *Override) isFixed(raw []byte) bool {
	name, ok := rawjson.String(raw)
	return ok && slices.ContainsFunc(o.Arguments, func(m Member) bool { return m.Name == name })
}

func (a *AppliedOverride) addArgument(name string, value []byte, why string) {
	a.Fill = append(a.Fill, Member{name, value})
	if why != "" {
		a.Problems = append(a.Problems, fmt.Sprintf("argument %q %s", name, why))
	}
}

// setMember replaces all members with this name, because readers may use the first or the
// last.
func setMember(obj []byte, name string, value []byte) []byte {
	n := 0
	for k := range rawjson.Members(obj) {
		if k.Is(name) {
			n++
		}
	}
	if n > 1 {
		obj = rawjson.RemoveMember(obj, name)
	}
	return rawjson.SetMember(obj, name, value)
}

// filterArray returns an array without the elements for which drop returns true. less
// reports whether there were any.
func filterArray(list []byte, drop func(element []byte) bool) (kept []byte, less bool) {
	kept = []byte{'['}
	for e := range rawjson.Elements(list) {
		if drop(e) {
			less = true
			continue
		}
		if len(kept) > 1 {
			kept = append(kept, ',')
		}
		kept = append(kept, e...)
	}
	return append(kept, ']'), less
}

// convertValue converts a value to the type of a property: variables in a config are
// always strings. why describes an obvious mismatch.
func convertValue(property, value []byte) (fits []byte, why string) {
	var types []string
	of := rawjson.Get(property, "type")
	if one, ok := rawjson.String(of); ok {
		types = []string{one}
	}
	for e := range rawjson.Elements(of) {
		one, _ := rawjson.String(e)
		types = append(types, one)
	}
	if len(types) == 0 || slices.Contains(types, typeOf(value)) || typeOf(value) == "integer" && slices.Contains(types, "number") {
		return value, ""
	}
	if text, ok := rawjson.String(value); ok && rawjson.Valid([]byte(text)) == nil {
		inner := []byte(strings.TrimSpace(text))
		for _, plain := range []string{"integer", "number", "boolean"} {
			if is := typeOf(inner); slices.Contains(types, plain) && (is == plain || plain == "number" && is == "integer") {
				return inner, ""
			}
		}
	}
	return value, "must be of type " + strings.Join(types, " or ") + ", not " + typeOf(value)
}

func typeOf(value []byte) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if f, err := strconv.ParseFloat(string(value), 64); err == nil && f == float64(int64(f)) {
		return "integer"
	}
	return "number"
}

func didYouMean(wrong string, known []string) string {
	f := suggest.New(wrong)
	for _, name := range known {
		f.Add(name, name)
	}
	return suggest.DidYouMean(f.Best()...)
}
