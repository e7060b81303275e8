package repair

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"goblin/registry/rawjson"
)

// kind is a type of JSON values.
type kind byte

const (
	text kind = iota
	boolean
	number
	object
	array
)

var articles = [...]string{text: "a string", boolean: "a boolean", number: "a number", object: "an object", array: "an array"}

// kindOf returns false for null.
func kindOf(v []byte) (kind, bool) {
	switch v[rawjson.AfterSpace(v, 0)] {
	case '"':
		return text, true
	case 't', 'f':
		return boolean, true
	case '{':
		return object, true
	case '[':
		return array, true
	case 'n':
		return 0, false
	}
	return number, true
}

// shape describes the values that SDKs accept in one place.
type shape struct {
	kind    kind
	members []member          // of an object, those that are checked
	values  *shape            // of all members of an object; nil: any
	each    *shape            // of the elements of an array; nil: any
	whole   bool              // one wrong element spoils the array
	fits    func([]byte) bool // a further condition
	wanted  string            // that condition in words
	// instead replaces a value that is not accepted; nil, and a nil result, leave it out.
	instead func([]byte) []byte
}

type member struct {
	name string
	*shape
	missing []byte // what is added where the member is missing
	needed  bool   // without it, and without missing, the object is not accepted
}

// accepts reports whether SDKs accept a value.
func (s *shape) accepts(v []byte) bool {
	if is, ok := kindOf(v); !ok || is != s.kind {
		return false
	}
	if s.fits != nil && !s.fits(v) {
		return false
	}
	switch {
	case s.kind == object && (len(s.members) > 0 || s.values != nil):
		return s.acceptsMembers(v)
	case s.kind == array && s.each != nil:
		for e := range rawjson.Elements(v) {
			if !s.each.accepts(e) {
				return false
			}
		}
	}
	return true
}

func (s *shape) acceptsMembers(v []byte) bool {
	seen := 0
	for k, value := range rawjson.Members(v) {
		if s.values != nil && !s.values.accepts(value) {
			return false
		}
		if i := s.place(k); i >= 0 {
			seen |= 1 << i
			if !s.members[i].accepts(value) {
				return false
			}
		}
	}
	for i := range s.members {
		if s.members[i].needed && seen&(1<<i) == 0 {
			return false
		}
	}
	return true
}

func (s *shape) place(k rawjson.Key) int {
	name := k.Name()
	for i := range s.members {
		if string(name) == s.members[i].name {
			return i
		}
	}
	return -1
}

// repaired returns an object that SDKs accept, except for required members that are missing.
func (s *shape) repaired(v []byte, n *notes) []byte {
	if s.accepts(v) {
		return v
	}
	out, _ := s.rebuilt(v, "", n)
	return out
}

// fixed returns a value that SDKs accept instead of v; keep is false if there is none.
func (s *shape) fixed(v []byte, path string, n *notes) (out []byte, keep bool) {
	if s.accepts(v) {
		return v, true
	}
	is, ok := kindOf(v)
	if !ok || is != s.kind || s.fits != nil && !s.fits(v) || s.whole {
		if s.instead != nil {
			if out = s.instead(v); out != nil {
				n.add(path, fmt.Sprintf("changed to %s: %s", out, s.complaint(v)))
				return out, true
			}
		}
		n.add(path, "left out: "+s.complaint(v))
		return nil, false
	}
	if s.kind == array {
		return s.filtered(v, path, n), true
	}
	if out, keep = s.rebuilt(v, path, n); !keep {
		n.add(path, "left out: a member is missing")
	}
	return out, keep
}

func (s *shape) complaint(v []byte) string {
	is, ok := kindOf(v)
	switch {
	case !ok:
		return "it is null"
	case is != s.kind:
		return "it is not " + articles[s.kind]
	case s.wanted != "":
		return "it is not " + s.wanted
	}
	return "an element is wrong"
}

// filtered returns an array without the elements that cannot be kept.
func (s *shape) filtered(v []byte, path string, n *notes) []byte {
	out := []byte{'['}
	i := 0
	for e := range rawjson.Elements(v) {
		if e, keep := s.each.fixed(e, path+"["+strconv.Itoa(i)+"]", n); keep {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(out, e...)
		}
		i++
	}
	return append(out, ']')
}

// rebuilt returns an object with its members repaired or left out. complete is false if
// one is missing that is needed.
func (s *shape) rebuilt(v []byte, path string, n *notes) (out []byte, complete bool) {
	seen := 0
	out = rawjson.Filter(v, func(k rawjson.Key, value []byte) ([]byte, bool) {
		keep := true
		if s.values != nil {
			value, keep = s.values.fixed(value, below(path, k), n)
		}
		if i := s.place(k); i >= 0 {
			if value, keep = s.members[i].fixed(value, below(path, k), n); keep {
				seen |= 1 << i
			}
		}
		return value, keep
	})
	complete = true
	for i := range s.members {
		switch m := &s.members[i]; {
		case !m.needed || seen&(1<<i) != 0:
		case m.missing == nil:
			complete = false
		default:
			out = rawjson.SetMember(out, m.name, m.missing)
			n.add(below(path, rawjson.Quote(m.name)), fmt.Sprintf("set to %s", m.missing))
		}
	}
	return out, complete
}

