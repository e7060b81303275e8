package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"goblin/registry/termtext"
)

const (
	maxSchema = 1 << 20 // bytes of a schema to compile
	maxTangle = 1 << 14 // schemas that apply to one value, with references
	maxRounds = 32      // members whose problems are reported
)

type validator struct {
	schema   *jsonschema.Resolved
	required []string
}

// newValidator compiles a schema that is quick to apply. It loads no other documents, so
// that a server cannot make Goblin read files or URLs.
func newValidator(raw json.RawMessage) (v *validator, err error) {
	if len(raw) > maxSchema {
		return nil, errors.New("it is larger than 1 MiB")
	}
	defer func() {
		// The library may panic on untrusted input; the form works without it.
		if p := recover(); p != nil {
			v, err = nil, errors.New("invalid schema")
		}
	}()
	var doc any
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("invalid schema: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("invalid schema: %w", err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{Loader: func(*url.URL) (*jsonschema.Schema, error) {
		return nil, errors.New("references to other documents are not supported")
	}})
	if err != nil {
		return nil, err
	}
	if err := checkComplexity(doc); err != nil {
		return nil, err
	}
	return &validator{r, s.Required}, nil
}

// problem is a problem of a member; an empty name means the whole value.
type problem struct {
	name, text string
	path       []string // below name, without array indexes
	at         *field   // nil if unknown
}

func (p problem) String() string {
	where := p.name
	if p.at != nil {
		where = p.at.path()
	}
	text := p.text
	if len(p.path) > 0 && p.at == nil {
		text = "at /" + strings.Join(p.path, "/") + ": " + text
	}
	return strings.TrimPrefix(where+": "+text, ": ")
}

// check returns the first problem of each member.
func (v *validator) check(value json.RawMessage) (found []problem) {
	if v == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			found = nil // the server checks it
		}
	}()
	var doc any
	if json.Unmarshal(value, &doc) != nil { // a number too large for the library
		return nil
	}
	members, _ := doc.(map[string]any)
	for _, name := range v.required {
		if _, ok := members[name]; !ok && len(found) < MaxFields {
			found = append(found, problem{name: name, text: "required"})
		}
	}
	// The library reports one problem. Removing its member reveals the next.
	for range maxRounds {
		err := v.schema.Validate(doc)
		if err == nil {
			break
		}
		p, keyword := problemOf(err)
		if p.name == "" && keyword == "required" && len(found) > 0 {
			break // already reported, or removed here
		}
		found = append(found, p)
		if _, ok := members[p.name]; !ok {
			break
		}
		delete(members, p.name)
	}
	return found
}

var typePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`has type "(\w+)", want (?:one of )?(.+)$`) })

// problemOf converts an error of the library, which is a chain of schemas by place
// ("validating /properties/a: validating /$defs/b: type: …").
func problemOf(err error) (p problem, keyword string) {
	var at []string
	for next := err; next != nil; next = errors.Unwrap(err) {
		err = next
		place, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "validating "), ": ")
		if parts := strings.Split(place, "/"); len(parts) > 2 && parts[len(parts)-2] == "properties" {
			at = append(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(parts[len(parts)-1]))
		}
	}
	text := termtext.Line(err.Error())
	keyword, why, _ := strings.Cut(text, ": ")
	bound := strings.TrimRight(strings.TrimRight(why[strings.LastIndex(why, " ")+1:], "0"), ".")
	switch keyword {
	case "type":
		if m := typePattern().FindStringSubmatch(why); m != nil {
			text = strings.ReplaceAll(fmt.Sprintf("got %s, want %s", m[1], m[2]), `"`, "")
		}
	case "minimum":
		text = "must be at least " + bound
	case "maximum":
		text = "must be at most " + bound
	case "exclusiveMinimum":
		text = "must be more than " + bound
	case "exclusiveMaximum":
		text = "must be less than " + bound
	case "multipleOf":
		text = "must be a multiple of " + bound
	case "oneOf", "anyOf":
		text = "matches no alternative"
		if strings.Contains(why, "against both") {
			text = "matches more than one alternative"
		}
	case "not":
		text = "matches a forbidden schema"
	case "contains":
		text = "a required item is missing"
	}
	if len(at) == 0 {
		return problem{text: text}, keyword
	}
	return problem{name: at[0], text: text, path: at[1:]}, keyword
}

// complexity counts the schemas that apply to one value. Alternatives that refer to each
// other multiply and would block the UI.
type complexity struct {
	root any
	cost map[string]int // by place; negative while counting
	todo []string       // schemas of other values
	err  error
}

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
