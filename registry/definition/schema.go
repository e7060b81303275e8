package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	maxSchema = 1 << 20 // bytes of a schema
	maxTangle = 1 << 14 // schemas that apply to one value, with references
)

// ResolveSchema compiles a schema whose application to a value takes limited time. It
// loads no other documents, so that a server cannot make Goblin read files or URLs.
func ResolveSchema(raw []byte) (r *Schema, err error) {
	if len(raw) > maxSchema {
		return nil, errors.New("it is larger than 1 MiB")
	}
	defer func() {
		if p := recover(); p != nil { // of the library, on untrusted input
			r, err = nil, errors.New("invalid schema")
		}
	}()
	var doc any
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("invalid schema: %w", err)
	}
	if SchemaPatterns(doc) > maxPattern {
		return nil, errPattern
	}
	if embedsDocument(doc, true) {
		return nil, errors.New("schemas with an own $id inside of others are not supported")
	}
	// The library must see what is checked here, also if a name occurs twice.
	if raw, err = withoutDuplicates(raw); err == nil {
		err = json.Unmarshal(raw, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("invalid schema: %w", err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{Loader: func(*url.URL) (*jsonschema.Schema, error) {
		return nil, errors.New("references to other documents are not supported")
	}})
	if err != nil {
		return nil, err
	}
	if err := checkComplexity(doc); err != nil {
		return nil, err
	}
	return &Schema{resolved, doc}, nil
}

// withoutDuplicates returns JSON text without all but the last member of each name.
func withoutDuplicates(raw []byte) ([]byte, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// embedsDocument reports whether a part of a schema has its own $id. Its references would
// start there and not at the root, where the checks of this package look.
func embedsDocument(v any, root bool) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return embedsDocument(item, false) })
	case map[string]any:
		if _, own := v["$id"].(string); own && !root {
			return true
		}
		for _, member := range v {
			if embedsDocument(member, false) {
				return true
			}
		}
	}
	return false
}

// complexity counts the schemas that apply to one value. Alternatives that refer to each
// other multiply and would block the UI.
type complexity struct {
	root any
	cost map[string]int // by place; negative while counting
	todo []string       // schemas of other values
	err  error
}

// checkComplexity returns an error if a decoded schema may be slow to apply: if more than
// 16,384 schemas apply to one value, or if a schema refers to itself or to other
// documents.
func checkComplexity(doc any) error {
	t := complexity{root: doc, cost: make(map[string]int), todo: []string{""}}
	for len(t.todo) > 0 && t.err == nil {
		next := t.todo[0]
		t.todo = t.todo[1:]
		if t.walk(next) >= maxTangle && t.err == nil {
			t.err = errors.New("it is too complex")
		}
	}
	return t.err
}

// walk counts the schema at a JSON pointer (RFC 6901).
func (t *complexity) walk(at string) int {
	if n, ok := t.cost[at]; ok {
		if n < 0 {
			t.err = errors.New("it refers to itself")
		}
		return max(n, 1)
	}
	node, ok := resolvePointer(t.root, at)
	if !ok {
		t.err = errors.New("unsupported reference")
		return 1
	}
	schema, ok := node.(map[string]any)
	if !ok || t.err != nil {
		return 1
	}
	t.cost[at] = -1
	n := 1
	for key, value := range schema {
		place := at + "/" + escapePointer(key)
		switch key {
		case "not", "if", "then", "else":
			n += t.walk(place)
		case "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies":
			for _, sub := range childPlaces(place, value) {
				n += t.walk(sub)
			}
		case "$ref", "$dynamicRef", "$recursiveRef":
			ref, _ := value.(string)
			fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
			if err != nil || !strings.HasPrefix(ref, "#") {
				fragment = "?"
			}
			n += t.walk(fragment)
		case "items":
			if _, list := value.([]any); !list {
				t.todo = append(t.todo, place)
				break
			}
			fallthrough
		case "properties", "patternProperties", "prefixItems":
			t.todo = append(t.todo, childPlaces(place, value)...)
		case "additionalProperties", "additionalItems", "propertyNames", "unevaluatedProperties", "unevaluatedItems", "contains":
			t.todo = append(t.todo, place)
		}
		n = min(n, maxTangle)
	}
	t.cost[at] = n
	return n
}

func escapePointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

func childPlaces(at string, value any) (places []string) {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			places = append(places, at+"/"+escapePointer(key))
		}
	case []any:
		for i := range v {
			places = append(places, fmt.Sprintf("%s/%d", at, i))
		}
	}
	return places
}

func resolvePointer(doc any, pointer string) (any, bool) {
	if pointer == "" {
		return doc, true
	}
	if !strings.HasPrefix(pointer, "/") {
		return nil, false
	}
	for _, part := range strings.Split(pointer[1:], "/") {
		switch v := doc.(type) {
		case map[string]any:
			next, ok := v[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
			if !ok {
				return nil, false
			}
			doc = next
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			doc = v[i]
		default:
			return nil, false
		}
	}
	return doc, true
}