// words is the shape of a string out of a few.
func words(wanted string, all ...string) *shape {
	return &shape{kind: text, wanted: wanted, fits: func(v []byte) bool {
		for _, w := range all {
			if rawjson.Key(v).Is(w) {
				return true
			}
		}
		return false
	}}
}

// constant replaces each value by one.
func constant(v string) func([]byte) []byte {
	return func([]byte) []byte { return []byte(v) }
}

// The shapes are the union of what the TypeScript SDK from 1.0 to 2.4 and the Python SDK
// check. Members of objects that are not named pass.
var (
	aText   = &shape{kind: text}
	anObj   = &shape{kind: object}
	texts   = &shape{kind: array, each: aText}
	aSwitch = &shape{kind: boolean, instead: func(v []byte) []byte {
		switch k := rawjson.Key(v); {
		case k.Is("true"), k.Is("True"):
			return []byte("true")
		case k.Is("false"), k.Is("False"):
			return []byte("false")
		}
		return nil
	}}
	aSize = &shape{kind: number, wanted: "an integer", fits: func(v []byte) bool {
		f, err := strconv.ParseFloat(string(v), 64) // an error is a number beyond all of them
		fits := math.Abs(f) < 1<<63 || !bytes.ContainsAny(v, ".eE")
		return err == nil && f == math.Trunc(f) && fits
	}}
	aShare = &shape{kind: number, wanted: "between 0 and 1", fits: func(v []byte) bool {
		f, err := strconv.ParseFloat(string(v), 64)
		return err == nil && 0 <= f && f <= 1
	}}
	aTime = &shape{kind: text, wanted: "a time with an offset, such as 2026-01-31T08:00:00Z", fits: isTime}

	icons = &shape{kind: array, each: &shape{kind: object, members: []member{
		{name: "src", shape: aText, needed: true},
		{name: "mimeType", shape: aText},
		{name: "sizes", shape: texts},
		{name: "theme", shape: words(`"light" or "dark"`, "light", "dark")},
	}}}
	annotations = &shape{kind: object, members: []member{
		{name: "audience", shape: &shape{kind: array, each: words("", "user", "assistant"), whole: true}},
		{name: "priority", shape: aShare},
		{name: "lastModified", shape: aTime},
	}}

	// aProperty is the schema of a property: older SDKs accept only objects.
	aProperty = &shape{kind: object, instead: func(v []byte) []byte {
		if string(v) == "false" {
			return []byte(`{"not":{}}`)
		}
		return []byte("{}")
	}}
	properties = &shape{kind: object, values: aProperty}
	isObject   = words(`"object"`, "object")

	inputSchema = &shape{kind: object, instead: constant(`{"type":"object"}`), members: []member{
		{name: "type", shape: &shape{kind: text, fits: isObject.fits, wanted: isObject.wanted, instead: constant(`"object"`)}, needed: true, missing: []byte(`"object"`)},
		{name: "properties", shape: properties},
		{name: "required", shape: texts},
		{name: "$schema", shape: aText},
	}}
	// outputSchema is for clients up to 2025-11-25; later ones take any object.
	outputSchema = &shape{kind: object, members: []member{
		{name: "type", shape: isObject, needed: true},
		{name: "properties", shape: properties},
		{name: "required", shape: texts},
	}}

	tool = &shape{kind: object, members: []member{
		{name: "description", shape: aText},
		{name: "inputSchema", shape: inputSchema, needed: true, missing: []byte(`{"type":"object"}`)},
		{name: "outputSchema", shape: &shape{kind: object, members: []member{{name: "$schema", shape: aText}}}},
		{name: "title", shape: aText},
		{name: "annotations", shape: &shape{kind: object, members: []member{
			{name: "title", shape: aText},
			{name: "readOnlyHint", shape: aSwitch},
			{name: "destructiveHint", shape: aSwitch},
			{name: "idempotentHint", shape: aSwitch},
			{name: "openWorldHint", shape: aSwitch},
		}}},
		{name: "icons", shape: icons},
		{name: "execution", shape: &shape{kind: object, members: []member{
			{name: "taskSupport", shape: words(`"required", "optional" or "forbidden"`, "required", "optional", "forbidden")},
		}}},
		{name: "_meta", shape: anObj},
	}}
	prompt = &shape{kind: object, members: []member{
		{name: "description", shape: aText},
		{name: "title", shape: aText},
		{name: "arguments", shape: &shape{kind: array, each: &shape{kind: object, members: []member{
			{name: "name", shape: aText, needed: true},
			{name: "title", shape: aText},
			{name: "description", shape: aText},
			{name: "required", shape: aSwitch},
		}}}},
		{name: "icons", shape: icons},
		{name: "_meta", shape: anObj},
	}}
	template = &shape{kind: object, members: []member{
		{name: "name", shape: aText, needed: true},
		{name: "title", shape: aText},
		{name: "description", shape: aText},
		{name: "mimeType", shape: aText},
		{name: "annotations", shape: annotations},
		{name: "icons", shape: icons},
		{name: "_meta", shape: anObj},
	}}
	resource = &shape{kind: object, members: append([]member{{name: "size", shape: aSize}}, template.members...)}
)

// isTime reports whether a raw string is a time that zod's iso.datetime accepts, too.
func isTime(v []byte) bool {
	s, _ := rawjson.String(v)
	if len(s) < len("2006-01-02T15:04:05Z") || s[13] != ':' || s[16] != ':' || s[19] == ',' {
		return false // which time.Parse is less strict about
	}
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}
