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
	maxSchema = 1 << 20 // bytes that are compiled
	maxTangle = 1 << 14 // schemas that apply to one value, references followed
	maxRounds = 32      // members whose problems are told at once
)

// validator checks the whole value against the server's schema.
type validator struct {
	schema   *jsonschema.Resolved
	required []string
}

// newValidator compiles a schema. A schema that would take a long time to
// apply is refused like one that does not compile. It loads nothing: a server's
// schema does not choose what this process reads.
func newValidator(raw json.RawMessage) (v *validator, err error) {
	if len(raw) > maxSchema {
		return nil, errors.New("it is too large")
	}
	defer func() {
		// A library at work on foreign input; the form goes on without it.
		if p := recover(); p != nil {
			v, err = nil, errors.New("it cannot be understood")
		}
	}()
	var doc any
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	r, err := s.Resolve(&jsonschema.ResolveOptions{Loader: func(*url.URL) (*jsonschema.Schema, error) {
		return nil, errors.New("other documents are not loaded")
	}})
	if err != nil {
		return nil, err
	}
	if err := checkComplexity(doc); err != nil {
		return nil, err
	}
	return &validator{r, s.Required}, nil
}

// problem is something wrong at a member of the value; name is "" for the
// whole.
type problem struct {
	name, text string
	path       []string // below name, without the places in arrays
	at         *field   // nil if that has to be found out
}

// String tells where it is and what.
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

// check validates a value; the first problem of each member is told.
func (v *validator) check(value json.RawMessage) (found []problem) {
	if v == nil {
		return nil
	}
	defer func() {
		if recover() != nil {
			found = nil // what the library cannot check, the server will
		}
	}()
	var doc any
	if json.Unmarshal(value, &doc) != nil { // as a number that is too large for the library, too
		return nil
	}
	members, _ := doc.(map[string]any)
	for _, name := range v.required {
		if _, ok := members[name]; !ok && len(found) < MaxFields {
			found = append(found, problem{name: name, text: "required"})
		}
	}
	// The library tells one problem; the next ones are found without its member.
	for range maxRounds {
		err := v.schema.Validate(doc)
		if err == nil {
			break
		}
		p, keyword := problemOf(err)
		if p.name == "" && keyword == "required" && len(found) > 0 {
			break // said above; or it is a member that was taken out
		}
		found = append(found, p)
		if _, ok := members[p.name]; !ok {
			break
		}
		delete(members, p.name)
	}
	return found
}

// typePattern matches the two types in the library's message about a wrong type.
var typePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`has type "(\w+)", want (?:one of )?(.+)$`) })

// problemOf says where a value does not fit, and why. The errors of the library are a
// chain of the schemas that led to the one that does not fit, by their place in the
// document ("validating /properties/a: validating /$defs/b: type: …").
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
		text = "at least " + bound
	case "maximum":
		text = "at most " + bound
	case "exclusiveMinimum":
		text = "more than " + bound
	case "exclusiveMaximum":
		text = "less than " + bound
	case "multipleOf":
		text = "a multiple of " + bound
	case "oneOf", "anyOf":
		text = "fits none of the alternatives"
		if strings.Contains(why, "against both") {
			text = "fits more than one of the alternatives"
		}
	case "not":
		text = "is what it must not be"
	case "contains":
		text = "lacks an item that must be there"
	}
	if len(at) == 0 {
		return problem{text: text}, keyword
	}
	return problem{name: at[0], text: text, path: at[1:]}, keyword
}

// complexity counts how many schemas apply to one and the same value: alternatives
// that refer to each other multiply, and would hold up the screen; those that lead
// back to themselves would never end.
type complexity struct {
	root any
	cost map[string]int // by place in the document, below zero while it is counted
	todo []string       // what applies to other values
	err  error
}

// checkComplexity returns an error for a schema that takes too long to apply.
func checkComplexity(doc any) error {
	t := complexity{root: doc, cost: make(map[string]int), todo: []string{""}}
	for len(t.todo) > 0 && t.err == nil {
		next := t.todo[0]
		t.todo = t.todo[1:]
		if t.walk(next) >= maxTangle && t.err == nil {
			t.err = errors.New("it is too tangled")
		}
	}
	return t.err
}

// walk counts the schema at a place, which is a JSON pointer (RFC 6901).
func (t *complexity) walk(at string) int {
	if n, ok := t.cost[at]; ok {
		if n < 0 {
			t.err = errors.New("it refers to itself")
		}
		return max(n, 1)
	}
	node, ok := resolvePointer(t.root, at)
	if !ok {
		t.err = errors.New("it refers to what is not followed here")
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

// childPlaces returns the JSON pointers of the values in an object or a list.
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

// resolvePointer returns the value that a JSON pointer refers to.
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
