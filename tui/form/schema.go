package form

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"goblin/registry/rawjson"
)

// maxHops is the maximum number of references and nullable wrappers followed for a
// property.
const maxHops = 16

var errNoObject = errors.New("not an object schema")

// FromSchema returns at most [MaxFields] fields for the properties of an object schema,
// in order. It follows internal references. Properties without a matching kind become
// JSON; invalid annotations are ignored. It fails for other schemas; an empty one has no
// fields.
func FromSchema(schema json.RawMessage) ([]Field, error) {
	if len(bytes.TrimSpace(schema)) == 0 {
		return nil, nil
	}
	r := newResolver(schema)
	if r.root == nil || !json.Valid(schema) {
		return nil, errNoObject
	}
	root := r.resolve(r.root)
	if t, _ := typesOf(root["type"]); len(t) > 0 && !slices.Contains(t, "object") {
		return nil, errNoObject
	}
	return r.members(root, 0), nil
}

func newResolver(schema json.RawMessage) *resolver {
	return &resolver{root: nodeOf(schema), steps: make(map[string]node), texts: make(map[string]json.RawMessage), bytesLeft: maxExpanded, fieldsLeft: maxMade}
}

func (r *resolver) members(n node, depth int) []Field {
	var required []string
	_ = json.Unmarshal(n["required"], &required)
	must := make(map[string]bool, len(required))
	for _, name := range required {
		must[name] = true
	}
	properties, _ := readMembers(n["properties"], MaxFields)
	fields := make([]Field, 0, len(properties))
	for _, p := range properties {
		f := r.field(p.name, p.value, depth)
		f.Required = must[p.name]
		fields = append(fields, f)
	}
	return r.addAlternatives(fields, n, depth)
}

// FromPrompt returns a text field for each argument of a prompt.
func FromPrompt(definition json.RawMessage) []Field {
	var fields []Field
	seen := make(map[string]bool)
	for a := range rawjson.Elements(rawjson.Get(definition, "arguments")) {
		name, ok := rawjson.String(rawjson.Get(a, "name"))
		if !ok || seen[name] || len(fields) == MaxFields {
			continue
		}
		seen[name] = true
		fields = append(fields, Field{
			Name: name, Title: rawjson.GetString(a, "title"), Description: rawjson.GetString(a, "description"),
			Required: string(rawjson.Get(a, "required")) == "true", Completes: true,
		})
	}
	return fields
}

// FromTemplate returns a text field for each variable of a URI template. None is required
// (RFC 6570 §3.2.1).
func FromTemplate(variables []string) []Field {
	var fields []Field
	for _, name := range variables[:min(len(variables), MaxFields)] {
		fields = append(fields, Field{Name: name, Completes: true})
	}
	return fields
}

// node is a schema by its keywords.
type node map[string]json.RawMessage

func nodeOf(raw json.RawMessage) node {
	if !rawjson.IsObject(raw) {
		return nil
	}
	var n node
	if json.Unmarshal(raw, &n) != nil {
		return nil
	}
	return n
}

type resolver struct {
	root       node
	steps      map[string]node // decoded schemas by pointer
	texts      map[string]json.RawMessage
	bytesLeft  int // for expanded schemas
	fieldsLeft int // so that recursion ends
}

const (
	maxMade  = 8192 // including nested ones
	maxDepth = 8    // nesting of fields
)

// lookup returns the target of "#" and a JSON pointer (RFC 6901), or nil. Anchors and
// other documents are not supported.
func (r *resolver) lookup(ref string) node {
	if ref == "#" {
		return r.root
	}
	pointer, ok := strings.CutPrefix(ref, "#/")
	parts := strings.Split(pointer, "/")
	if !ok || len(parts) > maxHops {
		return nil
	}
	at := r.root
	for i, part := range parts {
		prefix := strings.Join(parts[:i+1], "/")
		next, known := r.steps[prefix]
		if !known {
			if p, err := url.PathUnescape(part); err == nil {
				part = p
			}
			part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
			next = nodeOfValue(at[part])
			r.steps[prefix], r.texts[prefix] = next, at[part]
		}
		if at = next; at == nil {
			return nil
		}
	}
	return at
}

func nodeOfValue(raw json.RawMessage) node {
	if !rawjson.IsArray(raw) {
		return nodeOf(raw)
	}
	n := make(node)
	for item := range rawjson.Elements(raw) {
		n[strconv.Itoa(len(n))] = item
	}
	return n
}

// resolve follows references, single-element allOf and nullable alternatives. Sibling
// keywords take precedence.
func (r *resolver) resolve(n node) node {
	for range maxHops {
		var inner node
		drop := ""
		switch {
		case n["$ref"] != nil:
			drop, inner = "$ref", r.lookup(stringOf(n["$ref"]))
		case n["allOf"] != nil && n["properties"] == nil:
			drop, inner = "allOf", onlySchema(n["allOf"], false)
		case n["anyOf"] != nil:
			drop, inner = "anyOf", onlySchema(n["anyOf"], true)
		case n["oneOf"] != nil:
			drop, inner = "oneOf", onlySchema(n["oneOf"], true)
		}
		if inner == nil {
			return n
		}
		beside, merged := maps.Clone(n), maps.Clone(inner)
		delete(beside, drop)
		maps.Copy(merged, beside)
		n = merged
	}
	return node{} // too deep or circular
}

