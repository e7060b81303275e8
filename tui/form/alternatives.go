package form

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"goblin/registry/rawjson"
)

// A field with more alternatives is JSON.
const maxAlternatives = 64

// makeObject makes f an Object if its members are known.
func (r *resolver) makeObject(f *Field, n node, depth int) {
	properties, _ := readMembers(n["properties"], 1)
	if depth >= maxDepth || r.fieldsLeft <= 0 || len(properties) == 0 && r.objectAlternatives(n) == nil {
		return
	}
	f.Kind = Object
	f.members = sync.OnceValue(func() []Field { return r.members(n, depth+1) })
}

// itemField returns the field for array items, or nil if they are any JSON.
func (r *resolver) itemField(raw json.RawMessage, depth int) *Field {
	if depth >= maxDepth {
		return nil
	}
	if item := r.field("", raw, depth+1); item.Kind != JSON {
		return &item
	}
	return nil
}

func (r *resolver) objectAlternatives(n node) []json.RawMessage {
	for _, keyword := range []string{"oneOf", "anyOf"} {
		var all []json.RawMessage
		for item := range rawjson.Elements(n[keyword]) {
			if r.resolve(nodeOf(item))["properties"] == nil || len(all) == maxAlternatives {
				return nil
			}
			all = append(all, item)
		}
		if len(all) > 1 {
			return all
		}
	}
	return nil
}

// addAlternatives adds a Choice to the members of an object with alternatives. A member
// that is constant in each alternative belongs to the alternatives; others in both belong
// to the object.
func (r *resolver) addAlternatives(fields []Field, n node, depth int) []Field {
	raws := r.objectAlternatives(n)
	if raws == nil || depth >= maxDepth || r.fieldsLeft <= 0 {
		return fields
	}
	same := make(map[string]int)
	for _, raw := range raws {
		properties, _ := readMembers(r.resolve(nodeOf(raw))["properties"], MaxFields)
		for _, p := range properties {
			if len(r.options(r.resolve(nodeOf(p.value)))) == 1 {
				same[p.name]++
			}
		}
	}
	own := make(map[string]bool)
	var must []string
	_ = json.Unmarshal(n["required"], &must)
	base := slices.DeleteFunc(fields, func(f Field) bool { return same[f.Name] == len(raws) })
	for _, f := range base {
		own[f.Name] = true
	}
	f := Field{Title: "variant", Kind: Choice, Inline: true, Required: len(base) == 0, Options: r.labels(raws)}
	f.alternatives = sync.OnceValue(func() []Field {
		all := r.alternativeFields(raws, depth)
		for i := range all {
			if all[i].members == nil {
				continue
			}
			inner := all[i].members
			all[i].members = sync.OnceValue(func() []Field {
				members := slices.DeleteFunc(slices.Clone(inner()), func(m Field) bool { return own[m.Name] })
				for k := range members {
					members[k].Required = members[k].Required || slices.Contains(must, members[k].Name)
				}
				return members
			})
		}
		return all
	})
	return append(base, f)
}

func (r *resolver) alternativeFields(raws []json.RawMessage, depth int) []Field {
	labels := r.labels(raws)
	out := make([]Field, len(raws))
	for i, raw := range raws {
		out[i] = r.field(labels[i].Label, raw, depth+1)
		out[i].Title, out[i].Required = labels[i].Label, true
		if inner := out[i].members; inner != nil {
			out[i].members = sync.OnceValue(func() []Field { return requireConstants(inner()) })
		}
	}
	return out
}

// requireConstants makes constant members required, because they distinguish the
// alternatives.
func requireConstants(members []Field) []Field {
	out := slices.Clone(members)
	for i := range out {
		out[i].Required = out[i].Required || out[i].Kind == Enum && len(out[i].Options) == 1
	}
	return out
}

// makeChoice makes f a Choice if its value is one of several distinguishable kinds.
func (r *resolver) makeChoice(f *Field, n node, depth int) {
	if depth >= maxDepth || r.fieldsLeft <= 0 {
		return
	}
	raws := r.alternativeSchemas(n)
	if len(raws) < 2 || len(raws) > maxAlternatives {
		return
	}
	known := false
	for _, raw := range raws {
		alternative := r.resolve(nodeOf(raw))
		if alternative == nil {
			return
		}
		types, null := typesOf(alternative["type"])
		known = known || len(types) > 0 || null || alternative["properties"] != nil || len(r.options(alternative)) > 0
	}
	if !known {
		return
	}
	f.Kind, f.Options = Choice, r.labels(raws)
	f.alternatives = sync.OnceValue(func() []Field { return r.alternativeFields(raws, depth) })
}

func (r *resolver) alternativeSchemas(n node) []json.RawMessage {
	var out []json.RawMessage
	types, null := typesOf(n["type"])
	if len(types) > 1 {
		var rest []member
		for name, value := range n {
			if !slices.Contains([]string{"type", "title", "description", "default", "oneOf", "anyOf"}, name) {
				rest = append(rest, member{name, value})
			}
		}
		for _, t := range types {
			out = append(out, writeObject(append([]member{{"type", rawjson.Quote(t)}}, rest...)))
		}
		if null {
			out = append(out, nullSchema)
		}
		return out
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		for item := range rawjson.Elements(n[keyword]) {
			list, ok := readMembers(item, maxMembers)
			if !ok || len(out) > maxAlternatives {
				return nil
			}
			own := r.resolve(nodeOf(item))
			if t, null := typesOf(own["type"]); null && len(t) == 0 {
				item = nullSchema
			} else if own["type"] == nil && own["properties"] != nil && n["type"] != nil {
				item = writeObject(append(list, member{"type", n["type"]}))
			}
			out = append(out, item)
		}
		if len(out) > 1 {
			return out
		}
		out = nil
	}
	return nil
}

var nullSchema = json.RawMessage(`{"const":null,"title":"null"}`)

func (r *resolver) labels(raws []json.RawMessage) []Option {
	out := make([]Option, len(raws))
	times := make(map[string]int)
	for i, raw := range raws {
		label := r.label(nodeOf(raw))
		if times[label]++; times[label] > 1 {
			label = fmt.Sprintf("%s %d", label, times[label])
		}
		out[i] = Option{Value: rawjson.Quote(label), Label: label}
	}
	return out
}

// label names an alternative by its title, a constant member, its reference or its type.
func (r *resolver) label(raw node) string {
	n := r.resolve(raw)
	if title := stringOf(n["title"]); title != "" {
		return title
	}
	properties, _ := readMembers(n["properties"], MaxFields)
	var names []string
	for _, p := range properties {
		if options := r.options(r.resolve(nodeOf(p.value))); len(options) == 1 && rawjson.IsString(options[0].Value) {
			return options[0].Label
		}
		names = append(names, p.name)
	}
	if ref := stringOf(raw["$ref"]); ref != "" {
		return ref[strings.LastIndex(ref, "/")+1:]
	}
	if options := r.options(n); len(options) == 1 {
		return options[0].Label
	}
	if len(names) > 0 {
		return "{" + strings.Join(names[:min(len(names), 3)], ", ") + "}"
	}
	types, _ := typesOf(n["type"])
	switch {
	case len(types) != 1:
		return "any JSON"
	case types[0] == "string" && n["format"] != nil:
		return stringOf(n["format"])
	case types[0] == "string":
		return "text"
	case types[0] == "array":
		return "list"
	case types[0] == "boolean":
		return "yes or no"
	}
	return types[0]
}
