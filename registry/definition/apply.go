package definition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goblin/registry/rawjson"
	"goblin/registry/suggest"
)

// AppliedOverride is an override as it is to one definition.
type AppliedOverride struct {
	*Override
	Fill     FixedArguments // the arguments that calls get
	Problems []string       // what of the override does not fit the definition
}

// Tool is the definition of a tool under an override, but for its name, which depends on
// what else there is.
func (o *Override) Tool(item []byte) ([]byte, *AppliedOverride) {
	a := &AppliedOverride{Override: o}
	item = o.texts(item)
	if len(o.Annotations) > 0 {
		annotations := rawjson.Get(item, "annotations")
		if !rawjson.IsObject(annotations) {
			annotations = []byte("{}")
		}
		for _, m := range o.Annotations {
			annotations = set(annotations, m.Name, m.Value)
		}
		item = set(item, "annotations", annotations)
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
			value, why := fit(rawjson.Get(properties, m.Name), m.Value)
			if !slices.Contains(known, m.Name) {
				why = "is not in the schema" + meant(m.Name, known)
			}
			a.fills(m.Name, value, why)
		}
		if rawjson.IsObject(schema) {
			item = rawjson.Splice(item, rawjson.ReplaceEdit(item, schema, o.hide(schema, properties)))
		}
	}
	return item, a
}

// hide is an input schema without the arguments that are filled in.
func (o *Override) hide(schema, properties []byte) []byte {
	edits, _ := rawjson.DropMembers(schema, properties, func(k rawjson.Key) bool { return o.fills(k) })
	if required := rawjson.Get(schema, "required"); rawjson.IsArray(required) {
		if kept, less := without(required, o.fills); less {
			edits = append(edits, rawjson.ReplaceEdit(schema, required, kept))
		}
	}
	slices.SortFunc(edits, func(a, b rawjson.Edit) int { return a.Start - b.Start })
	return rawjson.Splice(schema, edits...)
}

// Prompt is the definition of a prompt under an override, but for its name.
func (o *Override) Prompt(item []byte) ([]byte, *AppliedOverride) {
	a := &AppliedOverride{Override: o}
	item = o.texts(item)
	if len(o.Arguments) == 0 {
		return item, a
	}
	list := rawjson.Get(item, "arguments")
	var known []string
	for e := range rawjson.Elements(list) {
		name, _ := rawjson.String(rawjson.Get(e, "name"))
		known = append(known, name)
	}
	for _, m := range o.Arguments {
		value, why := m.Value, ""
		if !rawjson.IsString(value) { // those of prompts are texts
			value = rawjson.Quote(string(value))
		}
		if !slices.Contains(known, m.Name) {
			why = "is not among those of the prompt" + meant(m.Name, known)
		}
		a.fills(m.Name, value, why)
	}
	if kept, less := without(list, func(e []byte) bool { return o.fills(rawjson.Get(e, "name")) }); less {
		item = rawjson.Splice(item, rawjson.ReplaceEdit(item, list, kept))
	}
	return item, a
}

// Resource is the definition of a resource or template under an override.
func (o *Override) Resource(item []byte) ([]byte, *AppliedOverride) {
	if o.Label != "" {
		item = set(item, "name", rawjson.Quote(o.Label))
	}
	return o.texts(item), &AppliedOverride{Override: o}
}

func (o *Override) texts(item []byte) []byte {
	if o.Title != nil {
		item = set(item, "title", rawjson.Quote(*o.Title))
	}
	if o.Description != nil {
		item = set(item, "description", rawjson.Quote(*o.Description))
	}
	return item
}

// fills reports whether a raw string names an argument that is filled in.
func (o *Override) fills(raw []byte) bool {
	name, ok := rawjson.String(raw)
	return ok && slices.ContainsFunc(o.Arguments, func(m Member) bool { return m.Name == name })
}

func (a *AppliedOverride) fills(name string, value []byte, why string) {
	a.Fill = append(a.Fill, Member{name, value})
	if why != "" {
		a.Problems = append(a.Problems, fmt.Sprintf("argument %q %s", name, why))
	}
}

// set is an object with a member in the place of all of that name, which readers may
// take the first or the last of.
func set(obj []byte, name string, value []byte) []byte {
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

// without is an array without some of its elements, and whether it has less.
func without(list []byte, drop func(element []byte) bool) (kept []byte, less bool) {
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

// fit is a value as a property wants it: a config can only have texts where variables
// stand. why says what is wrong with it, if that is plain.
func fit(property, value []byte) (fits []byte, why string) {
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
	return value, "is to be of type " + strings.Join(types, " or ") + ", and is of type " + typeOf(value)
}

// typeOf is the type of a valid text, as schemas name it.
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

func meant(wrong string, known []string) string {
	f := suggest.New(wrong)
	for _, name := range known {
		f.Add(name, name)
	}
	return suggest.DidYouMean(f.Best()...)
}