// onlySchema returns the only schema of a list, or nil. With nulls, null schemas don't
// count.
func onlySchema(raw json.RawMessage, nulls bool) node {
	var one node
	for item := range rawjson.Elements(raw) {
		n := nodeOf(item)
		if n == nil {
			return nil
		}
		if t, null := typesOf(n["type"]); nulls && null && len(t) == 0 {
			continue
		}
		if one != nil {
			return nil
		}
		one = n
	}
	return one
}

// typesOf returns the value of "type" without null.
func typesOf(raw json.RawMessage) (types []string, null bool) {
	all := slices.Collect(rawjson.Elements(raw))
	if rawjson.IsString(raw) {
		all = [][]byte{raw}
	}
	for _, one := range all {
		t, ok := rawjson.String(one)
		if !ok {
			return nil, false
		}
		if t == "null" {
			null = true
		} else {
			types = append(types, t)
		}
	}
	return types, null
}

func (r *resolver) field(name string, raw json.RawMessage, depth int) Field {
	n := r.resolve(nodeOf(raw))
	if r.fieldsLeft--; r.fieldsLeft < 0 {
		n = node{}
	}
	f := Field{
		Name: name, Title: stringOf(n["title"]), Description: stringOf(n["description"]),
		Kind: JSON, Schema: raw,
	}
	if d := n["default"]; len(d) > 0 && !isNull(d) {
		f.Default = d
	}
	if options := r.options(n); len(options) > 0 {
		f.Kind, f.Options = Enum, options
		return f
	}
	types, _ := typesOf(n["type"])
	switch {
	case len(types) == 0 && n["properties"] != nil:
		types = []string{"object"}
	case len(types) > 1:
		r.makeChoice(&f, n, depth)
	}
	if len(types) == 1 {
		switch types[0] {
		case "boolean":
			f.Kind = Bool
		case "string", "number", "integer":
			f.Kind = scalar(types[0])
			f.readLimits(n)
		case "array":
			r.makeArray(&f, n, depth)
		case "object":
			r.makeObject(&f, n, depth)
		}
	}
	if f.Kind == JSON {
		r.makeChoice(&f, n, depth)
	}
	if f.Kind == JSON || depth == 0 && (f.Kind == Object || f.Kind == Array || f.Kind == Choice) {
		f.Schema = r.expand(raw, nil)
	}
	return f
}

func (r *resolver) makeArray(f *Field, n node, depth int) {
	items := r.resolve(nodeOf(n["items"]))
	if n["prefixItems"] != nil || items == nil {
		return
	}
	if options := r.options(items); len(options) > 0 {
		f.Kind, f.Options = MultiEnum, options
	} else if t, null := typesOf(items["type"]); len(t) == 1 && !null && scalar(t[0]) != JSON {
		f.Kind, f.Item = List, scalar(t[0])
		f.readLimits(items)
	} else if item := r.itemField(n["items"], depth); item != nil {
		f.Kind, f.items = Array, item
	} else {
		return
	}
	f.MinLen, f.MaxLen = count(n["minItems"]), count(n["maxItems"])
}

func scalar(t string) Kind {
	switch t {
	case "string":
		return Text
	case "number":
		return Number
	case "integer":
		return Integer
	}
	return JSON
}

func (f *Field) readLimits(n node) {
	f.Format, f.Pattern = stringOf(n["format"]), stringOf(n["pattern"])
	f.Min, f.Max = number(n["minimum"]), number(n["maximum"])
	f.MinLen, f.MaxLen = count(n["minLength"]), count(n["maxLength"])
}

func number(raw json.RawMessage) *float64 {
	var v float64
	if len(raw) == 0 || isNull(raw) || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return &v
}

func count(raw json.RawMessage) *int {
	v := number(raw)
	if v == nil || *v < 0 || *v > 1<<31 || *v != float64(int(*v)) {
		return nil
	}
	n := int(*v)
	return &n
}

// options returns the values of enum (with enumNames), const, or titled constants.
func (r *resolver) options(n node) []Option {
	var out []Option
	names := slices.Collect(rawjson.Elements(n["enumNames"]))
	for v := range rawjson.Elements(n["enum"]) {
		o := Option{Value: compact(v), Label: valueText(v)}
		if i := len(out); i < len(names) {
			o.Label = cmp.Or(stringOf(names[i]), o.Label)
		}
		if out = append(out, o); len(out) == MaxOptions {
			break
		}
	}
	if len(out) > 0 {
		return out
	}
	if v := n["const"]; len(v) > 0 {
		return []Option{{Value: compact(v), Label: valueText(v)}}
	}
	for _, keyword := range []string{"oneOf", "anyOf"} {
		if out := r.titledConstants(n[keyword]); len(out) > 0 {
			return out
		}
	}
	return nil
}

// titledConstants returns the options if all alternatives are constants or null.
func (r *resolver) titledConstants(raw json.RawMessage) []Option {
	var out []Option
	for item := range rawjson.Elements(raw) {
		if len(out) == MaxOptions {
			break
		}
		n := nodeOf(item)
		v := n["const"]
		if len(v) == 0 {
			if t, null := typesOf(n["type"]); null && len(t) == 0 {
				continue
			}
			return nil
		}
		out = append(out, Option{Value: compact(v), Label: cmp.Or(stringOf(n["title"]), valueText(v))})
	}
	return out
}

func valueText(raw json.RawMessage) string {
	if s, ok := rawjson.String(raw); ok && s != "" {
		return s
	}
	return string(compact(raw))
}
