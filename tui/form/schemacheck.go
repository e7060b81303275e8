package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"goblin/registry/definition"
	"goblin/registry/termtext"
)

const maxRounds = 32 // members whose problems are reported

// maxSteps limits the steps of a validation, which runs at each key.
const maxSteps = 1 << 18

type validator struct {
	schema   *definition.Schema
	required []string
}

// newValidator compiles a schema that is quick to apply.
func newValidator(raw json.RawMessage) (*validator, error) {
	r, err := definition.ResolveSchema(raw)
	if err != nil {
		return nil, err
	}
	return &validator{r, r.Required()}, nil
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
		err := v.schema.Validate(doc, maxSteps)
		if err == nil || errors.Is(err, definition.ErrNotApplied) {
			break // the server checks it
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
