package definition

import (
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// matchingPerStep is the cost of one step: the size of a pattern times the length of a
// text. stepBytes is the size of a text in errors that costs one step.
const (
	matchingPerStep = 512
	stepBytes       = 64
)

// ErrNotApplied is the error of [Schema.Validate] if a value was not validated.
var ErrNotApplied = errors.New("the schema cannot be applied")

var errSlow = fmt.Errorf("%w: it is too complex for this value", ErrNotApplied)

// Schema is a compiled schema of a server.
type Schema struct {
	resolved *jsonschema.Resolved
	doc      any
}

// Required returns the names that the root requires.
func (s *Schema) Required() []string { return s.resolved.Schema().Required }

// Validate returns an error if a decoded JSON value does not fit. Errors of the library
// are chains of schemas by place. maxSteps limits the schemas that apply to the value and
// its parts, with the work of each. With more, the error wraps [ErrNotApplied].
func (s *Schema) Validate(value any, maxSteps int) (err error) {
	m := meter{
		root: s.doc, left: maxSteps,
		inPlace: make(map[uintptr][]application), patterns: make(map[string]int), sizes: make(map[uintptr]int),
	}
	first := applications{}
	first.add(s.doc, 1)
	if m.apply(first, value); m.left <= 0 {
		return errSlow
	}
	defer func() {
		if recover() != nil { // a defect of the library
			err = ErrNotApplied
		}
	}()
	return s.resolved.Validate(value)
}

// meter counts the steps of a validation. A schema with a recursive reference may apply
// exponentially often to a deep value. The count is an upper limit: all alternatives
// count.
type meter struct {
	root     any
	left     int                       // steps
	inPlace  map[uintptr][]application // schemas that apply to the value of a schema
	patterns map[string]int            // sizes of patterns
	sizes    map[uintptr]int           // of schemas' own members
}

type application struct {
	schema map[string]any
	n      int // how often it applies to one value
}

// applications holds applications by the identity of the schema.
type applications map[uintptr]application

// maxApplications keeps sums and products of counts within an int.
const maxApplications = 1 << 30

func (a applications) add(schema any, n int) {
	s, ok := schema.(map[string]any)
	if !ok { // true, false, or invalid
		return
	}
	id := reflect.ValueOf(s).Pointer()
	a[id] = application{s, min(maxApplications, a[id].n+n)}
}

// spend reports whether n times cost steps remain.
func (m *meter) spend(n, cost int) bool {
	if cost = max(1, cost); n >= m.left/cost {
		m.left = 0
		return false
	}
	m.left -= n * cost
	return true
}

// apply counts the schemas that apply to a value and its parts. It returns the value's
// size in errors, in bytes.
func (m *meter) apply(direct applications, value any) (size int) {
	all := applications{}
	for _, a := range direct {
		for _, b := range m.closure(a.schema) {
			if !m.spend(1, 1) {
				return 0
			}
			all.add(b.schema, min(maxApplications, a.n*b.n))
		}
	}
	size = 8
	switch v := value.(type) {
	case string:
		size = len(v)
		m.matchAll(all, "pattern", v)
	case []any:
		for i, item := range v {
			size += m.apply(m.children(all, func(s map[string]any, into applications, n int) { addItems(s, i, into, n) }), item)
		}
	case map[string]any:
		for key, member := range v {
			m.matchAll(all, "patternProperties", key)
			m.apply(m.children(all, func(s map[string]any, into applications, n int) { into.add(s["propertyNames"], n) }), key)
			size += len(key) + m.apply(m.children(all, func(s map[string]any, into applications, n int) { addMember(s, key, into, n) }), member)
		}
	}
	for id, a := range all {
		if !m.spend(a.n, 1+m.ownSize(id, a.schema)+size/stepBytes) {
			break
		}
	}
	return size
}

// children returns the schemas that apply to a part of a value.
func (m *meter) children(all applications, add func(schema map[string]any, into applications, n int)) applications {
	into := applications{}
	if m.spend(1, len(all)) {
		for _, a := range all {
			add(a.schema, into, a.n)
		}
	}
	return into
}

func addItems(s map[string]any, i int, into applications, n int) {
	for _, key := range []string{"items", "additionalItems", "unevaluatedItems", "contains"} {
		into.add(s[key], n)
	}
	for _, key := range []string{"items", "prefixItems"} {
		if list, _ := s[key].([]any); i < len(list) {
			into.add(list[i], n)
		}
	}
}

func addMember(s map[string]any, name string, into applications, n int) {
	for _, key := range []string{"additionalProperties", "unevaluatedProperties"} {
		into.add(s[key], n)
	}
	if all, ok := s["properties"].(map[string]any); ok {
		into.add(all[name], n)
	}
	all, _ := s["patternProperties"].(map[string]any)
	for _, sub := range all {
		into.add(sub, n)
	}
}

// closure returns a schema and the other schemas that apply to the same value. It reads
// the same keywords as [complexity.walk].
func (m *meter) closure(schema map[string]any) []application {
	id := reflect.ValueOf(schema).Pointer()
	if list, ok := m.inPlace[id]; ok {
		return list
	}
	all := applications{}
	all.add(schema, 1)
	for key, value := range schema {
		var subs []any
		switch key {
		case "not", "if", "then", "else":
			subs = []any{value}
		case "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies":
			switch v := value.(type) {
			case []any:
				subs = v
			case map[string]any:
				for _, sub := range v {
					subs = append(subs, sub)
				}
			}
		case "$ref", "$dynamicRef", "$recursiveRef":
			ref, _ := value.(string)
			fragment, _ := url.PathUnescape(strings.TrimPrefix(ref, "#"))
			if sub, ok := resolvePointer(m.root, fragment); ok {
				subs = []any{sub}
			}
		}
		for _, sub := range subs {
			if s, ok := sub.(map[string]any); ok && m.spend(1, 1) {
				for _, b := range m.closure(s) {
					all.add(b.schema, b.n)
				}
			}
		}
	}
	list := make([]application, 0, len(all))
	for _, a := range all {
		list = append(list, a)
	}
	m.spend(1, len(list))
	m.inPlace[id] = list
	return list
}

// matchAll counts the matching of a text with the patterns of a keyword.
func (m *meter) matchAll(all applications, keyword, text string) {
	for _, a := range all {
		switch v := a.schema[keyword].(type) {
		case string:
			m.match(v, text, a.n)
		case map[string]any:
			for pattern := range v {
				m.match(pattern, text, a.n)
			}
		}
	}
}

func (m *meter) match(pattern, text string, n int) {
	size, ok := m.patterns[pattern]
	if !ok {
		size, _ = PatternSize(pattern) // the library compiled it
		m.patterns[pattern] = size
	}
	m.spend(n, size*len(text)/matchingPerStep)
}

// ownSize counts the members of a schema that are compared with each value.
func (m *meter) ownSize(id uintptr, schema map[string]any) int {
	n, ok := m.sizes[id]
	if ok {
		return n
	}
	for _, key := range []string{"enum", "const"} {
		n += countDecoded(schema[key])
	}
	for _, key := range []string{"properties", "required", "dependentRequired", "patternProperties"} {
		switch v := schema[key].(type) {
		case []any:
			n += len(v)
		case map[string]any:
			n += len(v)
		}
	}
	m.sizes[id] = n
	return n
}

// countDecoded returns the size of a decoded value, with a value for every 64 bytes of
// text.
func countDecoded(v any) (n int) {
	switch v := v.(type) {
	case nil:
		return 0
	case string:
		return 1 + len(v)/stepBytes
	case []any:
		for _, item := range v {
			n += countDecoded(item)
		}
	case map[string]any:
		for _, member := range v {
			n += countDecoded(member)
		}
	}
	return n + 1
}
